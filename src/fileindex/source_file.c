#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/coding.h"
#include "fileindex/source_file.h"
#include "hdf5/h5values.h"
#include "logical/logical.h"

#define SCAN_BYTES (1u << 20)         /* read at once */
#define SETTLE_NS  UINT64_C(20000000) /* more than the step in which file systems of one host give out times */

int key_file_kind(struct io *io, const char *path, char *kind, struct error *e)
{
    int status = container_kind(io, path, kind, e);

    if (status == DELTAFS_OK && *kind == 'd')
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is a directory of DeltaFS, which has its keys already", path);
    return status;
}

/* It opens its files by an io of its own. */
static int key_file_open_alone(struct key_file *f, const struct io *io, const char *path)
{
    char room[PATH_ROOM];

    return deltafs_logical_open(io_find(io, path, room), O_RDONLY, NULL, &f->logical);
}

int key_file_open(struct key_file *f, struct io *io, const char *path, char kind, key_file_open_fn open, void *ctx,
                  struct error *e)
{
    uint64_t mtime;
    int status;

    *f = (struct key_file){.plain = {.fd = -1, .direct = -1}};
    if (kind == 'f') {
        status = error_of_call(open ? open(ctx, path, &f->logical) : key_file_open_alone(f, io, path), e);
    } else {
        status = io_file_open(io, path, O_RDONLY, &f->plain, e);
        if (status == DELTAFS_OK)
            status = io_file_mtime(&f->plain, &mtime, e); /* a regular file? */
    }
    f->kind = kind;
    if (status != DELTAFS_OK)
        key_file_close(f);
    return status;
}

void key_file_close(struct key_file *f)
{
    h5values_close(f->values);
    if (f->kind == 'f')
        deltafs_logical_close(f->logical);
    else if (f->kind == '-')
        io_file_close(&f->plain, error_ignored()); /* opened for reading: nothing can be lost */
    *f = (struct key_file){.plain = {.fd = -1, .direct = -1}};
}

static void logical_identity(const deltafs_logical *l, struct source_identity *out)
{
    out->size = l->size;
    /* Of what is written: who opens the file and writes nothing leaves a session, too. */
    out->order = l->map.order;
    for (size_t i = 0; i < l->known_count; i++)
        if (l->known[i].logs > 0 && l->known[i].number > out->session)
            out->session = l->known[i].number;
    memcpy(out->uuid_text, l->container.uuid_text, sizeof out->uuid_text);
}

/* A write within the same step of the clock as the last one does not change the time: let that step be over. */
static void wait_for_clock(uint64_t mtime)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (ns >= mtime && ns - mtime < SETTLE_NS)
        nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
}

static int plain_identity(struct io_file *f, int settle, struct source_identity *out, struct error *e)
{
    int status = io_file_mtime(f, &out->mtime, e);

    if (status == DELTAFS_OK && settle) {
        wait_for_clock(out->mtime);
        status = io_file_mtime(f, &out->mtime, e);
    }
    return status == DELTAFS_OK ? io_file_size(f, &out->size, e) : status;
}

int key_file_is_incomplete(const struct key_file *f)
{
    return f->kind == 'f' && f->logical->is_cut;
}

int key_file_identity(struct key_file *f, int settle, struct source_identity *out, struct error *e)
{
    *out = (struct source_identity){.kind = f->kind};
    if (f->kind == '-')
        return plain_identity(&f->plain, settle, out, e);
    logical_identity(f->logical, out);
    return DELTAFS_OK;
}

int source_identity_is_same(const struct source_identity *a, const struct source_identity *b)
{
    return a->kind == b->kind && a->size == b->size && a->mtime == b->mtime && a->session == b->session &&
           a->order == b->order && strcmp(a->uuid_text, b->uuid_text) == 0;
}

int key_file_read(struct key_file *f, size_t n, const struct deltafs_extent *extent, void *bytes, struct error *e)
{
    uint8_t *to = bytes;
    size_t got;
    int status = DELTAFS_OK;

    if (f->kind == 'f')
        return error_of_call(deltafs_logical_read_list(f->logical, n, extent, bytes, &got), e);
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        status = io_file_read(&f->plain, extent[i].offset, to, (size_t)extent[i].size, e);
        to += extent[i].size;
    }
    return status;
}

static int read_bytes(void *file, uint64_t offset, void *bytes, size_t size, struct error *e)
{
    const struct deltafs_extent extent = {offset, size};

    return key_file_read(file, 1, &extent, bytes, e);
}

int key_file_elements(struct key_file *f, const struct deltafs_column *c, const char *path, uint64_t first,
                      uint64_t rows, void *out, struct error *e)
{
    struct source_identity is;
    int status = f->values ? DELTAFS_OK : key_file_identity(f, 0, &is, e);

    if (status == DELTAFS_OK && !f->values) {
        const struct h5source source = {path, is.size, read_bytes, f};
        status = h5values_open(f->hdf5, &source, &f->values, e);
    }
    return status == DELTAFS_OK ? h5values_read(f->values, c->dataset, (size_t)c->stride, first, rows, out, e) : status;
}

void key_file_io_stat(const struct key_file *f, struct deltafs_io_stat *sum)
{
    struct deltafs_io_stat io = {.struct_size = sizeof io};

    if (f->kind != 'f')
        return;
    deltafs_logical_io_stat(f->logical, &io);
    sum->reads += io.reads;
    sum->bytes_read += io.bytes_read;
}

/* ---- Values ---- */

static uint64_t key_decode(const struct deltafs_column *c, const uint8_t *p)
{
    uint64_t key = 0;

    for (uint32_t i = 0; i < c->size; i++)
        key = key << 8 | p[c->is_big_endian ? i : c->size - 1 - i];
    return key;
}

int key_column_decode(const struct deltafs_column *c, const uint8_t *bytes, size_t n, uint64_t place, const char *path,
                      uint64_t *key, struct error *e)
{
    uint64_t any = 0, sign = c->kind == 'i' ? UINT64_C(1) << (8 * c->size - 1) : 0;

    if (c->size == 8 && !c->is_big_endian)
        for (size_t i = 0; i < n; i++)
            any |= key[i] = get_u64(bytes + i * c->stride);
    else
        for (size_t i = 0; i < n; i++)
            any |= key[i] = key_decode(c, bytes + i * c->stride);
    for (size_t i = 0; i < n && (any & sign); i++)
        if (key[i] & sign)
            return error_set(e, DELTAFS_ERR_SCHEMA,
                             "%s: at offset %" PRIu64 ": the key is negative; keys must be 0 or more", path,
                             place + i * c->stride);
    return DELTAFS_OK;
}

int key_column_scan(struct key_file *f, const struct deltafs_column *c, uint64_t from, uint64_t end, const char *path,
                    key_batch_fn fn, void *arg, struct error *e)
{
    uint64_t most = SCAN_BYTES / c->stride + 1;

    if (from >= end)
        return DELTAFS_OK;
    most = most < end - from ? most : end - from;
    size_t room = (size_t)(c->dataset ? most * c->stride : (most - 1) * c->stride + c->size);
    uint8_t *bytes = malloc(room);
    uint64_t *key = malloc((size_t)most * sizeof *key);
    int status = bytes && key ? DELTAFS_OK : error_no_memory(e, room + (size_t)most * sizeof *key, "keys");

    while (from < end && status == DELTAFS_OK) {
        uint64_t run = column_run(c, from, end);
        size_t n = (size_t)(run < most ? run : most);
        const struct deltafs_extent extent = {column_place(c, from), (n - 1) * c->stride + c->size};
        status = c->dataset ? key_file_elements(f, c, path, from, n, bytes, e) : key_file_read(f, 1, &extent, bytes, e);
        if (status == DELTAFS_OK)
            status = key_column_decode(c, bytes + (c->dataset ? c->offset : 0), n, extent.offset, path, key, e);
        if (status == DELTAFS_OK)
            status = fn(arg, from, key, n, e);
        from += n;
    }
    free(bytes);
    free(key);
    return status;
}

void column_value(const struct deltafs_column *c, const uint8_t *bytes, uint8_t *out)
{
    int is_number = c->kind == 'f' || c->kind == 'i' || c->kind == 'u';

    if (!c->is_big_endian || !is_number)
        memcpy(out, bytes, c->size);
    else
        for (uint32_t i = 0; i < c->size; i++)
            out[i] = bytes[c->size - 1 - i];
}
