/* The handle of a namespace, and what its parts share.
 *
 *     entry.c       ids, attributes, records of tables
 *     name_table.c  names in memory: changed ones, and those that were looked up
 *     name_filter.c names that were committed, and are not in memory any more
 *     one_table.c   one table, open for reading; tables.c: all of them, which is what is committed
 *     table_data.c  bytes of files in tables; chunk_stream.c: many small chunks at once
 *     own_table.c   where this writer commits: one table, and its data
 *     head.c        the file NAMESPACE
 *     layers.c      what is below a namespace, or in a snapshot
 *     resolve.c     what has a name in a merge of layers
 *     registry.c    snapshots by name; pin.c: what a namespace must keep for them
 *     snapshot.c    publishing and withdrawing
 *     view.c        leases of readers
 *     walk.c        paths: from the root to the folder of a name, and what has the name
 *     change.c      changes of names and attributes; rename.c has one of them
 *     open_file.c   open files; file_bytes.c: their bytes
 *     recent.c      bytes that are stored and not committed
 *     list.c        the entries of a folder; list_source.c: where they come from; list_batch.c: those that are to be
 *                   shown next
 *     all_records.c all that the tables have, for collect.c
 *     commit.c      from the names in memory to the table
 *     refresh.c     what others have committed since the namespace was opened
 *     namespace.c   open, close, messages; namespace_info.c: what it consists of
 *     shared.c      all of this by the ranks of a job together: see shared.h
 *
 * A public function begins with ns_begin, which makes room for the names that it will look up: pointers to nodes and
 * items are then valid until it returns. It ends with ns_end. */
#ifndef DELTAFS_NAMESPACE_NAMESPACE_H
#define DELTAFS_NAMESPACE_NAMESPACE_H

#include "namespace/layers.h"
#include "namespace/name_filter.h"
#include "namespace/own_table.h"
#include "namespace/recent.h"
#include "namespace/resolve.h"
#include "namespace/view.h"

/* A walk goes from the root down the folders of a path. In a view, a folder is a set of ids: each writer that has
 * created it has given it one. So a walk has levels, one for each folder on the way, of one or more ids; a name is
 * looked up under all of them. */
struct walk {
    struct folder *folder; /* ids of all levels, one level after the other; each begins with its least id */
    size_t folders, folder_room;
    struct walk_level {
        size_t first;     /* its first id */
        const char *text; /* the name that led to it, in the table of names; of the root none */
        size_t size;
    } * level;
    size_t levels, level_room;
    char *path; /* of the last level's folder, as it was given */
    size_t path_size, path_room;
    int is_known; /* that path still leads here */
    unsigned links;
};

/* A path's last name. */
struct last {
    const char *text;
    size_t size;   /* 0: it is the root */
    int is_folder; /* it must be one: a '/' follows, or the path ends in "." or ".." */
    int is_dots;   /* the path ends so */
};

/* What has a name. */
struct found {
    struct last last;
    uint32_t hash;
    struct inode inode; /* type ENTRY_REMOVED: nothing has it. Of a folder the least id, and the newest attributes */
    struct name_node *node; /* of the item; NULL for the root, and for what WALK_INODE has found in a list */
    struct name_item *item; /* with that id */
};

struct open_file;
struct shared;
#define OPEN_BUCKETS 256

struct deltafs_namespace {
    struct error error;
    struct error broken; /* of a commit: nothing can be changed any more */
    struct io io;
    char *path;          /* from the root of the system; of a snapshot its name */
    int is_snapshot;     /* all is in the layers */
    uint64_t last_stamp; /* of this writer, or of any commit that it sees */
    struct inode root;   /* as the namespace was created */
    int has_journals;
    uint8_t uuid[16];
    struct layers layers; /* below it */
    struct views views;   /* of one that is open for reading */
    int has_resolver;     /* names are looked up through this */
    struct resolver resolver;
    struct name_table names;
    uint64_t clears;              /* of the names, so far */
    uint64_t refreshes;           /* that have found something new, so far */
    struct name_filter committed; /* names that this writer has committed, or seen others commit, */
    uint64_t first_stamp;         /* since this */
    struct tables tables;
    struct own_table own;
    struct shared *shared; /* of a client: the ranks that share the namespace, and who owns what */
    struct shared *job;    /* of a store: the same */
    struct recent recent;
    struct walk walk, other;
    struct open_file *open[OPEN_BUCKETS]; /* by id */
    size_t opens;
    deltafs_namespace_list *listed; /* the list that has returned an entry last; NULL: none that is open */
    uint32_t uid, gid;              /* of what is created */
};

/* Begin a call, which changes something if `is_change`. */
int ns_begin(deltafs_namespace *ns, const char *call, int is_change);
/* Make room for some more names; those that were looked up may be forgotten. */
int ns_make_room(deltafs_namespace *ns);
/* Whether there is room for some names more, without what the next commit may need. */
int ns_has_room(const deltafs_namespace *ns);
/* End a call: a failing one leaves its message with the thread, too. Returns `status`. */
int ns_end(deltafs_namespace *ns, int status);
/* The error of a call with a path within the namespace. */
int ns_fail(deltafs_namespace *ns, int status, const char *path);
int ns_no_argument(deltafs_namespace *ns, const char *call, const char *argument);
/* Free all; returns the first error. */
int ns_free(deltafs_namespace *ns, struct error *e);

/* What a namespace that is created gets. With is_view, none is created: the layers are opened for reading. */
struct ns_new {
    uint8_t uuid[16];
    struct layers below;
    int is_view;
    int finds_conflicts; /* looks up all names through the resolver */
};

/* Open a namespace, or create it like this; NULL: with nothing below it. */
int ns_open(const char *path, int flags, const deltafs_options *options, const struct ns_new *create,
            deltafs_namespace **out);

/* The first of `n` new stamps, all above those before. */
uint64_t ns_stamps(deltafs_namespace *ns, uint64_t n);

/* ---- walk.c ---- */

void walk_fini(struct walk *w);
/* The folders of paths may be others now. */
void ns_forget_walks(deltafs_namespace *ns);
/* Go to the folder that a path's last name is in. */
int walk_to_parent(deltafs_namespace *ns, struct walk *w, const char *path, struct last *last);
/* The same, and look up the last name. That nothing is there is no error. */
int walk_to_name(deltafs_namespace *ns, struct walk *w, const char *path, struct found *out);

/* How to look up a last name. */
enum {
    WALK_FOLLOWS = 1, /* if it is a symbolic link, go on to what it leads to, as if the path ended in '/' */
    WALK_INODE = 2    /* the node and the item do not matter */
};
/* The same; `how` has bits of these. */
int walk_to(deltafs_namespace *ns, struct walk *w, const char *path, unsigned how, struct found *out);
/* The same; something must be there. */
int walk_to_existing(deltafs_namespace *ns, struct walk *w, const char *path, unsigned how, struct found *out);
/* The node of a name, with all that is known of it. `is_way`: only to go on, if it is a folder or a link. */
int ns_load_node(deltafs_namespace *ns, const struct entry_name *name, int is_way, struct name_node **out);
/* The same for a name in each of the folders that are one folder, which may depend on each other. */
int ns_load_names(deltafs_namespace *ns, const struct folder *folder, size_t count, uint32_t hash, const char *text,
                  size_t size, int is_way);
/* Go down into the folder that was found. */
int walk_enter(deltafs_namespace *ns, struct walk *w, const struct found *f);

/* The ids of the last level. */
static inline const struct folder *walk_folders(const struct walk *w, size_t *count)
{
    size_t first = w->level[w->levels - 1].first;

    *count = w->folders - first;
    return w->folder + first;
}

/* The name under id number `i` of the last level. */
static inline struct entry_name walk_name(const struct walk *w, const struct found *f, size_t i)
{
    return name_in(&w->folder[w->level[w->levels - 1].first + i], f->hash, f->last.text, f->last.size);
}

static inline struct entry_name node_name(const struct name_node *n)
{
    return (struct entry_name){n->parent, n->key, n->name, n->name_size};
}

/* The root is in no folder, and has the name "/" there. */
static inline struct entry_name root_name(void)
{
    const struct folder none = folder_of(&(struct entry_id){0, 0});

    return name_in(&none, name_hash("/", 1), "/", 1);
}

/* ---- change.c ---- */

/* Give a name this state of an entry, to be committed. */
int ns_put(deltafs_namespace *ns, const struct entry_name *name, const struct inode *inode, const char *target,
           size_t target_size);
/* A new entry; the first of `n`, which have ids and stamps that follow each other. */
struct inode ns_new_inode(deltafs_namespace *ns, uint8_t type, uint32_t mode);
struct inode ns_new_inodes(deltafs_namespace *ns, uint8_t type, uint32_t mode, size_t n);
/* Remove all that has the name, except the entry `kept` (NULL: none). */
void ns_remove_items(deltafs_namespace *ns, const struct walk *w, const struct found *f, const struct entry_id *kept);
/* The entry has this name no more. */
void ns_leave(deltafs_namespace *ns, struct name_node *node, struct name_item *item);
/* Whether what is there can be removed, or renamed. */
int ns_check_movable(deltafs_namespace *ns, const struct found *f, const char *path);

/* ---- list.c ---- */

/* A list of what is in these folders; its next entry, type ENTRY_REMOVED at the end, and its name. */
int list_create(deltafs_namespace *ns, const struct folder *folder, size_t count, deltafs_namespace_list **out);
/* The same, but of what is in tables only names with these hashes. */
int list_create_part(deltafs_namespace *ns, const struct folder *folder, size_t count, uint32_t low, uint32_t high,
                     deltafs_namespace_list **out);
int list_next(deltafs_namespace_list *l, struct inode *shown);
/* The next name, also one that has nothing any more; *has: there is one. */
int list_next_name(deltafs_namespace_list *l, struct inode *shown, int *has);
const char *list_name(const deltafs_namespace_list *l);
/* Whether the inputs of the uppermost merge disagree on it. */
int list_is_conflict(const deltafs_namespace_list *l);
void list_destroy(deltafs_namespace_list *l);
/* Give a node all that is committed of a name, if that was listed last. Returns whether that is so. */
int list_load(deltafs_namespace *ns, const struct entry_name *name, struct name_node *node);
/* What has the name in a folder of `count` ids, if the folder's list has returned that last, it is a file, and the name
 * was not looked up or changed here. Returns whether that is so. */
int list_shows(const deltafs_namespace *ns, size_t count, const struct entry_name *name, struct inode *out);
/* The file with this name was opened for reading. */
void list_note_opened(deltafs_namespace *ns, const struct entry_name *name);
/* DELTAFS_ERR_NOT_EMPTY if something is in the folder. */
int ns_check_empty(deltafs_namespace *ns, struct walk *w, const struct found *f, const char *path);

/* ---- commit.c ---- */

/* Commit all that was changed; or the bytes of files only, so that they can be read. */
int ns_commit(deltafs_namespace *ns);
int ns_commit_data(deltafs_namespace *ns);
/* What is in the journal comes into epochs, and so does each commit from now on. */
int ns_end_journal(deltafs_namespace *ns, struct error *e);
/* Commit names only: all that was changed, or in two commits, first what was added and then what was removed. */
enum commit_part { COMMIT_ALL, COMMIT_ADDED, COMMIT_REMOVED };
int ns_commit_names(deltafs_namespace *ns, enum commit_part part);
/* After a failure that may have lost changes: nothing can be changed any more. Returns the status. */
int ns_break(deltafs_namespace *ns, int status);
/* DELTAFS_OK, or the error of that failure. */
int ns_check_sound(deltafs_namespace *ns);

/* ---- shared.c: of a client of a namespace that is shared ---- */

/* Begin a call; end it. */
void shared_begin(deltafs_namespace *ns);
void shared_end(deltafs_namespace *ns);
/* Collective. */
int shared_close(deltafs_namespace *ns);

/* ---- open_file.c ---- */

/* The attributes of an entry, which may be a file that is open and was written. */
const struct inode *ns_current(const deltafs_namespace *ns, const struct inode *inode);
/* The same, but only of a file that this handle has written to. */
const struct inode *ns_changed(const deltafs_namespace *ns, const struct inode *inode);
/* An entry was removed; got another name; got other attributes. */
void ns_note_removed(deltafs_namespace *ns, const struct entry_id *id);
void ns_note_moved(deltafs_namespace *ns, const struct inode *inode, const struct entry_name *to);
void ns_note_attributes(deltafs_namespace *ns, const struct inode *inode);
/* Read a chunk of bytes that this writer has written, committed or not. */
int ns_read_own_chunk(deltafs_namespace *ns, const struct entry_id *place, size_t room, uint8_t *to, size_t *got);
/* Write the bytes of all open files that were changed. */
int ns_flush_files(deltafs_namespace *ns);
void ns_free_files(deltafs_namespace *ns);

#endif
