/* A namespace that the ranks of a job share: each entry has an owner, and every rank asks the owners and has them make
 * its changes. A folder has parts, by the hash of the name, and each part has an owner: the first is the rank that the
 * hash of the folder's id gives, and the ranks after it have the others (shared_part, shared_owner). So no rank does
 * all the work of a folder that all fill. Nothing depends on how large a folder has become, and so no entry ever
 * changes its owner. The price: a list of a folder, and its removal, ask the owners of all parts: 4 of 4 ranks, 8 of
 * 16, 64 of 1,024. An owner sends what there is of a small folder with its first answer, so with 4 ranks a list takes 3
 * messages of other ranks. A later job reads small folders from as many tables, until they are compacted: of 4 tables,
 * a folder of 8 files took 104 us to list, of one 42 us; stat is as fast.
 *
 * Each rank has two handles. The *store* has the entries that the rank owns: it answers the requests of all ranks, and
 * commits to the rank's table. It is the handle of a namespace that only one process has. The caller's handle, the
 * *client*, has no table, and its names in memory are only copies: it walks down paths by asking owners (LOOKUP), and
 * when a call has changed names, sends these changes (CHANGE), with what it knew of each name. If the owner knows
 * better by now, it refuses, and the client does the whole call again (shared_again). So each change of one name
 * happens at one point in time. What takes more than one name (rename, rmdir) is done by one rank at a time, with a
 * lock at rank 0:
 *  - The owners of a folder's parts seal it, if theirs are empty, before its entry is removed: nothing can be put into
 *    it any more.
 *  - The names that an entry moves from and to are pinned first: nobody else changes them meanwhile.
 * Clients keep the folders and links of the last paths. So a call that removes or moves one ends by having all ranks
 * forget paths (FORGET). That also says what moved, because a rank may have it open.
 *
 * The bytes of a file are with the rank that wrote them, in the data of its table. Until they are in a table that was
 * opened with them, other ranks get them from there (READ).
 *
 * A commit of a few names goes to the journal of each rank's table. There the stamps say of which commit an entry is
 * (table_has), so an owner gives those that are not above its last commit new ones: other ranks' clocks may be behind.
 * In 1,000 commits of a name of each of 4 ranks, 1,000 epochs of each table instead took twice the time, and made a
 * lookup 80 times as slow.
 *
 * An owner whose memory is full refuses changes (FULL). The client then commits for all, with the lock: FREEZE, so that
 * no entry comes in whose bytes are not committed; the bytes; the entries; what was removed. The last is in an epoch of
 * its own, in case the job dies or a rank fails in between: an entry that moved from one rank to another may then have
 * both names, but is not lost. */
#ifndef DELTAFS_NAMESPACE_SHARED_H
#define DELTAFS_NAMESPACE_SHARED_H

#include "base/collective.h"
#include "base/private.h"
#include "namespace/namespace.h"

#define SHARED_CACHE_BYTES (4u << 20) /* of the copies of names; a call needs a part of them */
#define SHARED_PARTS_MOST  256        /* of a folder */

/* What carries requests. */
struct shared_transport {
    /* Send a request to another rank, wait for its reply, and serve other ranks meanwhile. */
    int (*call)(void *ctx, uint32_t rank, const struct bytes *request, struct bytes *reply, struct error *e);
    /* Serve other ranks, or pause. */
    void (*wait)(void *ctx);
    /* A call of the caller begins, and ends: in between, nobody else serves. */
    void (*enter)(void *ctx);
    void (*leave)(void *ctx);
    /* Collective: the job ends. `handle` was freed. */
    void (*destroy)(void *ctx);
};

/* What the owner of an entry, or another rank, is asked for. */
enum shared_op {
    SHARED_LOOKUP,
    SHARED_CREATE,
    SHARED_CHANGE,
    SHARED_PIN,
    SHARED_UNPIN,
    SHARED_DATA,
    SHARED_SEAL,
    SHARED_UNSEAL,
    SHARED_LIST_OPEN,
    SHARED_LIST_NEXT,
    SHARED_LIST_CLOSE,
    SHARED_READ,
    SHARED_FORGET,
    SHARED_LOCK,
    SHARED_UNLOCK,
    SHARED_FREEZE,
    SHARED_COMMIT_DATA,
    SHARED_COMMIT_ADDED,
    SHARED_COMMIT_REMOVED,
    SHARED_THAW, /* instead of the rest of a commit that failed */
    SHARED_OPS
};

/* What a reply begins with: a status, or one of these. */
enum shared_verdict {
    SHARED_WAIT = 1, /* not now */
    SHARED_STALE,    /* the client's copy is out of date */
    SHARED_FULL      /* a commit is needed */
};

/* Bytes of a request or a reply that are written; the first error stays. */
struct message {
    struct bytes bytes;
    struct error error;
};

/* Bytes that are read. */
struct parcel {
    const uint8_t *at, *end;
    int is_short; /* they ended too early */
};

/* What a client has looked up in a call. */
struct seen {
    const struct name_node *node;
    uint64_t state;
};

/* An entry that cannot be changed for now. */
struct pin {
    struct entry_id parent;
    uint64_t key;
};

struct shared {
    deltafs_namespace *store, *client;
    const struct shared_transport *transport;
    void *ctx;
    struct collective group;
    uint32_t parts;       /* of each folder */
    uint64_t *table;      /* the number of each rank's table */
    uint64_t *sorted;     /* the same, by number */
    uint64_t first_stamp; /* what this job does is later */
    struct message request, reply;

    /* Of the client's call */
    struct seen *seen;
    size_t seen_count, seen_room;
    int is_stale;              /* copies are out of date */
    int assumes_new;           /* nothing has the name, until the owner says so */
    int has_lock;              /* the lock of rank 0 */
    int is_moving;             /* entries get other names */
    int must_forget;           /* all ranks must forget paths */
    struct message moved;      /* which entries, and their names now */
    struct entry_id *own_seal; /* folders that this call has sealed, or some of their parts */
    size_t own_seals, own_seal_room;

    /* Of the store */
    int is_locked; /* at rank 0 */
    int is_frozen;
    int has_moved;           /* entries, from here to another rank, since the last commit */
    uint64_t last_committed; /* what comes into the table gets higher stamps */
    struct pin *pin;
    size_t pins, pin_room;
    struct entry_id *sealed; /* a hash table; number 0: free */
    size_t seals, seal_room;
    deltafs_namespace_list **list; /* that other ranks have open; NULL: free */
    size_t lists;
};

/* ---- For libdeltafs_mpi ---- */

/* Make a client for a store. Takes the store over if it succeeds. `table` has the number of each rank's table, and is
 * taken over, too. *out is closed by deltafs_namespace_close, which is collective. */
DELTAFS_PRIVATE int deltafs_private_namespace_share(deltafs_namespace *store, const struct collective *group,
                                                    const struct shared_transport *transport, void *ctx,
                                                    uint64_t *table, uint64_t first_stamp, deltafs_namespace **out,
                                                    struct error *e);
/* Undo this, where another rank could not. */
DELTAFS_PRIVATE void deltafs_private_namespace_unshare(deltafs_namespace *client);
/* The number of this writer's table, and the last stamp. */
DELTAFS_PRIVATE uint64_t deltafs_private_namespace_table(const deltafs_namespace *ns, uint64_t *last_stamp);
/* Answer a request of another rank. */
DELTAFS_PRIVATE void deltafs_private_namespace_serve(deltafs_namespace *client, const struct bytes *request,
                                                     struct bytes *reply);
/* Collective: wait until all ranks have called this. DELTAFS_ERR_MODE: the namespace is not shared. */
DELTAFS_PRIVATE int deltafs_private_namespace_barrier(deltafs_namespace *ns);

/* Who owns a part of folders of this hash. */
static inline uint32_t shared_owner(const struct shared *s, uint32_t hash, uint32_t part)
{
    return (uint32_t)(((uint64_t)hash * s->group.ranks >> 32) + part) % s->group.ranks;
}

/* The part of a folder that has names of this hash. */
static inline uint32_t shared_part(const struct shared *s, uint32_t hash)
{
    return (uint32_t)((uint64_t)hash * s->parts >> 32);
}

static inline uint32_t shared_name_owner(const struct shared *s, const struct entry_name *name)
{
    return shared_owner(s, (uint32_t)(name->key >> 32), shared_part(s, (uint32_t)name->key));
}

/* ---- Messages ---- */

static inline void message_put(struct message *m, const void *p, size_t n)
{
    if (m->error.status == DELTAFS_OK)
        bytes_append(&m->bytes, p, n, &m->error);
}

void message_put_name(struct message *m, const struct entry_name *name);
/* A state of an entry, with a link's target. */
void message_put_item(struct message *m, const struct inode *inode, const char *target, size_t target_size);

/* Without enough bytes, `p` gets zeros. */
void parcel_take(struct parcel *p, void *out, size_t n);
const char *parcel_text(struct parcel *p, size_t n);
struct entry_name parcel_name(struct parcel *p);
struct inode parcel_item(struct parcel *p, const char **target, size_t *target_size);

/* What is known of a name, as a number that is another one if that changes; 0: nothing has it. */
uint64_t shared_state(const struct name_table *t, const struct name_node *node);

/* ---- The store: shared_serve.c ---- */

void shared_serve(struct shared *s, const struct bytes *request, struct message *reply);
void shared_end_serving(struct shared *s);
/* Commit the store's names, as ns_commit_names. */
int shared_commit_store(struct shared *s, enum commit_part part);

/* ---- The client: shared.c; shared_open.c: opening, committing, closing ---- */

/* Begin a request. */
struct message *shared_request(struct shared *s, enum shared_op op);
/* Send it, and go on after the verdict in *reply, which is valid until the next request. Returns SHARED_STALE, or a
 * status. */
int shared_ask(struct shared *s, uint32_t rank, struct parcel *reply);
/* A request that has a folder's id, to the owner of a part of it. */
int shared_ask_part(struct shared *s, enum shared_op op, const struct folder *folder, uint32_t part,
                    struct parcel *reply);
int shared_ask_all(struct shared *s);
/* Whether the call has to be done again; else *status is that of its changes, too. */
int shared_again(deltafs_namespace *ns, int *status);
/* Only this rank renames and removes folders; NULL-safe: does nothing if the namespace is not shared. */
int shared_lock(deltafs_namespace *ns);
void shared_unlock(deltafs_namespace *ns);
/* Collective. */
int shared_commit(deltafs_namespace *ns);

/* The node of a name; `is_way`: a copy will do if it is a folder or a link. */
int shared_load(deltafs_namespace *ns, const struct entry_name *name, int is_way, struct name_node **out);
/* DELTAFS_ERR_NOT_EMPTY, or nothing can be put into these folders any more. */
int shared_seal(deltafs_namespace *ns, const struct folder *folder, size_t count, const char *path);
/* An entry gets another name, which all ranks must know. */
void shared_note_moved(deltafs_namespace *ns, const struct inode *inode, const struct entry_name *to);
/* Whether a rank of this job writes the table. */
int shared_has_table(const struct shared *s, uint64_t number);
/* Give names new files, of one call at most so many. */
#define SHARED_CREATE_MOST 4096
int shared_create(deltafs_namespace *ns, const struct folder *folder, const char *const *names, size_t n,
                  const struct inode *first);

/* ---- Lists and files: shared_files.c ---- */

/* What the owner of a folder's part has of it. The owner gives an open list a number, or this one once it has sent all
 * that is in it: then it is not open any more. */
#define SHARED_LIST_ENDED UINT32_MAX
struct shared_list;
int shared_list_open(deltafs_namespace *ns, const struct folder *folder, uint32_t part, struct shared_list **out);
/* The next entry, in the order of the hashes; NULL at the end. */
int shared_list_next(deltafs_namespace *ns, struct shared_list *l, const uint8_t **bytes, size_t *size);
/* NULL is fine. */
void shared_list_close(deltafs_namespace *ns, struct shared_list *l);

/* Read a chunk that another writer has written. */
int shared_read(deltafs_namespace *ns, const struct entry_id *place, size_t room, uint8_t *to, size_t *got);
/* Say what bytes a file has now. SHARED_STALE: it does not have this name. */
int shared_put_data(deltafs_namespace *ns, const struct entry_name *name, const struct inode *inode);

#endif
