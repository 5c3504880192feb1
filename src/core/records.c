/* Point reads: what one key has, or several, and the face of files. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "core/dir.h"
#include "core/partition.h"
#include "core/reader.h"

/* ---- Collecting records ---- */

/* What deltafs_records is inside: the records, and a buffer that holds their values one after the other. Until it is
 * finished, record.value is the offset in the buffer. */
struct collection {
    deltafs_records public;
    struct deltafs_record *record;
    size_t capacity;
    struct buffer values;
    size_t used;
    struct error *error;
};

void deltafs_records_destroy(deltafs_records *records)
{
    struct collection *c = (struct collection *)(void *)records;

    if (!c)
        return;
    free(c->record);
    buffer_fini(&c->values);
    free(c);
}

static int collect(const struct deltafs_record *record, void *arg)
{
    struct collection *c = arg;

    if (c->public.count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 4;
        struct deltafs_record *grown = realloc(c->record, capacity * sizeof *grown);
        if (!grown)
            return error_no_memory(c->error, capacity * sizeof *grown, "records");
        c->record = grown;
        c->capacity = capacity;
    }
    int status = buffer_reserve(&c->values, c->used + record->size + 1, "records", c->error);
    if (status != DELTAFS_OK)
        return status;
    memcpy(c->values.bytes + c->used, record->value, record->size);
    c->record[c->public.count++] = *record;
    c->used += record->size;
    return DELTAFS_OK;
}

/* The collection as the caller gets it: NULL if it is empty. */
static deltafs_records *collection_finish(struct collection *c)
{
    size_t at = 0;

    if (!c)
        return NULL;
    if (c->public.count == 0) {
        deltafs_records_destroy(&c->public);
        return NULL;
    }
    for (size_t i = 0; i < c->public.count; i++) {
        c->record[i].value = c->values.bytes + at;
        at += c->record[i].size;
    }
    c->public.record = c->record;
    return &c->public;
}

/* ---- Getting ---- */

/* A key of a batch, in the order of reading. */
struct wanted {
    uint32_t partition;
    uint64_t key;
    size_t place; /* in the caller's arrays */
};

static int wanted_compare(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;

    if (x->partition != y->partition)
        return x->partition < y->partition ? -1 : 1;
    return (x->key > y->key) - (x->key < y->key);
}

/* All keys of one partition, epoch by epoch, so that keys of one leaf or block share its reading. Remembers the first
 * error in *e, and goes on with the next epoch. */
static int get_partition(struct reader *r, const struct wanted *w, size_t n, const struct deltafs_range *range,
                         struct collection **out, struct error *e)
{
    struct part_reader *p;
    struct error failed;
    uint32_t epoch, end;
    int first = reader_part(r, w[0].partition, &p, e);

    if (first != DELTAFS_OK)
        return first;
    reader_epochs(r, range, &epoch, &end);
    for (; epoch < end; epoch++) {
        for (size_t i = 0; i < n; i++) {
            struct collection *c = out[w[i].place];
            c->error = &failed;
            size_t count = c->public.count, used = c->used;
            if (part_get(r, p, epoch, w[i].key, collect, c, &failed) == DELTAFS_OK)
                continue;
            /* An epoch of which a part is missing is left out. */
            c->public.count = count;
            c->used = used;
            if (first == DELTAFS_OK) {
                *e = failed;
                first = failed.status;
            }
        }
    }
    return first;
}

static int get_sorted(struct reader *r, const struct wanted *w, size_t n, const struct deltafs_range *range,
                      struct collection **out, struct error *e)
{
    struct error failed;
    int first = DELTAFS_OK;

    for (size_t at = 0, end; at < n; at = end) {
        for (end = at + 1; end < n && w[end].partition == w[at].partition; end++)
            ;
        int status = get_partition(r, w + at, end - at, range, out, first == DELTAFS_OK ? e : &failed);
        if (first == DELTAFS_OK)
            first = status;
    }
    return first;
}

int deltafs_get_many(deltafs_dir *dir, size_t n, const uint64_t *keys, const struct deltafs_range *range,
                     deltafs_records **out)
{
    struct reader *r;
    struct error *e;

    for (size_t i = 0; out && i < n; i++)
        out[i] = NULL;
    int status = dir_reader(dir, "deltafs_get", &r, &e);
    if (status != DELTAFS_OK)
        return status;
    if (n > 0 && (!keys || !out))
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_get: keys and out must be given");
    struct wanted *w = malloc(n * sizeof *w + 1);
    struct collection **c = calloc(n + 1, sizeof *c);
    if (!w || !c)
        status = error_no_memory(e, n * sizeof *w, "keys");
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        w[i] = (struct wanted){partition_of(keys[i], r->manifest.partitions), keys[i], i};
        c[i] = calloc(1, sizeof *c[i]);
        if (!c[i])
            status = error_no_memory(e, sizeof *c[i], "records");
    }
    if (status == DELTAFS_OK) {
        qsort(w, n, sizeof *w, wanted_compare);
        status = get_sorted(r, w, n, range, c, e);
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = c ? collection_finish(c[i]) : NULL;
        if (!out[i] && status == DELTAFS_OK)
            status = error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: key %llu has no records%s", r->path,
                               (unsigned long long)keys[i], range ? " in these epochs" : "");
    }
    free(w);
    free(c);
    return status;
}

int deltafs_get(deltafs_dir *dir, uint64_t key, const struct deltafs_range *range, deltafs_records **out)
{
    return deltafs_get_many(dir, 1, &key, range, out);
}

/* ---- Files ---- */

struct deltafs_file {
    deltafs_dir *dir;
    uint64_t key;
    int is_written;
    struct error failed;   /* of the first write that failed */
    struct buffer written; /* what was written so far */
    size_t used;
    deltafs_records *read; /* the file's records, one after the other the file */
    size_t record, at;     /* where the next byte to be read stands */
};

int deltafs_openat(deltafs_dir *dir, const char *name, int flags, deltafs_file **out)
{
    struct error *e = deltafs_thread_error();
    int access = flags & O_ACCMODE;
    uint64_t key;

    if (!dir || !name || !out || number_parse(name, &key) != 0)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_openat: '%s' is no key; a subfile's name is a number",
                         name ? name : "");
    if (access == O_RDWR)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_openat: a subfile is opened for reading or for writing");
    deltafs_file *f = calloc(1, sizeof *f);
    if (!f)
        return error_no_memory(e, sizeof *f, "a file");
    f->dir = dir;
    f->key = key;
    f->is_written = access == O_WRONLY;
    int status = f->is_written ? dir_must_write(dir, "deltafs_openat") : deltafs_get(dir, key, NULL, &f->read);
    if (status != DELTAFS_OK) {
        error_set(e, status, "%s", deltafs_errmsg(dir));
        deltafs_records_destroy(f->read);
        free(f);
        return status;
    }
    *out = f;
    return DELTAFS_OK;
}

/* A write failed: the record is not whole, so its epoch must not be committed. */
static int file_spoil(deltafs_file *f, const struct error *e)
{
    if (f->failed.status == DELTAFS_OK) {
        f->failed = *e;
        deltafs_epoch_cancel(f->dir, e->text);
    }
    return e->status;
}

ssize_t deltafs_write(deltafs_file *f, const void *bytes, size_t size)
{
    struct error *e = deltafs_thread_error();

    if (!f || !f->is_written || (size > 0 && !bytes))
        return error_set(e, DELTAFS_ERR_MODE, "deltafs_write: the file is not open for writing");
    if (f->failed.status != DELTAFS_OK) {
        *e = f->failed;
        return e->status;
    }
    if (size > BLOCK_VALUE_MAX - f->used) {
        error_set(e, DELTAFS_ERR_SIZE, "deltafs_write: a record of %zu bytes; at most %u are possible", f->used + size,
                  BLOCK_VALUE_MAX);
        return file_spoil(f, e);
    }
    if (buffer_reserve(&f->written, f->used + size, "a record", e) != DELTAFS_OK)
        return file_spoil(f, e);
    if (size > 0)
        memcpy(f->written.bytes + f->used, bytes, size);
    f->used += size;
    return (ssize_t)size;
}

ssize_t deltafs_read(deltafs_file *f, void *bytes, size_t size)
{
    uint8_t *p = bytes;
    size_t got = 0;

    if (!f || f->is_written || (size > 0 && !bytes))
        return error_set(deltafs_thread_error(), DELTAFS_ERR_MODE, "deltafs_read: the file is not open for reading");
    while (got < size && f->record < f->read->count) {
        const struct deltafs_record *r = &f->read->record[f->record];
        size_t part = r->size - f->at < size - got ? r->size - f->at : size - got;
        memcpy(p + got, (const uint8_t *)r->value + f->at, part);
        got += part;
        f->at += part;
        if (f->at == r->size) {
            f->record++;
            f->at = 0;
        }
    }
    return (ssize_t)got;
}

int deltafs_file_close(deltafs_file *f)
{
    int status = DELTAFS_OK;

    if (!f)
        return DELTAFS_OK;
    if (f->failed.status != DELTAFS_OK) {
        *deltafs_thread_error() = f->failed;
        status = f->failed.status;
    } else if (f->is_written) {
        status = deltafs_append(f->dir, f->key, f->written.bytes, f->used);
        if (status != DELTAFS_OK)
            error_set(deltafs_thread_error(), status, "%s", deltafs_errmsg(f->dir));
    }
    deltafs_records_destroy(f->read);
    buffer_fini(&f->written);
    free(f);
    return status;
}
