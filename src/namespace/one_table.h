/* One table of a namespace, open for reading: its epochs, what its journal has beside them, and its data. What all
 * tables of a namespace share is here too, because a table is opened with it; its functions are in tables.h. */
#ifndef DELTAFS_NAMESPACE_ONE_TABLE_H
#define DELTAFS_NAMESPACE_ONE_TABLE_H

#include "base/buffer.h"
#include "base/options.h"
#include "io/io.h"
#include "namespace/chunk_stream.h"
#include "namespace/entry.h"
#include "namespace/journal.h"

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

/* The folder of a table; `suffix` is "" or TABLE_DATA. */
char *table_path(char path[PATH_ROOM], const char *folder, uint64_t number, const char *suffix);

/* Whether a directory of a table that could not be opened, with this status, has nothing: it does not exist, or its
 * writer died before the first commit. */
int table_is_empty(const char *directory, int status);

/* Open what is committed by now. Of a layer's there must be what the layer has of it. */
int table_open(struct tables *t, struct table *table, struct error *e);
void table_close(struct table *table);
/* Whether somebody else may commit to the table. */
int table_is_watched(const struct tables *t, const struct table *table);
/* Read what is committed to a table by now. After an error it is as it was. */
int table_refresh(struct tables *t, struct table *table, struct error *e);
/* Whether an epoch with a higher label has records that none with a lower one has. */
int table_has_since(const struct table *table, uint64_t label);
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
/* Decode a record of a table. */
int table_decode(const struct table *table, const struct deltafs_record *record, struct entry *out, struct error *e);

/* Read the journal of a table: before its epochs, see journal.h. */
int table_open_journal(const struct tables *t, struct table *table, struct error *e);
/* Use the journal of the writer, which closes it. */
void table_use_journal(struct table *table, struct journal *journal);
/* Open the data of a table up to the chunk with this key: it is in the first epoch with a higher label. */
int table_open_data(const struct tables *t, struct table *table, uint64_t key, struct error *e);
void table_close_data(struct table *table);

#endif
