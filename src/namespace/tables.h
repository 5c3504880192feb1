/* The tables of a namespace, as a reader sees them.
 *
 * A lookup asks all epochs of all tables, so there must not be many: journal.h. There is no filter beside an epoch. The
 * index knows exactly which keys there are, so a missing name costs one leaf of each epoch, and no block. A leaf takes
 * about 3 bytes for each name, where a Bloom filter takes more than 1, and is in the cache once it was read: the
 * default has room for 10 to 20 million names. Of 64 tables with 2,000 names each, the first lookup made 130 reads,
 * half of them of the ends of the indexes, where filters would be; no later one of a missing name made any, in 0.1 ms.
 */
#ifndef DELTAFS_NAMESPACE_TABLES_H
#define DELTAFS_NAMESPACE_TABLES_H

#include "namespace/layers.h"
#include "namespace/name_table.h"
#include "namespace/one_table.h"

/* Open all tables of the namespace at `path` (NULL: none), that of this writer (0: none), and those of the layers;
 * tables_fini in any case. `path` and the layers must stay. */
int tables_init(struct tables *t, struct io *io, const char *path, uint64_t own, const struct layers *layers,
                const deltafs_options *given, struct error *e);
/* The same of a namespace alone, with what was compacted since (compacted.h), or merged (tiers.h). */
int tables_init_all(struct tables *t, struct io *io, const char *path, const deltafs_options *given, struct error *e);
void tables_fini(struct tables *t);
/* Open all that is there by now, as `t` was opened. *out may then take the place of `t`. */
int tables_init_again(const struct tables *t, uint64_t own, const struct layers *layers, struct tables *out,
                      struct error *e);

/* Numbers of the tables that are there, to be freed. */
int tables_list(struct io *io, const char *path, uint64_t **number, size_t *count, struct error *e);

/* The journal of the own table, which its writer has. */
void tables_use_journal(struct tables *t, uint64_t number, struct journal *journal);
/* This table has a new epoch, or its data has. */
void tables_note_commit(struct tables *t, uint64_t number);
void tables_note_data(struct tables *t, uint64_t number);

/* Add a table of the namespace itself, of which nothing is read yet; *has_room: the caches have memory for it. */
int tables_add_own(struct tables *t, uint64_t number, int *has_room, struct error *e);
struct table *tables_find(struct tables *t, uint64_t number);

/* The status of a call that has read a table: if that was removed after a compaction, DELTAFS_ERR_CHANGED. */
int tables_explain(const struct tables *t, const struct table *table, int status, struct error *e);

/* Pass all that the tables have of a name to `fn`; `table` is a place in t->table. */
typedef int tables_fn(void *arg, size_t table, const struct entry *entry, struct error *e);
int tables_get(struct tables *t, const struct entry_name *name, tables_fn *fn, void *arg, struct error *e);
/* Put all that the tables have of a name into its node. */
int tables_load(struct tables *t, struct name_table *names, struct name_node *node, struct error *e);

#endif
