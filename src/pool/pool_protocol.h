/* What clients and servers of a pool say to each other.
 *
 * A request is for one server, and is answered by what that server knows alone: servers never wait for each other. What
 * takes several servers is a sequence of requests that the client makes (pool_entries.c, pool_file.c). A client asks
 * the servers of its node directly; one of these, its home, passes on what is for servers of other nodes.
 *
 * Where things are:
 *  - the name of an entry is on the server that the hash of its path says (pool_owner),
 *  - its attributes are on the server that is in its number (pool_id_server): at first the one that has the name. If
 *    a file is renamed, the name alone moves; attributes of a folder are always where its name is,
 *  - chunk n of a file is on the server that the hash of the file's number and n says (pool_chunk_owner); or, if the
 *    number says so, all chunks are on one server: that of the node where the file was created.
 *
 * Which servers have entries of a folder is known to the server that has the folder's name: the members. Before a
 * server takes the first entry of a folder, the client registers it there. Thus an entry is never created in a folder
 * that is not there, a folder is listed by asking its members only, and it is removed if each of them says that it has
 * nothing. A member that has said so takes nothing more with the folder's generation; the client registers it again,
 * and then the folder has a newer one. So removing fails if an entry was created meanwhile.
 *
 * All servers and clients of a pool run the same version on the same kind of machine: structs travel as they are. */
#ifndef DELTAFS_POOL_PROTOCOL_H
#define DELTAFS_POOL_PROTOCOL_H

#include <stdint.h>

#define POOL_VERSION  1
#define POOL_CHUNK    (512u << 10) /* bytes of a file that are on one server */
#define POOL_BLOCK    4096u        /* bytes that have a checksum */
#define POOL_PATH_MAX 4095         /* bytes */
#define POOL_NAME_MAX 255
/* That one request removes, also POOL_TRUNCATE, _UNLINK and _REMOVE: others wait meanwhile. */
#define POOL_CUT_CHUNKS 1024
#define POOL_FILE_MAX   (UINT64_C(1) << 46) /* bytes of a file: 64 TiB */
#define POOL_MOST       (1u << 15)          /* servers */

#define POOL_ROOT_ID 1 /* the root is on server 0 */

/* Bytes that go with a request or its answer: to a server of the client's node, and to others. */
#define POOL_SLOT_BYTES   (128u << 10)
#define POOL_REMOTE_BYTES (64u << 10)

enum pool_op {
    POOL_NONE,
    POOL_STATUS,   /* -> struct pool_status */
    POOL_STOP,     /* end */
    POOL_LOOKUP,   /* path -> attributes; only id and type if these are on another server */
    POOL_CREATE,   /* path, mode; folder's id and generation; `value`: as for pool_id_make; id: of a folder that is
                      renamed, the old one -> attributes */
    POOL_SYMLINK,  /* path, a zero, target; folder as for create -> attributes */
    POOL_LINK,     /* path, id, mode (type); folder as for create: give an entry that exists a name -> what had it */
    POOL_RESTORE,  /* path, id: undo a link; `value`, mode: what had the name before, 0: nothing -> `value`: whether
                      that has it again */
    POOL_UNLINK,   /* path; id, 0: any -> attributes; `value`: whether they are removed, too */
    POOL_REGISTER, /* folder's path, member, generation that is over -> folder's id and generation */
    POOL_MEMBERS,  /* folder's path -> their numbers; id, generation, `value`: state of the list */
    POOL_FORGET,   /* folder's path, id, generation: if it has no entry here, take none with this generation */
    POOL_RMDIR,    /* folder's path, id, generation, `value` of members; with one server, the path is enough */
    POOL_LIST,     /* folder's path, a zero, name -> struct pool_entry..., those behind that name */
    POOL_STAT,     /* id -> attributes */
    POOL_SET,      /* id, POOL_SET_*, mode, uid, gid, mtime, atime -> attributes */
    POOL_GROW,     /* id, size: at least that; and mtime */
    POOL_APPEND,   /* id, size: of bytes that will be appended -> `value`: where. They do not belong to the file until
                      they are written, but no others are appended there */
    POOL_TRUNCATE, /* id, size: exactly that -> `value`: size before; or POOL_HAS_CHANGED: there may be more to cut
                      first */
    POOL_REMOVE,   /* id: the attributes -> attributes */
    POOL_READ,     /* id, offset, size; within a chunk -> bytes. POOL_HAS_INODE: no more than the file has; of a link,
                      its target, on the server of its attributes */
    POOL_WRITE,    /* id, offset; bytes; within a chunk. POOL_HAS_INODE: grow the file, too */
    POOL_CUT,      /* id, size: remove what is behind that; on this server, up to POOL_CUT_CHUNKS -> `value`: whether
                      there may be more. POOL_IS_REMOVED */
    POOL_LOCK,     /* id, offset, size: the end; mode: enum pool_lock, gid: whether it is a test, uid: process.
                      `value` is the client, which its server fills in. -> if it is refused, attributes: id: where
                      the other's lock begins, size: its end, mode, uid */
    POOL_LEAVE,    /* `value`: the client, as for a lock: it has no locks any more; its server asks when it is gone */
    POOL_OPS
};

enum pool_flag {
    POOL_SET_MODE = 1,
    POOL_SET_UID = 2,
    POOL_SET_GID = 4,
    POOL_SET_MTIME = 8,
    POOL_SET_ATIME = 16,
    POOL_HAS_FOLDER = 32, /* of create and link: id and generation of the folder are given */
    POOL_HAS_INODE = 64,  /* do what is to be done with the attributes, too, which this server has (unlink: may have) */
    POOL_IS_REMOVED = 128 /* the file is gone: bytes that are written to it now are refused */
};

enum pool_lock { POOL_UNLOCKED, POOL_SHARED, POOL_EXCLUSIVE };

/* Answers that are no errors of the user. */
enum pool_again {
    POOL_NEEDS_FOLDER = 1, /* register the server as a member first; `value`: the generation that is over */
    POOL_HAS_CHANGED = 2,  /* begin again */
    POOL_IS_LOCKED = 3     /* by another client */
};

struct pool_request {
    uint32_t op, flags;
    uint32_t server; /* for which it is */
    uint32_t bytes;  /* that go with it */
    uint64_t id, offset, size;
    uint64_t folder, value;
    uint32_t mode, uid, gid, generation;
    int64_t mtime, atime;
};

struct pool_attributes {
    uint64_t id, size; /* size of a folder: the id of the one that it was renamed from, or 0 */
    int64_t mtime, atime, ctime;
    uint32_t mode, uid, gid;
    uint32_t generation;
};

struct pool_answer {
    int32_t status;
    uint32_t bytes; /* that go with it; a message if status is an error */
    uint64_t value;
    struct pool_attributes attributes;
};

/* In a list; the name follows, and the next entry begins at a multiple of 8. */
struct pool_entry {
    uint64_t id;
    uint32_t mode; /* type */
    uint32_t length;
};
#define POOL_ENTRY_BYTES(length) ((sizeof(struct pool_entry) + (length) + 7) / 8 * 8)

struct pool_status {
    uint64_t files, folders;
    uint64_t bytes; /* of blocks that files have */
    uint64_t room;  /* bytes that are free in the local folder */
    uint64_t operations, clients;
};

/* Number of an entry, from the highest bit: 15 bits of its server, 1: whether its chunks are on one server, then 15
 * bits of that server, and 33 of a counter; or 48 bits of the counter. */
#define POOL_ID_LOCAL      (UINT64_C(1) << 48)
#define POOL_ID_LOCAL_BITS 33

static inline uint32_t pool_id_server(uint64_t id)
{
    return (uint32_t)(id >> 49);
}

/* `holder`: the server that is to have the chunks, and 1; 0: by hash. If the counter has become too large for the
 * former, it is the latter. */
static inline uint64_t pool_id_make(uint32_t server, uint64_t counter, uint32_t holder)
{
    uint64_t id = (uint64_t)server << 49 | counter;

    if (holder == 0 || counter >> POOL_ID_LOCAL_BITS != 0)
        return id;
    return id | POOL_ID_LOCAL | (uint64_t)(holder - 1) << POOL_ID_LOCAL_BITS;
}

#endif
