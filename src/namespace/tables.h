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

#include "base/buffer.h"
#include "base/options.h"
#include "io/io.h"
#include "namespace/chunk_stream.h"
#include "namespace/journal.h"
#include "namespace/layers.h"
#include "namespace/name_table.h"

/* A directory that is open for reading; lists keep the one that they have begun with. */
struct table_reader {
    deltafs_dir *dir;
    unsigned users;
};

struct table {
    uint64_t number;
    char journal_name[32];       /* of its file, in the folder of its namespace, */
    const char *path;            /* which is this */
    struct deltafs_range epochs; /* those that are read: not those that were compacted, and of a layer up to a limit;
                                    none if only bytes of files are */
    /* The first and the last of these epochs may have commits of a journal that are not read: those with stamps up to
     * `from`, or above `limit`. */
    uint64_t from, limit;
    struct table_reader *reader; /* NULL: nothing is in epochs */
    struct journal *journal;     /* what is committed and in no epoch; NULL: nothing */
    int is_own;                  /* the journal is the writer's */
    int is_layered;    /* several layers have it, with limits of their own: what counts for one of them may be in epochs
                          that others cover */
    deltafs_dir *data; /* NULL: not open */
    struct chunk_stream stream;  /* of it */
    int is_stale, is_data_stale; /* more was committed since they were opened */
    uint64_t manifest_size;      /* of the epochs, as they were read; 0: there were none */
};

struct tables {
    deltafs_options *options;
    struct table *table; /* by number */
    size_t count, capacity;
    uint64_t last_label; /* the highest of all */
    struct io *io;
    const char *path;      /* of the namespace itself; NULL: there are layers only, or all was opened */
    int is_all;            /* also what was compacted, and epochs that others cover */
    uint8_t compacted[16]; /* the UUID of its compaction */
    int is_complete;       /* that has the entries of the layers, too */
    uint64_t read_cache;   /* bytes, for so many tables that are read */
    size_t shares;

    /* For a refresh */
    struct io_file folder; /* of the namespace; path NULL: there was no refresh */
    int is_late;           /* it is client-cached */
    uint64_t folder_names; /* hard links of the folder, when tables were looked for; 0: that says nothing */
    struct io_attributes compacted_seen; /* of the file COMPACTED */
};

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
/* The folder of a table; `suffix` is "" or TABLE_DATA. */
char *table_path(char path[PATH_ROOM], const char *folder, uint64_t number, const char *suffix);

/* Whether a directory of a table that could not be opened, with this status, has nothing: it does not exist, or its
 * writer died before the first commit. */
int table_is_empty(const char *directory, int status);

/* The journal of the own table, which its writer has. */
void tables_use_journal(struct tables *t, uint64_t number, struct journal *journal);
/* This table has a new epoch, or its data has. */
void tables_note_commit(struct tables *t, uint64_t number);
void tables_note_data(struct tables *t, uint64_t number);

/* Add a table of the namespace itself, of which nothing is read yet; *has_room: the caches have memory for it. */
int tables_add_own(struct tables *t, uint64_t number, int *has_room, struct error *e);
/* Whether somebody else may commit to the table. */
int table_is_watched(const struct tables *t, const struct table *table);
/* Read what is committed to a table by now. After an error it is as it was. */
int table_refresh(struct tables *t, struct table *table, struct error *e);
/* Whether an epoch with a higher label has records that none with a lower one has. */
int table_has_since(const struct table *table, uint64_t label);
struct table *tables_find(struct tables *t, uint64_t number);

/* The reader of a table, with all that is committed as far as is known; NULL if that is nothing. */
int table_reader(struct tables *t, struct table *table, struct table_reader **out, struct error *e);
void table_reader_release(struct table_reader *r);

/* Whether a record with this label and stamp is read. */
static inline int table_has(const struct table *table, uint64_t label, uint64_t stamp)
{
    return label >= table->epochs.first && label <= table->epochs.last && stamp > table->from && stamp <= table->limit;
}

/* The epochs that are read, for calls; NULL: all. */
static inline const struct deltafs_range *table_epochs(const struct table *table)
{
    return table->limit != UINT64_MAX || table->epochs.first > 0 ? &table->epochs : NULL;
}

/* The label of its last commit; 0: there is none. */
uint64_t table_last_label(const struct table *table);
/* The label of the epoch that has the commit with this label, or that one's if it is in no epoch. */
uint64_t table_epoch_of(const struct table *table, uint64_t label);

/* The records that the journal of a table has: with a key, as journal_get; or with keys from `low` to `high`, and
 * *count of them. */
const struct journal_record *table_journaled_one(const struct table *table, int kind, uint64_t key,
                                                 const struct journal_record *before);
const struct journal_record *table_journaled(const struct table *table, int kind, uint64_t low, uint64_t high,
                                             size_t *count);

/* One of them, as an epoch would have it. */
static inline struct deltafs_record table_journal_record(const struct table *table, const struct journal_record *r)
{
    return (struct deltafs_record){
        .key = r->key, .label = r->label, .value = journal_bytes(table->journal, r), .size = r->size};
}

/* The status of a call that has read a table: if that was removed after a compaction, DELTAFS_ERR_CHANGED. */
int tables_explain(const struct tables *t, const struct table *table, int status, struct error *e);

/* Decode a record of a table. */
int table_decode(const struct table *table, const struct deltafs_record *record, struct entry *out, struct error *e);
/* Pass all that the tables have of a name to `fn`; `table` is a place in t->table. */
typedef int tables_fn(void *arg, size_t table, const struct entry *entry, struct error *e);
int tables_get(struct tables *t, const struct entry_name *name, tables_fn *fn, void *arg, struct error *e);
/* Put all that the tables have of a name into its node. */
int tables_load(struct tables *t, struct name_table *names, struct name_node *node, struct error *e);

/* Read a chunk of a file's bytes, *got of them, at most `room`. */
int tables_read_chunk(struct tables *t, const struct entry_id *place, size_t room, void *bytes, size_t *got,
                      struct error *e);
/* Pass the places of all records that have bytes of a file to `fn`: those of chunks, and those of the list of them. */
typedef int tables_place_fn(void *arg, const struct entry_id *place, struct error *e);
int tables_each_place(struct tables *t, const struct inode *file, tables_place_fn *fn, void *arg, struct error *e);

#endif
