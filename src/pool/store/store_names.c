#include <endian.h>
#include <string.h>
#include <sys/stat.h>
#include "base/hash.h"
#include "pool/pool_path.h"
#include "pool/store/store_parts.h"

#define HASH_BYTES 16

static void hash_path(const char *path, size_t n, uint8_t out[HASH_BYTES])
{
    uint64_t hash[2];

    hash_bytes_twice(path, n, hash);
    memcpy(out, hash, sizeof hash);
}

/* The key of a name; the root's is its own folder's, without a name. */
static size_t name_key(const char *path, size_t n, uint8_t key[STORE_NAME_KEY])
{
    size_t name = pool_path_name(path, n);

    hash_path(path, pool_path_parent(path, n), key);
    memcpy(key + HASH_BYTES, path + name, n - name);
    return HASH_BYTES + n - name;
}

int pool_store_find(struct pool_store *s, const char *path, size_t n, struct pool_name *name, struct error *e)
{
    uint8_t key[STORE_NAME_KEY];
    size_t size = name_key(path, n, key);
    MDB_val value;
    int status = store_get(s, STORE_NAMES, key, size, &value, e);

    if (status == DELTAFS_OK)
        memcpy(name, value.mv_data, sizeof *name);
    return status;
}

int pool_store_put(struct pool_store *s, const char *path, size_t n, struct pool_name *name, int is_new,
                   struct error *e)
{
    uint8_t key[STORE_NAME_KEY];
    size_t size = name_key(path, n, key);
    MDB_val old;
    int status = store_put(s, STORE_NAMES, key, size, name, sizeof *name, is_new, &old, e);

    if (status == DELTAFS_ERR_EXISTS)
        memcpy(name, old.mv_data, sizeof *name);
    return status;
}

int pool_store_remove(struct pool_store *s, const char *path, size_t n, struct error *e)
{
    uint8_t key[STORE_NAME_KEY];
    size_t size = name_key(path, n, key);

    return store_delete(s, STORE_NAMES, key, size, e);
}

/* Append an entry; returns 0 if there is no room. */
static int list_add(const MDB_val *key, const MDB_val *value, uint8_t *out, size_t room, size_t *used)
{
    struct pool_name name;
    size_t length = key->mv_size - HASH_BYTES, bytes = POOL_ENTRY_BYTES(length);

    if (bytes > room - *used)
        return 0;
    memcpy(&name, value->mv_data, sizeof name);
    const struct pool_entry entry = {.id = name.id, .mode = name.mode, .length = (uint32_t)length};
    memset(out + *used + bytes - 8, 0, 8);
    memcpy(out + *used, &entry, sizeof entry);
    memcpy(out + *used + sizeof entry, (uint8_t *)key->mv_data + HASH_BYTES, length);
    *used += bytes;
    return 1;
}

int pool_store_list(struct pool_store *s, const char *folder, size_t n, const char *after, size_t after_n, void *out,
                    size_t room, size_t *used, struct error *e)
{
    uint8_t key[STORE_NAME_KEY];
    MDB_val k = {.mv_data = key, .mv_size = HASH_BYTES + after_n}, v;
    MDB_cursor *cursor;

    *used = 0;
    if (after_n > POOL_NAME_MAX)
        return error_set(e, DELTAFS_ERR_NAME, "a name of more than %d bytes", POOL_NAME_MAX);
    hash_path(folder, n, key);
    memcpy(key + HASH_BYTES, after, after_n);
    int status = store_cursor(s, STORE_NAMES, &cursor, e);
    if (status != DELTAFS_OK)
        return status;
    int code = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    for (; code == 0; code = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)) {
        if (k.mv_size < HASH_BYTES || memcmp(k.mv_data, key, HASH_BYTES) != 0)
            break;
        size_t length = k.mv_size - HASH_BYTES;
        int is_before =
            length == 0 || (length == after_n && memcmp((uint8_t *)k.mv_data + HASH_BYTES, after, length) == 0);
        if (!is_before && !list_add(&k, &v, out, room, used))
            break;
    }
    mdb_cursor_close(cursor);
    return code == 0 || code == MDB_NOTFOUND ? DELTAFS_OK : store_fail(s, code, e);
}

/* ---- Folders ---- */

int pool_store_known(struct pool_store *s, const char *path, size_t n, struct pool_folder *folder, struct error *e)
{
    uint8_t key[HASH_BYTES];
    MDB_val value;

    hash_path(path, n, key);
    int status = store_get(s, STORE_KNOWN, key, sizeof key, &value, e);
    if (status == DELTAFS_OK)
        memcpy(folder, value.mv_data, sizeof *folder);
    return status;
}

int pool_store_know(struct pool_store *s, const char *path, size_t n, const struct pool_folder *folder, struct error *e)
{
    uint8_t key[HASH_BYTES];

    hash_path(path, n, key);
    return store_put(s, STORE_KNOWN, key, sizeof key, folder, sizeof *folder, 0, NULL, e);
}

int pool_store_forget(struct pool_store *s, const char *path, size_t n, const struct pool_folder *folder,
                      struct error *e)
{
    uint8_t key[HASH_BYTES];

    hash_path(path, n, key);
    int status = store_delete(s, STORE_KNOWN, key, sizeof key, e);
    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
        return status;
    if (!folder)
        return DELTAFS_OK;
    return store_put(s, STORE_GONE, &folder->id, sizeof folder->id, &folder->generation, sizeof folder->generation, 0,
                     NULL, e);
}

int pool_store_forgotten(struct pool_store *s, uint64_t id, uint32_t *generation, struct error *e)
{
    MDB_val value;
    int status = store_get(s, STORE_GONE, &id, sizeof id, &value, e);

    if (status == DELTAFS_OK)
        memcpy(generation, value.mv_data, sizeof *generation);
    return status;
}

static void member_key(uint64_t id, uint32_t member, uint8_t key[12])
{
    const uint64_t a = htobe64(id);
    const uint32_t b = htobe32(member);

    memcpy(key, &a, sizeof a);
    memcpy(key + sizeof a, &b, sizeof b);
}

int pool_store_member_add(struct pool_store *s, uint64_t id, uint32_t member, int *is_new, struct error *e)
{
    uint8_t key[12];
    MDB_val old;

    member_key(id, member, key);
    int status = store_put(s, STORE_MEMBERS, key, sizeof key, "", 0, 1, &old, e);
    *is_new = status == DELTAFS_OK;
    return status == DELTAFS_ERR_EXISTS ? DELTAFS_OK : status;
}

int pool_store_members(struct pool_store *s, uint64_t id, uint32_t first, uint32_t *out, size_t room, size_t *count,
                       struct error *e)
{
    uint8_t key[12];
    MDB_val k = {.mv_data = key, .mv_size = sizeof key}, v;
    MDB_cursor *cursor;

    *count = 0;
    member_key(id, first, key);
    int status = store_cursor(s, STORE_MEMBERS, &cursor, e);
    if (status != DELTAFS_OK)
        return status;
    int code = mdb_cursor_get(cursor, &k, &v, MDB_SET_RANGE);
    for (; code == 0 && *count < room; code = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)) {
        uint32_t member;
        if (memcmp(k.mv_data, key, sizeof id) != 0)
            break;
        memcpy(&member, (uint8_t *)k.mv_data + sizeof id, sizeof member);
        out[(*count)++] = be32toh(member);
    }
    mdb_cursor_close(cursor);
    return code == 0 || code == MDB_NOTFOUND ? DELTAFS_OK : store_fail(s, code, e);
}

int pool_store_members_remove(struct pool_store *s, uint64_t id, struct error *e)
{
    uint32_t members[64];
    size_t count;
    int status = pool_store_members(s, id, 0, members, 64, &count, e);

    while (status == DELTAFS_OK && count > 0) {
        for (size_t i = 0; i < count && status == DELTAFS_OK; i++) {
            uint8_t key[12];
            member_key(id, members[i], key);
            status = store_delete(s, STORE_MEMBERS, key, sizeof key, e);
        }
        if (status == DELTAFS_OK)
            status = pool_store_members(s, id, 0, members, 64, &count, e);
    }
    return status;
}

/* ---- Attributes ---- */

uint64_t pool_store_number(struct pool_store *s, uint32_t holder)
{
    return pool_id_make(s->server, s->counter++, holder);
}

int pool_store_inode(struct pool_store *s, uint64_t id, struct pool_inode *out, struct error *e)
{
    MDB_val value;
    int status = store_get(s, STORE_INODES, &id, sizeof id, &value, e);

    if (status == DELTAFS_OK)
        memcpy(out, value.mv_data, sizeof *out);
    return status;
}

int pool_store_inode_put(struct pool_store *s, const struct pool_inode *inode, int is_new, struct error *e)
{
    uint64_t id = inode->attributes.id;
    MDB_val old;
    int status = store_put(s, STORE_INODES, &id, sizeof id, inode, sizeof *inode, is_new, &old, e);

    if (status == DELTAFS_OK && is_new)
        (*(S_ISDIR(inode->attributes.mode) ? &s->count_folders : &s->count_files))++;
    return status;
}

int pool_store_inode_remove(struct pool_store *s, const struct pool_inode *inode, struct error *e)
{
    uint64_t id = inode->attributes.id;
    int status = store_delete(s, STORE_INODES, &id, sizeof id, e);

    if (status == DELTAFS_OK)
        (*(S_ISDIR(inode->attributes.mode) ? &s->count_folders : &s->count_files))--;
    return status;
}
