#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <dirent.h>
#include <stdio.h>
#include <limits.h>
#include "base/memory.h"
#include "pool/store/store_parts.h"

#define MAP_BYTES (UINT64_C(64) << 30) /* of addresses; as much as names and attributes can have */
/* Changes of a transaction; and storage that is allocated before one begins: more than so many changes can need, which
 * copy a few pages each. */
#define COMMIT_CHANGES 1024
#define COMMIT_BYTES   (UINT64_C(16) << 20)
/* The same when no more can be allocated. What is left is for changes that make no new records, such as removing. */
#define FULL_CHANGES 64
#define FULL_BYTES   (UINT64_C(1) << 20)

static const char names_file[] = "names";

int store_fail(struct pool_store *s, int code, struct error *e)
{
    if (s->txn)
        mdb_txn_abort(s->txn);
    s->txn = NULL;
    return error_set(e, DELTAFS_ERR_IO, "%s/%s: LMDB failed: %s", s->folder, names_file, mdb_strerror(code));
}

static int store_check(struct pool_store *s, struct error *e)
{
    if (s->txn)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_IO, "%s/%s: LMDB has failed before", s->folder, names_file);
}

/* Allocate storage for the pages that the next changes may need; *rest gets the bytes that there are for them. */
static int store_allocate(struct pool_store *s, uint64_t *rest, struct error *e)
{
    MDB_envinfo info;

    mdb_env_info(s->env, &info);
    uint64_t used = (uint64_t)(info.me_last_pgno + 1) * MEMORY_PAGE, wanted = used + COMMIT_BYTES;
    *rest = s->allocated > used ? s->allocated - used : 0;
    s->is_full = 0;
    if (wanted <= s->allocated)
        return DELTAFS_OK;
    s->is_full = 1;
    if (wanted > MAP_BYTES)
        return error_set(e, DELTAFS_ERR_NO_SPACE, "%s/%s: is full", s->folder, names_file);
    if (fallocate(s->meta, FALLOC_FL_KEEP_SIZE, (off_t)s->allocated, (off_t)(wanted - s->allocated)) != 0)
        return error_system(e, errno, "allocate storage", s->folder);
    s->is_full = 0;
    s->allocated = wanted;
    return DELTAFS_OK;
}

static int store_begin(struct pool_store *s, struct error *e)
{
    int code = mdb_txn_begin(s->env, NULL, 0, &s->txn);

    return code == 0 ? DELTAFS_OK : store_fail(s, code, e);
}

/* Before a change: whether it can be made. */
static int store_change(struct pool_store *s, int is_new, struct error *e)
{
    uint64_t rest;

    if (s->changes++ < (s->is_full ? FULL_CHANGES : COMMIT_CHANGES) && !(s->is_full && is_new))
        return DELTAFS_OK;
    int code = mdb_txn_commit(s->txn);
    s->txn = NULL;
    if (code != 0)
        return store_fail(s, code, e);
    int status = store_allocate(s, &rest, e);
    if (status != DELTAFS_OK && !is_new && rest >= FULL_BYTES)
        status = DELTAFS_OK;
    s->changes = status == DELTAFS_OK ? 1 : COMMIT_CHANGES; /* the next one tries again */
    return error_first(store_begin(s, error_after(status, e)), status);
}

int store_get(struct pool_store *s, enum store_table table, const void *key, size_t key_size, MDB_val *out,
              struct error *e)
{
    MDB_val k = {.mv_data = (void *)(uintptr_t)key, .mv_size = key_size};

    if (store_check(s, e) != DELTAFS_OK)
        return e->status;
    int code = mdb_get(s->txn, s->table[table], &k, out);
    if (code == 0)
        return DELTAFS_OK;
    if (code == MDB_NOTFOUND)
        return e->status = DELTAFS_ERR_NOT_FOUND;
    return store_fail(s, code, e);
}

int store_put(struct pool_store *s, enum store_table table, const void *key, size_t key_size, const void *value,
              size_t size, int is_new, MDB_val *old, struct error *e)
{
    MDB_val k = {.mv_data = (void *)(uintptr_t)key, .mv_size = key_size},
            v = {.mv_data = (void *)(uintptr_t)value, .mv_size = size};

    if (store_check(s, e) != DELTAFS_OK || store_change(s, is_new, e) != DELTAFS_OK)
        return e->status;
    int code = mdb_put(s->txn, s->table[table], &k, &v, is_new ? MDB_NOOVERWRITE : 0);
    if (code == 0)
        return DELTAFS_OK;
    if (code == MDB_KEYEXIST) {
        *old = v;
        return e->status = DELTAFS_ERR_EXISTS;
    }
    return store_fail(s, code, e);
}

int store_delete(struct pool_store *s, enum store_table table, const void *key, size_t key_size, struct error *e)
{
    MDB_val k = {.mv_data = (void *)(uintptr_t)key, .mv_size = key_size};

    if (store_check(s, e) != DELTAFS_OK || store_change(s, 0, e) != DELTAFS_OK)
        return e->status;
    int code = mdb_del(s->txn, s->table[table], &k, NULL);
    if (code == 0)
        return DELTAFS_OK;
    if (code == MDB_NOTFOUND)
        return e->status = DELTAFS_ERR_NOT_FOUND;
    return store_fail(s, code, e);
}

int store_cursor(struct pool_store *s, enum store_table table, MDB_cursor **out, struct error *e)
{
    if (store_check(s, e) != DELTAFS_OK)
        return e->status;
    int code = mdb_cursor_open(s->txn, s->table[table], out);
    return code == 0 ? DELTAFS_OK : store_fail(s, code, e);
}

static int folder_is_used(const struct pool_store *s, struct error *e)
{
    return error_set(
        e, DELTAFS_ERR_EXISTS,
        "%s: is no empty folder; each server needs its own (%%n is the server's number); if a pool that was "
        "killed has left it, remove it",
        s->folder);
}

static int store_open_tables(struct pool_store *s, struct error *e)
{
    static const char *const name[STORE_TABLES] = {
        [STORE_NAMES] = "names", [STORE_INODES] = "inodes",   [STORE_KNOWN] = "known",
        [STORE_GONE] = "gone",   [STORE_MEMBERS] = "members", [STORE_CHUNKS] = "chunks"};

    for (int i = 0; i < STORE_TABLES; i++) {
        unsigned flags = MDB_CREATE | (i == STORE_INODES || i == STORE_GONE ? MDB_INTEGERKEY : 0);
        int code = mdb_dbi_open(s->txn, name[i], flags, &s->table[i]);
        if (code != 0)
            return store_fail(s, code, e);
    }
    return DELTAFS_OK;
}

/* Two servers that are given one folder may both find it empty; the file is created by one of them. */
static int store_claim(struct pool_store *s, const char *path, struct error *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd == -1)
        return errno == EEXIST ? folder_is_used(s, e) : error_system(e, errno, "create", path);
    close(fd);
    s->has_names = 1;
    return DELTAFS_OK;
}

static int store_open(struct pool_store *s, struct error *e)
{
    char path[PATH_MAX];
    uint64_t rest;
    int code = mdb_env_create(&s->env);

    if (code != 0)
        return store_fail(s, code, e);
    if (snprintf(path, sizeof path, "%s/%s", s->folder, names_file) >= (int)sizeof path)
        return error_system(e, ENAMETOOLONG, "create", s->folder);
    if (store_claim(s, path, e) != DELTAFS_OK)
        return e->status;
    mdb_env_set_maxdbs(s->env, STORE_TABLES);
    mdb_env_set_mapsize(s->env, MAP_BYTES);
    code = mdb_env_open(s->env, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_WRITEMAP | MDB_NOLOCK | MDB_NORDAHEAD, 0600);
    if (code != 0)
        return store_fail(s, code, e);
    mdb_env_get_fd(s->env, &s->meta);
    int status = store_allocate(s, &rest, e);
    if (status == DELTAFS_OK)
        status = store_begin(s, e);
    return status == DELTAFS_OK ? store_open_tables(s, e) : status;
}

static int folder_is_empty(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;

    while (d && n <= 2 && readdir(d))
        n++;
    if (d)
        closedir(d);
    return d && n <= 2;
}

static int store_make_folder(struct pool_store *s, struct error *e)
{
    if (mkdir(s->folder, 0700) == 0) {
        s->has_created = 1;
        return DELTAFS_OK;
    }
    if (errno != EEXIST)
        return error_system(e, errno, "create the folder", s->folder);
    if (folder_is_empty(s->folder))
        return DELTAFS_OK;
    return folder_is_used(s, e);
}

struct pool_store_need pool_store_need(void)
{
    return (struct pool_store_need){.map = MAP_BYTES,
                                    .entry = STORE_NAME_KEY + sizeof(struct pool_name) + sizeof(uint64_t) +
                                             sizeof(struct pool_inode),
                                    .chunk = STORE_CHUNK_KEY + sizeof(struct store_chunk)};
}

int pool_store_create(const char *folder, uint32_t server, struct pool_store **out, struct error *e)
{
    struct pool_store *s = calloc(1, sizeof *s);

    if (s)
        *s = (struct pool_store){.folder = strdup(folder),
                                 .server = server,
                                 .meta = -1,
                                 .scratch = malloc(POOL_SLOT_BYTES + 2 * POOL_BLOCK),
                                 .counter = POOL_ROOT_ID + 1};
    if (!s || !s->folder || !s->scratch) {
        error_no_memory(e, sizeof *s + POOL_SLOT_BYTES, "the store of a server");
        pool_store_destroy(s);
        return e->status;
    }
    int status = store_make_folder(s, e);
    if (status == DELTAFS_OK)
        status = store_open(s, e);
    if (status == DELTAFS_OK)
        *out = s;
    else
        pool_store_destroy(s);
    return status;
}

void pool_store_destroy(struct pool_store *s)
{
    char path[PATH_MAX];

    if (!s)
        return;
    if (s->txn)
        mdb_txn_abort(s->txn);
    if (s->env)
        mdb_env_close(s->env);
    if (s->has_names && snprintf(path, sizeof path, "%s/%s", s->folder, names_file) < (int)sizeof path)
        unlink(path);
    store_places_destroy(s);
    if (s->has_created)
        rmdir(s->folder);
    free(s->scratch);
    free(s->folder);
    free(s);
}

void pool_store_status(struct pool_store *s, struct pool_status *out)
{
    struct statvfs space = {0};

    statvfs(s->folder, &space);
    out->files = s->count_files;
    out->folders = s->count_folders;
    out->bytes = s->count_blocks * POOL_BLOCK;
    out->room = (uint64_t)space.f_bavail * space.f_frsize;
}
