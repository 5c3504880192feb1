/* What the parts of a list of a folder share. */
#ifndef DELTAFS_NAMESPACE_LIST_PARTS_H
#define DELTAFS_NAMESPACE_LIST_PARTS_H

#include "namespace/list_batch.h"
#include "namespace/namespace.h"

/* What one table has of one id, or what was changed here. */
struct source {
    struct table table; /* as it was when the list was opened, without what it owns; number 0: changed here */
    struct table_reader *reader;
    deltafs_iter *iter;
    struct shared_list *shared; /* what the owner of a part has of the id; else NULL */
    struct entry_id parent;
    const uint8_t *bytes; /* the record that is next; NULL: none */
    size_t size;
    struct entry entry; /* it, decoded */
    uint32_t hash;
};

/* A record in a buffer. */
struct kept {
    uint32_t hash;
    uint32_t size;
    size_t at;
};

struct kept_list {
    struct buffer bytes;
    struct kept *record;
    size_t count, capacity, used;
};

struct version {
    struct entry_id parent;
    struct inode inode;
};

struct deltafs_namespace_list {
    deltafs_namespace *ns;
    uint64_t clears;       /* of the names in memory, */
    uint64_t refreshes;    /* and of the handle, as it was opened */
    struct folder *folder; /* its ids, by hash */
    size_t folders;
    uint32_t low, high;    /* the hashes of names that are read from tables */
    struct source *source; /* those that have something */
    size_t sources, source_room;
    struct source *taken;     /* the one whose record the group has, without a copy; NULL: none */
    struct kept_list changed; /* here, and what is in journals; by hash */
    size_t changed_at;
    struct group group;
    size_t group_at;         /* the next member whose name may not be shown yet */
    struct list_batch batch; /* the next groups, while files are opened as they are listed */
    int has_name;            /* a name was returned last, and still is known as it was in the group; */
    int is_conflict;         /* the inputs of a merge disagree on it */
    int is_incomplete;       /* a source could not be read to its end */
    unsigned opened;         /* so many names were opened as files right after they were returned */
    struct version *version; /* of one name */
    size_t versions, version_room;
    uint32_t nodes;        /* names in memory when they were looked at, */
    uint64_t nodes_clears; /* which had been forgotten so often; */
    int has_nodes;         /* whether some were in the folder */
    char name[ENTRY_NAME_MAX + 1];
    struct inode shown; /* what was returned last */
    struct deltafs_namespace_entry entry;
};

/* Open the sources of a list, and close them. */
int list_open_sources(deltafs_namespace_list *l);
void list_close_sources(deltafs_namespace_list *l);
/* Go on to the next record of the source's folder. */
int list_next_record(deltafs_namespace_list *l, struct source *s);

#endif
