#include <string.h>
#include "base/hash.h"
#include "pool/pool_path.h"

static int path_add(char *out, size_t *n, const char *name, size_t length, struct error *e)
{
    if (length > POOL_NAME_MAX)
        return error_set(e, DELTAFS_ERR_NAME, "a name of more than %d bytes", POOL_NAME_MAX);
    if (*n + length + 1 > POOL_PATH_MAX)
        return error_set(e, DELTAFS_ERR_NAME, "a path of more than %d bytes", POOL_PATH_MAX);
    out[(*n)++] = '/';
    memcpy(out + *n, name, length);
    *n += length;
    return DELTAFS_OK;
}

int pool_path_normalise(const char *path, char out[POOL_PATH_MAX + 1], size_t *n, struct error *e)
{
    int status = DELTAFS_OK;
    size_t length;

    *n = 0;
    for (const char *at = path; *at && status == DELTAFS_OK; at += length) {
        at += strspn(at, "/");
        length = strcspn(at, "/");
        if (length == 2 && at[0] == '.' && at[1] == '.') {
            while (*n > 0 && out[--*n] != '/')
                ;
        } else if (length > 0 && !(length == 1 && at[0] == '.')) {
            status = path_add(out, n, at, length, e);
        }
    }
    if (*n == 0)
        out[(*n)++] = '/';
    out[*n] = '\0';
    return status;
}

int pool_path_is_normal(const char *path, size_t n)
{
    if (n == 0 || n > POOL_PATH_MAX || path[0] != '/' || memchr(path, '\0', n))
        return 0;
    for (size_t at = 1, length; n > 1 && at <= n; at += length + 1) {
        const char *slash = memchr(path + at, '/', n - at);
        length = slash ? (size_t)(slash - path) - at : n - at;
        int is_dots = length <= 2 && memcmp(path + at, "..", length) == 0;
        if (length > POOL_NAME_MAX || is_dots) /* also an empty name */
            return 0;
    }
    return 1;
}

size_t pool_path_name(const char *path, size_t n)
{
    while (n > 0 && path[n - 1] != '/')
        n--;
    return n;
}

uint32_t pool_owner(const char *path, size_t n, uint32_t servers)
{
    return servers == 1 || n == 1 ? 0 : (uint32_t)(hash_bytes(path, n) % servers);
}

uint32_t pool_chunk_owner(uint64_t id, uint64_t chunk, uint32_t servers)
{
    const uint64_t both[2] = {id, chunk};

    if (id & POOL_ID_LOCAL)
        return (uint32_t)(id >> POOL_ID_LOCAL_BITS) & (POOL_MOST - 1);
    return servers == 1 ? 0 : (uint32_t)(hash_bytes(both, sizeof both) % servers);
}
