/* The parts of a store, for its own files. */
#ifndef DELTAFS_POOL_STORE_PARTS_H
#define DELTAFS_POOL_STORE_PARTS_H

#include <lmdb.h>
#include "pool/store/pool_store.h"

enum store_table {
    STORE_NAMES,   /* hash of the folder's path, name -> struct pool_name */
    STORE_INODES,  /* id -> struct pool_inode */
    STORE_KNOWN,   /* hash of a folder's path -> struct pool_folder */
    STORE_GONE,    /* id of a folder -> generation */
    STORE_MEMBERS, /* id of a folder, server; big-endian -> nothing */
    STORE_CHUNKS,  /* id, number; big-endian -> struct store_chunk */
    STORE_TABLES
};

#define CHUNK_BLOCKS (POOL_CHUNK / POOL_BLOCK)
/* Bytes of the keys of chunks, and the most of those of names. */
#define STORE_CHUNK_KEY 16
#define STORE_NAME_KEY  (16 + POOL_NAME_MAX)

struct store_chunk {
    uint32_t place;
    uint32_t count;             /* of blocks up to the last that was written; as many checksums are stored */
    uint32_t crc[CHUNK_BLOCKS]; /* 0: it was not written */
};

struct pool_store {
    char *folder;
    uint32_t server;
    int has_created; /* the folder */
    int has_names;   /* it has created the file */
    MDB_env *env;
    MDB_txn *txn; /* NULL: LMDB has failed, and nothing works any more */
    MDB_dbi table[STORE_TABLES];
    int meta;           /* the file of LMDB */
    unsigned changes;   /* since the last commit */
    uint64_t allocated; /* bytes of that file */
    int is_full;        /* no more could be allocated */
    uint64_t counter;   /* of numbers */
    int *bytes;         /* descriptors of the files of places */
    size_t files, capacity;
    uint32_t places; /* that were ever used */
    uint32_t *free;  /* places that are free; those from `punched` on have storage */
    size_t free_count, free_capacity;
    size_t punched;
    uint8_t *scratch; /* POOL_SLOT_BYTES and two blocks */
    uint64_t count_files, count_folders, count_blocks;
};

/* A value that is read, or NULL: DELTAFS_ERR_NOT_FOUND, without a message, or an error. */
int store_get(struct pool_store *s, enum store_table table, const void *key, size_t key_size, MDB_val *out,
              struct error *e);
/* DELTAFS_ERR_EXISTS, without a message, if `is_new` and there is one, which *old gets. */
int store_put(struct pool_store *s, enum store_table table, const void *key, size_t key_size, const void *value,
              size_t size, int is_new, MDB_val *old, struct error *e);
int store_delete(struct pool_store *s, enum store_table table, const void *key, size_t key_size, struct error *e);
/* LMDB has returned `code`. */
int store_fail(struct pool_store *s, int code, struct error *e);

/* A cursor over `table`, to be closed. */
int store_cursor(struct pool_store *s, enum store_table table, MDB_cursor **out, struct error *e);

/* Places of chunks. */
int store_place_take(struct pool_store *s, uint32_t *place, struct error *e);
/* `blocks` of it may have storage. */
int store_place_give(struct pool_store *s, uint32_t place, uint32_t blocks, struct error *e);
int store_place_read(struct pool_store *s, uint32_t place, uint32_t block, void *out, size_t n, struct error *e);
int store_place_write(struct pool_store *s, uint32_t place, uint32_t block, const void *bytes, size_t n,
                      struct error *e);
void store_places_destroy(struct pool_store *s);

#endif
