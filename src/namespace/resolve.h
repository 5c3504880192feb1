/* What has a name in a merge whose policy is not that the newest change counts.
 *
 * All layers are asked for what they have of the name: for each entry its newest state, from their own tables or from
 * below. A merge compares its inputs. It drops an input if another one has seen all that it has of the name, and has
 * gone on from there: that change is settled. If only folders are left, the name has all of them. If two or more other
 * inputs are left, they are in conflict, and the policy chooses one.
 *
 * A layer has seen a state if a table in it or below it, up to the limit, has the state: the labels of epochs are above
 * all stamps in the epoch, and below all later ones. So each layer has a vector of limits, one for each table. */
#ifndef DELTAFS_NAMESPACE_RESOLVE_H
#define DELTAFS_NAMESPACE_RESOLVE_H

#include "namespace/layers.h"
#include "namespace/tables.h"

/* A state of an entry that some table has. */
struct state {
    struct entry_id parent;
    struct inode inode;
    size_t table; /* its place */
    size_t entry; /* states of one entry under one name have the same number */
    size_t target, target_size;
    int is_chosen;
};

struct resolver {
    size_t layers; /* with that of the own tables, which is the last */
    size_t tables;
    const struct layers *below;
    uint64_t *own, *seen; /* of each layer, for each table: the limit, in the layer itself and with what is below it */
    struct state *state;
    size_t states, room, entries;
    struct buffer targets;
    size_t targets_size;
    size_t *best, best_room; /* of each layer, for each entry: the number of its state + 1; 0: it has none */
    int *left;               /* of each input of a merge: enum left, in resolve.c */
    size_t left_room;
    int is_conflict; /* of the uppermost merge */
};

/* Whether the layers need this: the newest change does not always count. */
int resolver_is_needed(const struct layers *below);
/* resolver_fini in any case. */
int resolver_init(struct resolver *r, const struct layers *below, const struct tables *tables, struct error *e);
void resolver_fini(struct resolver *r);

/* Forget all states; take one, as a tables_fn; choose among them. */
void resolver_clear(struct resolver *r);
int resolver_take(void *arg, size_t table, const struct entry *entry, struct error *e);
int resolver_choose(struct resolver *r, struct error *e);

#endif
