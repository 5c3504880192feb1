/* What one server of a pool stores: names, attributes, chunks. It lives as long as the server. Nothing is synced, and
 * nobody else reads it, so its form may change with every version.
 *
 * LOCAL/names is an LMDB file, whose pages are mapped. A write transaction is open all the time; it is committed after
 * a number of changes, so that pages that became free can be used again. Storage for pages is allocated before they are
 * needed: a full file system is an error of the call, not a signal.
 *
 * LOCAL/bytes.K are files of places of POOL_CHUNK bytes; each chunk has one. A place that becomes free is used again;
 * the storage of its blocks is freed at once if it is much, else when the file system is full. A chunk's record has
 * its place, and a checksum for each block; 0 is a block that was not written. */
#ifndef DELTAFS_POOL_STORE_H
#define DELTAFS_POOL_STORE_H

#include "pool/pool_protocol.h"
#include "base/error.h"

struct pool_store;

/* Bytes that names, attributes and places can have; the longest record of an entry, and of a chunk. */
struct pool_store_need {
    uint64_t map, entry, chunk;
};
struct pool_store_need pool_store_need(void);

/* Create the folder, which must not exist or be empty; the one above it must exist. */
int pool_store_create(const char *folder, uint32_t server, struct pool_store **out, struct error *e);
/* Remove the files, and the folder if the store has created it. NULL is fine. */
void pool_store_destroy(struct pool_store *s);

/* ---- Names. Paths are as pool_path_normalise makes them. ---- */

struct pool_name {
    uint64_t id;
    uint32_t mode;  /* type */
    uint32_t links; /* how often it was given this name */
};

/* DELTAFS_ERR_NOT_FOUND, DELTAFS_ERR_EXISTS (*name is set) have no message: the caller knows more. */
int pool_store_find(struct pool_store *s, const char *path, size_t n, struct pool_name *name, struct error *e);
int pool_store_put(struct pool_store *s, const char *path, size_t n, struct pool_name *name, int is_new,
                   struct error *e);
int pool_store_remove(struct pool_store *s, const char *path, size_t n, struct error *e);
/* Entries of the folder behind the name `after` (at first ""), as struct pool_entry; *used is 0 at the end. */
int pool_store_list(struct pool_store *s, const char *folder, size_t n, const char *after, size_t after_n, void *out,
                    size_t room, size_t *used, struct error *e);

/* ---- Folders, as members and owners know them ---- */

struct pool_folder {
    uint64_t id;
    uint32_t generation;
};

/* The folder that a member takes entries for. DELTAFS_ERR_NOT_FOUND: it is not registered. */
int pool_store_known(struct pool_store *s, const char *path, size_t n, struct pool_folder *folder, struct error *e);
int pool_store_know(struct pool_store *s, const char *path, size_t n, const struct pool_folder *folder,
                    struct error *e);
/* Take nothing more with this generation, for ever; NULL: nothing has to be remembered. */
int pool_store_forget(struct pool_store *s, const char *path, size_t n, const struct pool_folder *folder,
                      struct error *e);
/* The newest generation with which nothing is taken; DELTAFS_ERR_NOT_FOUND: all are fine. */
int pool_store_forgotten(struct pool_store *s, uint64_t id, uint32_t *generation, struct error *e);

/* Members, in the owner. *is_new: it was none. */
int pool_store_member_add(struct pool_store *s, uint64_t id, uint32_t member, int *is_new, struct error *e);
/* Up to `room` of them from the number `first` on; *count is 0 at the end. */
int pool_store_members(struct pool_store *s, uint64_t id, uint32_t first, uint32_t *out, size_t room, size_t *count,
                       struct error *e);
int pool_store_members_remove(struct pool_store *s, uint64_t id, struct error *e);

/* ---- Attributes ---- */

struct pool_inode {
    struct pool_attributes attributes;
    uint64_t members;  /* of a folder: changes of its list of members */
    uint64_t appended; /* of a file: the end of what is being appended, if that is behind its own */
};

/* A new number for an entry of this server; `holder` as for pool_id_make. */
uint64_t pool_store_number(struct pool_store *s, uint32_t holder);
int pool_store_inode(struct pool_store *s, uint64_t id, struct pool_inode *out, struct error *e);
int pool_store_inode_put(struct pool_store *s, const struct pool_inode *inode, int is_new, struct error *e);
int pool_store_inode_remove(struct pool_store *s, const struct pool_inode *inode, struct error *e);

/* ---- Bytes of a chunk ---- */

/* At most POOL_SLOT_BYTES, within a chunk. What was not written is zero. */
int pool_store_read(struct pool_store *s, uint64_t id, uint64_t offset, void *out, size_t n, struct error *e);
int pool_store_write(struct pool_store *s, uint64_t id, uint64_t offset, const void *bytes, size_t n, struct error *e);
/* Remove what is behind `size` bytes of the file, up to POOL_CUT_CHUNKS. *is_more: there may be more; NULL is fine. */
int pool_store_cut(struct pool_store *s, uint64_t id, uint64_t size, int *is_more, struct error *e);

/* Files, folders, bytes and room. */
void pool_store_status(struct pool_store *s, struct pool_status *out);

#endif
