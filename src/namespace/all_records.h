/* All records of all tables, in the order of their keys, so that those of one name come together. */
#ifndef DELTAFS_NAMESPACE_ALL_RECORDS_H
#define DELTAFS_NAMESPACE_ALL_RECORDS_H

#include "namespace/tables.h"

struct version {
    size_t table; /* its place */
    uint64_t label;
    struct entry entry;    /* its texts are in `bytes` */
    size_t at, size;       /* of the record, in `bytes` */
    struct version *other; /* of one that is newest: that of another entry */
    int is_needed;         /* for a collection */
};

struct all_records {
    const struct tables *tables;
    struct record_source *source; /* one or two of each table */
    size_t sources;
    struct buffer bytes;
    size_t used;
    struct version *version; /* of the key that was read last: table after table, and those of a table by label, but for
                                those of its journal, which are first */
    size_t versions, version_room;
    struct version *newest; /* the last of the newest version of each entry; few, as only a collision of the hash makes
                               two */
    uint64_t key;
};

/* all_records_close in any case. The tables must stay. */
int all_records_open(struct all_records *a, const struct tables *t, struct error *e);
void all_records_close(struct all_records *a);
/* Read those of the least key that is left; a->versions 0: all were read. */
int all_records_next(struct all_records *a, struct error *e);

/* Whether both are states of the same entry, under the same name. */
int version_is_same_entry(const struct version *a, const struct version *b);
/* Look for the newest only among those for which `is_in` returns other than 0, until the next key is read. */
void all_records_find_newest(struct all_records *a, int (*is_in)(const struct version *v, const void *arg),
                             const void *arg);
/* Whether no version of the same entry, among those, is newer. */
int all_records_is_newest(const struct all_records *a, const struct version *v);
/* Append the newest version of each entry to a directory; *count is raised for each. */
int all_records_put(const struct all_records *a, deltafs_dir *to, uint64_t *count, struct error *e);

#endif
