#include "posix/spool.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/internal.h"
#include "posix/next.h"
#include "posix/posix.h"

/* A chunk has some records. Once all chunks that fit into memory are full, each further one is written to the file when
 * it is full; its number gives its place there. */
#define CHUNK_SIZE ((size_t)4 << 20)

struct chunk {
    uint8_t *bytes; /* NULL: it is in the file */
    size_t used;
};

struct spool {
    struct chunk *chunk;
    size_t count, room;
    size_t in_memory_max;
    char *folder;
    int fd; /* the file; -1: there is none */
    uint64_t records;
};

struct spool *spool_create(size_t memory, const char *folder)
{
    struct spool *s = calloc(1, sizeof *s);

    if (!s || !(s->folder = strdup(folder))) {
        free(s);
        return NULL;
    }
    s->in_memory_max = memory > 2 * CHUNK_SIZE ? memory / CHUNK_SIZE : 2;
    s->fd = -1;
    return s;
}

void spool_destroy(struct spool *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        free(s->chunk[i].bytes);
    if (s->fd >= 0)
        internal_close(s->fd);
    free(s->chunk);
    free(s->folder);
    free(s);
}

uint64_t spool_count(const struct spool *s)
{
    return s->records;
}

/* ---- The file ---- */

static int file_open(struct spool *s)
{
    char path[PATH_MAX];

    if (s->fd >= 0)
        return 0;
    s->fd = internal_keep(next.openat(AT_FDCWD, s->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (s->fd >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)
        return errno;
    /* The file system knows no files without a name. */
    if (snprintf(path, sizeof path, "%s/.deltafs-records.%ld.%p", s->folder, (long)getpid(), (void *)s) >=
        (int)sizeof path)
        return ENAMETOOLONG;
    s->fd = internal_keep(next.openat(AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (s->fd < 0)
        return errno;
    next.unlinkat(AT_FDCWD, path, 0);
    return 0;
}

/* Write a chunk to the file, and give back its bytes for another one. */
static int chunk_write(struct spool *s, size_t i, uint8_t **bytes)
{
    struct chunk *c = &s->chunk[i];
    int error = file_open(s);

    for (size_t done = 0; done < c->used && error == 0;) {
        ssize_t n = next.pwrite(s->fd, c->bytes + done, c->used - done, (off_t)(i * CHUNK_SIZE + done));
        if (n < 0 && errno != EINTR)
            error = errno;
        else
            done += n > 0 ? (size_t)n : 0;
    }
    if (error != 0)
        return error;
    *bytes = c->bytes;
    c->bytes = NULL;
    return 0;
}

static int chunk_read(const struct spool *s, size_t i, uint8_t *bytes)
{
    for (size_t done = 0; done < s->chunk[i].used;) {
        ssize_t n = next.pread(s->fd, bytes + done, s->chunk[i].used - done, (off_t)(i * CHUNK_SIZE + done));
        if (n == 0 || (n < 0 && errno != EINTR))
            return n == 0 ? EIO : errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* ---- Adding ---- */

static int add_chunk(struct spool *s)
{
    uint8_t *bytes = NULL;
    int error = 0;

    if (s->count == s->room) {
        size_t room = s->room > 0 ? 2 * s->room : 64;
        struct chunk *more = realloc(s->chunk, room * sizeof *more);
        if (!more)
            return ENOMEM;
        s->chunk = more;
        s->room = room;
    }
    if (s->count >= s->in_memory_max)
        error = chunk_write(s, s->count - 1, &bytes);
    else if (!(bytes = malloc(CHUNK_SIZE)))
        error = ENOMEM;
    if (error == 0)
        s->chunk[s->count++] = (struct chunk){.bytes = bytes};
    return error;
}

int spool_add(struct spool *s, const struct spool_record *r, const void *key, const void *value)
{
    size_t need = sizeof *r + r->key_size + r->size;

    if (s->count == 0 || s->chunk[s->count - 1].used + need > CHUNK_SIZE) {
        int error = add_chunk(s);
        if (error != 0)
            return error;
    }
    struct chunk *c = &s->chunk[s->count - 1];
    uint8_t *to = c->bytes + c->used;
    memcpy(to, r, sizeof *r);
    memcpy(to + sizeof *r, key, r->key_size);
    memcpy(to + sizeof *r + r->key_size, value, r->size);
    c->used += need;
    s->records++;
    return 0;
}

/* ---- Reading ---- */

/* Records are not aligned; so a copy of the one at `at`. */
static struct spool_record record_at(const uint8_t *at)
{
    struct spool_record r;

    memcpy(&r, at, sizeof r);
    return r;
}

/* How many records from `at` on can be given together. */
static size_t run_length(const uint8_t *at, const uint8_t *end)
{
    struct spool_record first = record_at(at);
    size_t stride = sizeof first + first.size, n = 1;

    if (first.key_size > 0)
        return 1;
    for (at += stride; at < end; at += stride, n++) {
        struct spool_record r = record_at(at);
        if (r.key_size != 0 || r.size != first.size)
            break;
    }
    return n;
}

static int chunk_each(const uint8_t *at, size_t used, spool_fn fn, void *arg)
{
    const uint8_t *end = at + used;
    int status = 0;

    while (at < end && status == 0) {
        struct spool_record first = record_at(at);
        size_t n = run_length(at, end);
        status = fn(&first, at, n, arg);
        at += n * (sizeof first + first.key_size + first.size);
    }
    return status;
}

int spool_each(struct spool *s, spool_fn fn, void *arg)
{
    uint8_t *buffer = s->fd >= 0 ? malloc(CHUNK_SIZE) : NULL;
    int result = s->fd >= 0 && !buffer ? ENOMEM : 0;

    for (size_t i = 0; i < s->count && result == 0; i++) {
        struct chunk *c = &s->chunk[i];
        result = c->bytes ? 0 : chunk_read(s, i, buffer);
        if (result == 0)
            result = chunk_each(c->bytes ? c->bytes : buffer, c->used, fn, arg);
    }
    free(buffer);
    return result;
}
