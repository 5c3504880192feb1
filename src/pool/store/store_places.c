#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/memory.h"
#include "pool/store/store_parts.h"

#define FILE_PLACES  (1u << 16) /* places of one file: 32 GiB */
#define PUNCH_BLOCKS 16         /* storage of so many blocks is freed at once */

static void file_name(const struct pool_store *s, size_t file, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/bytes.%zu", s->folder, file);
}

static void place_find(struct pool_store *s, uint32_t place, uint32_t block, int *fd, off_t *at)
{
    *at = (off_t)(place % FILE_PLACES) * POOL_CHUNK + (off_t)block * POOL_BLOCK;
    *fd = s->bytes[place / FILE_PLACES];
}

static int places_open_file(struct pool_store *s, struct error *e)
{
    char path[PATH_MAX];
    int status = memory_extend(NULL, &s->bytes, s->files, &s->capacity, sizeof *s->bytes, "files of bytes", e);

    if (status != DELTAFS_OK)
        return status;
    file_name(s, s->files, path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd == -1)
        return error_system(e, errno, "create", path);
    s->bytes[s->files++] = fd;
    return DELTAFS_OK;
}

int store_place_take(struct pool_store *s, uint32_t *place, struct error *e)
{
    if (s->free_count > 0) {
        *place = s->free[--s->free_count];
        s->punched = s->punched < s->free_count ? s->punched : s->free_count;
        return DELTAFS_OK;
    }
    if (s->places == UINT32_MAX)
        return error_set(e, DELTAFS_ERR_NO_SPACE, "%s: has as many chunks as are possible", s->folder);
    if (s->places / FILE_PLACES == s->files && places_open_file(s, e) != DELTAFS_OK)
        return e->status;
    *place = s->places++;
    return DELTAFS_OK;
}

static void place_punch(struct pool_store *s, uint32_t place)
{
    int fd;
    off_t at;

    place_find(s, place, 0, &fd, &at);
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, POOL_CHUNK);
}

int store_place_give(struct pool_store *s, uint32_t place, uint32_t blocks, struct error *e)
{
    int status =
        memory_extend(NULL, &s->free, s->free_count, &s->free_capacity, sizeof *s->free, "places that are free", e);

    if (status != DELTAFS_OK)
        return status;
    if (blocks >= PUNCH_BLOCKS)
        place_punch(s, place);
    s->free[s->free_count++] = place;
    return DELTAFS_OK;
}

/* Free the storage of all places that are free; returns whether there was any. */
static int places_punch(struct pool_store *s)
{
    int has_some = s->punched < s->free_count;

    for (; s->punched < s->free_count; s->punched++)
        place_punch(s, s->free[s->punched]);
    return has_some;
}

int store_place_read(struct pool_store *s, uint32_t place, uint32_t block, void *out, size_t n, struct error *e)
{
    char path[PATH_MAX];
    uint8_t *to = out;
    int fd;
    off_t at;

    place_find(s, place, block, &fd, &at);
    while (n > 0) {
        ssize_t got = pread(fd, to, n, at);
        if (got == -1 && errno == EINTR)
            continue;
        file_name(s, place / FILE_PLACES, path);
        if (got == -1)
            return error_system(e, errno, "read", path);
        if (got == 0)
            return error_damaged(e, path, (uint64_t)at, "the file is shorter than what was written");
        to += got;
        at += got;
        n -= (size_t)got;
    }
    return DELTAFS_OK;
}

int store_place_write(struct pool_store *s, uint32_t place, uint32_t block, const void *bytes, size_t n,
                      struct error *e)
{
    char path[PATH_MAX];
    const uint8_t *from = bytes;
    int fd;
    off_t at;

    place_find(s, place, block, &fd, &at);
    while (n > 0) {
        ssize_t put = pwrite(fd, from, n, at);
        if (put == -1 && (errno == EINTR || (errno == ENOSPC && places_punch(s))))
            continue;
        if (put == -1) {
            file_name(s, place / FILE_PLACES, path);
            return error_system(e, errno, "write", path);
        }
        from += put;
        at += put;
        n -= (size_t)put;
    }
    return DELTAFS_OK;
}

void store_places_destroy(struct pool_store *s)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < s->files; i++) {
        close(s->bytes[i]);
        file_name(s, i, path);
        unlink(path);
    }
    free(s->bytes);
    free(s->free);
}
