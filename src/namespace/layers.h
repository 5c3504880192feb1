/* Layers: what a snapshot consists of, and what is below a namespace.
 *
 * A layer is a namespace as it was at a commit of each of its tables, or a merge of layers. Its inputs are the layers
 * below it: of a namespace one or none, of a merge two or more. The layers of a snapshot are stored in this order, each
 * behind its inputs. The last is the top. One that several others have below them is stored once.
 *
 * In a text log:
 *     Layer uuid=UUID inputs=[I] [complete=1] path=PATH     a namespace
 *     Table number=N limit=LABEL from=LABEL                 each of its tables that has something
 *     Layer policy=WORD inputs=I,...                        a merge */
#ifndef DELTAFS_NAMESPACE_LAYERS_H
#define DELTAFS_NAMESPACE_LAYERS_H

#include <deltafs/deltafs_namespace.h>
#include "io/textlog.h"

struct layer_table {
    uint64_t number;
    uint64_t limit; /* the label of its last epoch that the layer has; 0: only bytes of files */
    uint64_t from;  /* epochs up to this label were compacted: what they have, other tables of the layer have */
};

/* The line of a table. Reading returns 0, or -1. */
int layer_table_write(const struct layer_table *t, struct io_file *file, uint64_t *size, struct error *e);
int layer_table_take(const char *fields, struct layer_table *out);

struct layer {
    uint8_t uuid[16]; /* of the namespace; of a merge zero */
    char *path;       /* of the namespace; NULL: a merge */
    int policy;       /* of a merge: enum deltafs_snapshot_policy */
    int is_complete;  /* of a namespace: its tables have the entries of all layers below it, too (compacted.h) */
    struct layer_table *table;
    size_t tables, table_room;
    size_t *input; /* numbers of layers before this one */
    size_t inputs, input_room;
};

struct layers {
    struct layer *layer;
    size_t count, room;
    uint64_t lines;  /* that they take in the text that they are read from; 0: it does not say */
    int is_resolved; /* names are looked up through a resolver (resolve.h), which asks all layers */
};

void layers_fini(struct layers *l);
/* Add a layer at the end: a namespace, whose path is copied, or a merge. */
int layers_add_namespace(struct layers *l, const uint8_t uuid[16], const char *path, struct error *e);
int layers_add_merge(struct layers *l, int policy, struct error *e);
/* Add to the last layer. */
int layers_add_table(struct layers *l, const struct layer_table *t, struct error *e);
int layers_add_input(struct layers *l, size_t input, struct error *e);
/* Add copies of all layers of `from`, but for those that are there; *top is the number of its last. */
int layers_append(struct layers *l, const struct layers *from, size_t *top, struct error *e);
/* Whether a layer is a namespace, and none before it has the same path. */
int layers_has_path(const struct layers *l, size_t i);
/* Note of each layer whether names are looked up there: not if all that is right on top of it is complete, or is not
 * looked at either. `is_complete`: the namespace on top of the layers is. */
void layers_note_asked(const struct layers *l, int is_complete, uint8_t *is_asked);
/* Whether both are the same. */
int layers_are_same(const struct layers *a, const struct layers *b);

/* DELTAFS_ERR_INVALID if two of the namespaces are copies of one: their tables have the same numbers. */
int layers_check_copies(const struct layers *l, struct error *e);

/* The field of a line before the layers that has the number of their lines: the end of the text may be lost. */
#define LAYERS_COUNT_ROOM 32
void layers_count_text(const struct layers *l, char text[LAYERS_COUNT_ROOM]);
int layers_take_count(struct layers *l, const char *fields); /* 0, or -1 */
int layers_check_count(const struct layers *l, const char *path, struct error *e);

int layers_write(const struct layers *l, struct io_file *file, uint64_t *size, struct error *e);
/* Take the fields of a line, for textlog_take; `arg` is a struct layers. */
int layers_take_layer(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e);
int layers_take_table(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e);

#endif
