/* The table of this writer, and its data. */
#ifndef DELTAFS_NAMESPACE_OWN_TABLE_H
#define DELTAFS_NAMESPACE_OWN_TABLE_H

#include "namespace/journal.h"
#include "namespace/tables.h"

/* What is committed to the journal has been put into both directories, too, and so comes into their next epochs. */
struct own_table {
    const char *path; /* of the namespace */
    struct io *io;
    uint64_t number; /* 0: none, the namespace is open for reading */
    deltafs_options *options;
    deltafs_dir *dir;
    deltafs_dir *data;    /* NULL: not open */
    int has_data;         /* chunks that are in no epoch */
    uint64_t data_label;  /* of the last epoch of chunks: those with lower keys are in it, or in one before */
    uint64_t last_chunk;  /* the highest key */
    int has_journal;      /* commits may go there */
    int is_inherited;     /* the journal has what the writer before this one has left, which may be durable there */
    int has_failed;       /* what is in the directories is not what is committed */
    uint32_t epochs_left; /* so many more of the table cannot be too many: own_table_merge */
    int is_memory_full, was_memory_full; /* at this epoch, and at the last one */
    uint64_t full_label;                 /* epochs up to this one stay for other writers */
    struct journal journal;
};

/* Take over a table that nobody writes, or create one. `memory` is for the table, and as much for its data. *label is
 * raised to that of the table's last commit. own_table_close in any case. DELTAFS_ERR_BUSY: the namespace is being
 * collected. */
int own_table_open(struct own_table *own, struct io *io, const char *path, const deltafs_options *given,
                   uint64_t memory, uint64_t *label, struct error *e);
/* The same, but always create one. */
int own_table_create(struct own_table *own, struct io *io, const char *path, const deltafs_options *given,
                     uint64_t memory, struct error *e);
/* Make epochs of the journal that a table's last writer has left. The caller has the lease of the namespace. */
int own_table_recover(struct io *io, const char *path, uint64_t number, const deltafs_options *given, struct error *e);
/* Make epochs of what is in the journal, close the data, and use no journal from now on. */
int own_table_end_journal(struct own_table *own, struct error *e);
/* Close all; a little journal stays, see journal.h. Returns the first error. */
int own_table_close(struct own_table *own, struct error *e);

/* Open the data of the table, before the first chunk; *label is raised. */
int own_table_open_data(struct own_table *own, uint64_t *label, struct error *e);
int own_table_put_chunk(struct own_table *own, uint64_t key, const void *bytes, size_t size, struct error *e);
int own_table_put(struct own_table *own, uint64_t key, const struct entry *entry, struct error *e);
/* Whether what was put, but for what is in epochs, is little enough for the journal. */
int own_table_is_little(const struct own_table *own);
/* An epoch of the chunks, if any are in none. */
int own_table_commit_data(struct own_table *own, uint64_t label, struct error *e);
/* Commit the entries, and the chunks that are little enough: to the journal, or, with *is_epoch, in epochs. */
int own_table_commit(struct own_table *own, uint64_t label, int *is_epoch, struct error *e);

/* After an epoch of the table, before anything is put: if there are many, merge some into one more, which gets this
 * label, see tiers.c. If that fails, they stay as they are, which is no error. */
void own_table_merge(struct own_table *own, uint64_t label);

/* Create data that is not that of the own table; closed by deltafs_close. */
int own_table_create_data(const char *path, const deltafs_options *given, deltafs_dir **out, struct error *e);

#endif
