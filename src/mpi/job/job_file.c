/* Files as MPI-IO has them: a logical file, or while a pool runs at a mount point above the path, a file of that. The
 * ranks agree on which, as rank 0 finds it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <deltafs/deltafs_mpi.h>
#include <deltafs/deltafs_pool.h>
#include "base/path.h"
#include "mpi/job/logical_job.h"

#define SPAN_MAX ((size_t)256 << 10) /* bytes that are read together */
#define GAP_MAX  4096                /* and that are not needed, in a row */

struct deltafs_mpi_file {
    deltafs_logical *logical; /* NULL: a file of a pool */
    struct logical_job *job;
    deltafs_pool *pool;
    deltafs_pool_file *file;
    char inside[DELTAFS_POOL_PATH_ROOM]; /* its path in the pool */
    int flags;
};

/* After a call about a file of a pool, which the library names by its path in it. */
static int pool_result(const char *path, int status, struct error *e)
{
    if (error_of_call(status, e) == DELTAFS_OK)
        return DELTAFS_OK;
    return error_set(e, status, "%s: in its pool: %s", path, e->text);
}

/* ---- Opening ---- */

/* Rank 0: look for a pool. If there is one, `call` gets the flags and the path, so that it is not empty. */
static int find_pool(struct deltafs_mpi_file *f, const char *path, int flags, struct bytes *call, struct error *e)
{
    if (!path || !*path || (flags & O_ACCMODE) == O_ACCMODE)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_mpi_file_open: path, flags and out must be given");
    int status = deltafs_pool_open_path(path, &f->pool, f->inside);
    if (status == DELTAFS_ERR_NOT_FOUND)
        return e->status = DELTAFS_OK;
    if (error_of_call(status, e) != DELTAFS_OK)
        return error_set(e, status, "%s: %s", path, e->text);
    char *whole = path_absolute(path);
    status = whole ? bytes_append(call, &flags, sizeof flags, e) : error_no_memory(e, strlen(path), "a path");
    if (status == DELTAFS_OK)
        status = bytes_append(call, whole, strlen(whole) + 1, e);
    free(whole);
    return status;
}

static int file_open(struct deltafs_mpi_file *f, int flags, struct error *e)
{
    mode_t mask = umask(022);

    umask(mask);
    return pool_result(f->job->path, deltafs_pool_file_open(f->pool, f->inside, flags, 0666 & ~mask, &f->file), e);
}

/* Rank 0 creates or empties the file before the others open it. */
static int open_in_pool(struct deltafs_mpi_file *f, const struct bytes *call, struct error *e)
{
    struct logical_job *j = f->job;
    const char *path = (const char *)call->buffer.bytes + sizeof f->flags;

    memcpy(&f->flags, call->buffer.bytes, sizeof f->flags);
    if (!(j->path = strdup(path)))
        error_no_memory(e, strlen(path), "a path");
    else if (j->group.rank == 0)
        file_open(f, f->flags, e);
    else
        error_of_call(deltafs_pool_open_path(path, &f->pool, f->inside), e);
    if (mpi_agree(&j->group, e) != DELTAFS_OK)
        return e->status;
    if (j->group.rank > 0)
        file_open(f, f->flags & ~(O_CREAT | O_EXCL | O_TRUNC), e);
    return mpi_agree(&j->group, e);
}

/* `f` is NULL if there is no memory for it, as *e says. */
static int open_either(struct logical_job *j, struct deltafs_mpi_file *f, const char *path, int flags,
                       const deltafs_options *options, struct error *e)
{
    struct bytes call = {{0}, 0};

    if (e->status == DELTAFS_OK && j->group.rank == 0)
        find_pool(f, path, flags, &call, e);
    int status = mpi_broadcast_bytes(&j->group, &call, e);
    if (status == DELTAFS_OK)
        status = mpi_agree(&j->group, e);
    if (status == DELTAFS_OK && call.used > 0)
        status = open_in_pool(f, &call, e);
    else if (status == DELTAFS_OK)
        status = logical_job_open(j, path, flags, options, &f->logical, e);
    buffer_fini(&call.buffer);
    return status;
}

static void file_free(struct deltafs_mpi_file *f)
{
    deltafs_pool_file_close(f->file);
    deltafs_pool_close(f->pool);
    free(f);
}

int deltafs_mpi_file_open(MPI_Comm comm, const char *path, int flags, const deltafs_options *options,
                          deltafs_mpi_file **out)
{
    struct error *e = deltafs_private_thread_error();
    struct deltafs_mpi_file *f = calloc(1, sizeof *f);
    struct logical_job *j;

    if (logical_job_create(comm, &j, e) != DELTAFS_OK) {
        free(f);
        return e->status;
    }
    e->status = DELTAFS_OK;
    if (!f)
        error_no_memory(e, sizeof *f, "a file's handle");
    else
        f->job = j;
    if (!out)
        error_set(e, DELTAFS_ERR_INVALID, "deltafs_mpi_file_open: path, flags and out must be given");
    int status = open_either(j, f, path, flags, options, e);
    if (status == DELTAFS_OK) {
        *out = f;
        return status;
    }
    logical_job_destroy(&j->group);
    if (f)
        file_free(f);
    return status;
}

int deltafs_mpi_file_close(deltafs_mpi_file *file)
{
    struct error *e = deltafs_private_thread_error();

    e->status = DELTAFS_OK;
    /* After the close of all ranks, any of them may remove the file. */
    int status = file->logical ? deltafs_logical_close(file->logical) : mpi_agree(&file->job->group, e);
    if (!file->logical)
        logical_job_destroy(&file->job->group);
    file_free(file);
    return status;
}

int deltafs_mpi_file_remove(const char *path)
{
    struct error *e = deltafs_private_thread_error();
    char inside[DELTAFS_POOL_PATH_ROOM];
    deltafs_pool *pool;
    int status = deltafs_pool_open_path(path, &pool, inside);

    if (status == DELTAFS_ERR_NOT_FOUND)
        return deltafs_logical_remove(path);
    if (status != DELTAFS_OK)
        return error_set(e, status, "%s: %s", path, e->text);
    status = pool_result(path, deltafs_pool_unlink(pool, inside), e);
    deltafs_pool_close(pool);
    return status;
}

int deltafs_mpi_file_is_pooled(const deltafs_mpi_file *file)
{
    return !file->logical;
}

/* ---- Bytes ---- */

int deltafs_mpi_file_write_list(deltafs_mpi_file *file, size_t n, const struct deltafs_extent *extent,
                                const void *bytes)
{
    if (file->logical)
        return deltafs_logical_write_list(file->logical, n, extent, bytes);
    int status = deltafs_pool_file_write_list(file->file, n, extent, bytes);
    return pool_result(file->job->path, status, deltafs_private_thread_error());
}

/* How many extents are read together with what is between them. */
static size_t count_near(size_t n, const struct deltafs_extent *x)
{
    size_t k = 1;

    while (k < n && x[k].offset >= x[k - 1].offset + x[k - 1].size &&
           x[k].offset - x[k - 1].offset - x[k - 1].size <= GAP_MAX &&
           x[k].offset + x[k].size - x[0].offset <= SPAN_MAX)
        k++;
    return k;
}

/* Read them by way of `span`; *got as that of deltafs_logical_read_list. */
static int read_near(deltafs_pool_file *file, size_t n, const struct deltafs_extent *x, uint8_t *span, uint8_t *bytes,
                     size_t *got)
{
    size_t size = (size_t)(x[n - 1].offset + x[n - 1].size - x[0].offset), part = 0, at = 0;
    int status = deltafs_pool_file_read(file, x[0].offset, span, size, &part);

    memset(span + part, 0, size - part);
    for (size_t i = 0; i < n; at += (size_t)x[i++].size) {
        size_t from = (size_t)(x[i].offset - x[0].offset), of = (size_t)x[i].size;
        memcpy(bytes + at, span + from, of);
        if (from < part)
            *got = at + (part - from < of ? part - from : of);
    }
    return status;
}

static int read_pieces(deltafs_pool_file *file, size_t n, const struct deltafs_extent *x, uint8_t *bytes, size_t *got)
{
    size_t at = 0, last = 0, k;
    uint8_t *span = n > 1 ? malloc(SPAN_MAX) : NULL;
    int status = DELTAFS_OK;

    for (size_t i = 0; i < n && status == DELTAFS_OK; i += k) {
        size_t part = 0, size = (size_t)x[i].size;
        k = span ? count_near(n - i, x + i) : 1;
        if (k > 1) {
            status = read_near(file, k, x + i, span, bytes + at, &part);
            for (size_t m = 1; m < k; m++)
                size += (size_t)x[i + m].size;
        } else {
            status = deltafs_pool_file_read(file, x[i].offset, bytes + at, size, &part);
            memset(bytes + at + part, 0, size - part);
        }
        last = part > 0 ? at + part : last;
        at += size;
    }
    free(span);
    if (status == DELTAFS_OK)
        *got = last;
    return status;
}

int deltafs_mpi_file_read_list(deltafs_mpi_file *file, size_t n, const struct deltafs_extent *extent, void *bytes,
                               size_t *got)
{
    if (file->logical)
        return deltafs_logical_read_list(file->logical, n, extent, bytes, got);
    int status = read_pieces(file->file, n, extent, bytes, got);
    return pool_result(file->job->path, status, deltafs_private_thread_error());
}

/* ---- The whole file ---- */

int deltafs_mpi_file_size(deltafs_mpi_file *file, uint64_t *size)
{
    struct deltafs_pool_stat s = {.struct_size = sizeof s};

    if (file->logical)
        return deltafs_logical_size(file->logical, size);
    int status = deltafs_pool_file_stat(file->file, &s);
    if (status == DELTAFS_OK)
        *size = s.size;
    return pool_result(file->job->path, status, deltafs_private_thread_error());
}

/* What has returned is visible: only the ranks have to meet. */
static int meet(const deltafs_mpi_file *f)
{
    struct error *e = deltafs_private_thread_error();

    e->status = DELTAFS_OK;
    return (f->flags & O_ACCMODE) == O_RDONLY ? DELTAFS_OK : mpi_agree(&f->job->group, e);
}

int deltafs_mpi_file_sync(deltafs_mpi_file *file)
{
    return file->logical ? deltafs_logical_sync(file->logical) : meet(file);
}

int deltafs_mpi_file_exchange(deltafs_mpi_file *file)
{
    return file->logical ? deltafs_logical_exchange(file->logical) : meet(file);
}

/* By rank 0, when all ranks have written what they write before it. */
static int resize(deltafs_mpi_file *f, uint64_t size, int (*call)(deltafs_pool_file *file, uint64_t size))
{
    struct error *e = deltafs_private_thread_error();

    if (meet(f) != DELTAFS_OK)
        return e->status;
    if (f->job->group.rank == 0)
        pool_result(f->job->path, call(f->file, size), e);
    return mpi_agree(&f->job->group, e);
}

int deltafs_mpi_file_truncate(deltafs_mpi_file *file, uint64_t size)
{
    return file->logical ? deltafs_logical_truncate(file->logical, size)
                         : resize(file, size, deltafs_pool_file_truncate);
}

int deltafs_mpi_file_extend(deltafs_mpi_file *file, uint64_t size)
{
    return file->logical ? deltafs_logical_extend(file->logical, size) : resize(file, size, deltafs_pool_file_extend);
}

int deltafs_mpi_file_set_atomic(deltafs_mpi_file *file, int is_atomic)
{
    if (file->logical)
        return deltafs_logical_set_atomic(file->logical, is_atomic);
    return is_atomic ? error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                                 "%s: a file of a pool has no atomic mode", file->job->path)
                     : DELTAFS_OK;
}
