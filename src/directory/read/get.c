/* Point reads: what one key has, or several, and the face of files. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/number.h"
#include "directory/dir.h"
#include "directory/read/lookup.h"

void deltafs_records_destroy(deltafs_records *records)
{
    struct answer *c = (struct answer *)(void *)records;

    if (!c)
        return;
    free(c->record);
    buffer_fini(&c->missing);
    buffer_fini(&c->bytes);
    free(c);
}

/* Each missing label once, ascending. */
static void answer_sort_missing(struct answer *c)
{
    uint64_t *label = (uint64_t *)(void *)c->missing.bytes;
    size_t n = 0;

    if (c->public.missing_count == 0)
        return;
    qsort(label, c->public.missing_count, sizeof *label, compare_u64);
    for (size_t i = 0; i < c->public.missing_count; i++)
        if (n == 0 || label[i] != label[n - 1])
            label[n++] = label[i];
    c->public.missing_count = n;
    c->public.missing = label;
}

/* The answer as the caller gets it: NULL if it is empty. */
static deltafs_records *answer_finish(const struct reader *r, struct answer *c)
{
    const uint8_t *at = c ? c->bytes.bytes : NULL;
    size_t n = 0, missing = 0;

    if (!c)
        return NULL;
    if (c->is_dropped || (c->public.count == 0 && c->public.missing_count == 0)) {
        deltafs_records_destroy(&c->public);
        return NULL;
    }
    answer_sort_missing(c);
    for (size_t i = 0; i < c->public.count; i++) {
        struct deltafs_record record = c->record[i];
        size_t stored = record.size + (record.key_size > 0 ? 1 + record.key_size : 0);
        record_split(r, at, stored, &record); /* as it was done before it came here */
        at += stored;
        /* Of an epoch that is missing nothing is returned. Both are in the order of labels. */
        while (missing < c->public.missing_count && c->public.missing[missing] < record.label)
            missing++;
        if (missing == c->public.missing_count || c->public.missing[missing] != record.label)
            c->record[n++] = record;
    }
    c->public.record = c->record;
    c->public.count = n;
    return &c->public;
}

static int wanted_compare(const void *a, const void *b)
{
    const struct lookup_key *x = a, *y = b;

    return compare_two(x->partition, y->partition, x->key, y->key);
}

/* Partition by partition, behind errors too; returns the first. */
static int get_sorted(struct reader *r, const struct lookup_key *w, size_t n, uint32_t first, uint32_t last,
                      struct answer **out, struct error *e)
{
    struct part_reader *p;
    int status = DELTAFS_OK;

    for (size_t at = 0, end; at < n; at = end) {
        for (end = at + 1; end < n && w[end].partition == w[at].partition; end++)
            ;
        struct error *later = error_after(status, e);
        int rc = reader_part(r, w[at].partition, &p, later);
        for (size_t i = at; i < end && rc != DELTAFS_OK; i++)
            answer_miss(r, out[w[i].place], first, last);
        if (rc == DELTAFS_OK)
            rc = lookup_get(r, p, w + at, end - at, first, last, out, later);
        status = error_first(status, rc);
    }
    return status;
}

/* Epoch by epoch in all partitions, behind errors too; returns the first. */
static int get_everywhere(struct reader *r, struct lookup_key *w, size_t n, uint32_t first, uint32_t end,
                          struct answer **out, struct error *e)
{
    int status = DELTAFS_OK;

    for (uint32_t epoch = first; epoch < end; epoch++)
        for (uint32_t p = 0; p < r->manifest.partitions; p++) {
            for (size_t i = 0; i < n; i++)
                w[i].partition = p;
            qsort(w, n, sizeof *w, wanted_compare);
            int rc = get_sorted(r, w, n, epoch, epoch + 1, out, error_after(status, e));
            status = error_first(status, rc);
        }
    return status;
}

/* The epochs that are placed in the same way together, behind errors too; returns the first. */
static int get_epochs(struct reader *r, struct lookup_key *w, size_t n, const struct deltafs_range *range,
                      struct answer **out, struct error *e)
{
    uint32_t first, end;
    int status = DELTAFS_OK;

    reader_epochs(r, range, &first, &end);
    if (manifest_partitioner(&r->manifest, first, NULL).is_unknown)
        return get_everywhere(r, w, n, first, end, out, e);
    for (uint64_t next; first < end; first = (uint32_t)next) {
        const struct partitioner by = manifest_partitioner(&r->manifest, first, &next);
        next = next < end ? next : end;
        for (size_t i = 0; i < n; i++)
            w[i].partition = partition_of(&by, w[i].key);
        qsort(w, n, sizeof *w, wanted_compare);
        int rc = get_sorted(r, w, n, first, (uint32_t)next, out, error_after(status, e));
        status = error_first(status, rc);
    }
    return status;
}

static int get_not_found(const struct reader *r, const struct lookup_key *w, int has_range, struct error *e)
{
    const char *where = has_range ? " in these epochs" : "";

    if (w->size > 0)
        return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: key '%.*s' has no records%s", r->path, (int)w->size,
                         (const char *)w->bytes, where);
    return error_set(e, DELTAFS_ERR_NOT_FOUND, "%s: key %llu has no records%s", r->path, (unsigned long long)w->key,
                     where);
}

/* Get the `n` keys of w, whose `place` is their index; takes w over. */
static int get_wanted(struct reader *r, struct lookup_key *w, size_t n, const struct deltafs_range *range,
                      deltafs_records **out, struct error *e)
{
    struct answer **c = calloc(n + 1, sizeof *c);
    int status = c ? DELTAFS_OK : error_no_memory(e, n * sizeof *c, "keys");

    for (size_t i = 0; i < n && status == DELTAFS_OK; i++) {
        c[i] = calloc(1, sizeof *c[i]);
        if (!c[i])
            status = error_no_memory(e, sizeof *c[i], "records");
    }
    if (status == DELTAFS_OK)
        status = get_epochs(r, w, n, range, c, e);
    for (size_t i = 0; i < n; i++)
        out[i] = c ? answer_finish(r, c[i]) : NULL;
    for (size_t i = 0; i < n && status == DELTAFS_OK; i++)
        if (!out[w[i].place])
            status = get_not_found(r, &w[i], range != NULL, e);
    free(w);
    free(c);
    return status;
}

/* What both kinds of keys begin with: *w gets room for `n` keys. */
static int get_begin(deltafs_dir *dir, enum option_keys kind, size_t n, const void *keys, deltafs_records **out,
                     struct lookup_key **w, struct reader **r, struct error **e)
{
    for (size_t i = 0; out && i < n; i++)
        out[i] = NULL;
    int status = dir_reader(dir, "deltafs_get", NULL, r, e);
    if (status != DELTAFS_OK)
        return status;
    *w = NULL;
    if (n > 0 && (!keys || !out))
        status = error_set(*e, DELTAFS_ERR_INVALID, "deltafs_get: keys and out must be given");
    else if ((*r)->manifest.keys != kind)
        status = error_set(*e, DELTAFS_ERR_MODE, "%s: its keys are %s", (*r)->path,
                           kind == KEYS_U64 ? "bytes; use deltafs_get_bytes" : "numbers; use deltafs_get");
    else if (!(*w = calloc(n + 1, sizeof **w)))
        status = error_no_memory(*e, n * sizeof **w, "keys");
    return dir_end(dir, status);
}

int deltafs_get_many(deltafs_dir *dir, size_t n, const uint64_t *keys, const struct deltafs_range *range,
                     deltafs_records **out)
{
    struct reader *r;
    struct error *e;
    struct lookup_key *w;
    int status = get_begin(dir, KEYS_U64, n, keys, out, &w, &r, &e);

    if (status != DELTAFS_OK)
        return status;
    for (size_t i = 0; i < n; i++)
        w[i] = (struct lookup_key){.key = keys[i], .place = i};
    return dir_end(dir, get_wanted(r, w, n, range, out, e));
}

int deltafs_get_many_bytes(deltafs_dir *dir, size_t n, const void *const *keys, const size_t *key_sizes,
                           const struct deltafs_range *range, deltafs_records **out)
{
    struct reader *r;
    struct error *e;
    struct lookup_key *w;
    int status = get_begin(dir, KEYS_BYTES, n, key_sizes ? (const void *)keys : NULL, out, &w, &r, &e);

    if (status != DELTAFS_OK)
        return status;
    for (size_t i = 0; i < n; i++) {
        if (!keys[i] || key_sizes[i] < 1 || key_sizes[i] > KEY_BYTES_MAX) {
            free(w);
            return dir_end(dir,
                           error_set(e, DELTAFS_ERR_INVALID, "deltafs_get_bytes: a key of %zu bytes; it has 1 to %d",
                                     keys[i] ? key_sizes[i] : 0, KEY_BYTES_MAX));
        }
        w[i] = (struct lookup_key){
            .key = hash_bytes(keys[i], key_sizes[i]), .bytes = keys[i], .size = key_sizes[i], .place = i};
    }
    return dir_end(dir, get_wanted(r, w, n, range, out, e));
}

int deltafs_get(deltafs_dir *dir, uint64_t key, const struct deltafs_range *range, deltafs_records **out)
{
    return deltafs_get_many(dir, 1, &key, range, out);
}

int deltafs_get_bytes(deltafs_dir *dir, const void *key, size_t key_size, const struct deltafs_range *range,
                      deltafs_records **out)
{
    return deltafs_get_many_bytes(dir, 1, &key, &key_size, range, out);
}

/* ---- Files ---- */

struct deltafs_file {
    deltafs_dir *dir;
    uint64_t key;
    size_t name_size; /* of a key of bytes; 0: it is a number */
    char name[KEY_BYTES_MAX];
    int is_written;
    struct error failed;   /* of the first write that failed */
    struct buffer written; /* what was written so far */
    size_t used;
    deltafs_records *read; /* the file's records, one after the other the file */
    size_t record, at;     /* where the next byte to be read is */
};

int deltafs_openat(deltafs_dir *dir, const char *name, int flags, deltafs_file **out)
{
    struct error *e = deltafs_private_thread_error();
    int access = flags & O_ACCMODE;
    uint64_t key = 0;

    if (!dir || !name || !out)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_openat: directory, name and out must be given");
    size_t name_size = dir_keys(dir) == KEYS_BYTES ? strlen(name) : 0;
    if (dir_keys(dir) == KEYS_BYTES ? name_size < 1 || name_size > KEY_BYTES_MAX : number_parse(name, &key) != 0)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_openat: '%s' is no key; a subfile's name is %s", name,
                         dir_keys(dir) == KEYS_BYTES ? "of 1 to 255 bytes" : "a number");
    if (access == O_RDWR)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_openat: a subfile is opened for reading or for writing");
    deltafs_file *f = calloc(1, sizeof *f);
    if (!f)
        return error_no_memory(e, sizeof *f, "a file");
    f->dir = dir;
    f->key = key;
    f->name_size = name_size;
    memcpy(f->name, name, name_size);
    f->is_written = access == O_WRONLY;
    int status = f->is_written   ? dir_must_write(dir, "deltafs_openat")
                 : name_size > 0 ? deltafs_get_bytes(dir, name, name_size, NULL, &f->read)
                                 : deltafs_get(dir, key, NULL, &f->read);
    if (status != DELTAFS_OK) {
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

int deltafs_write(deltafs_file *f, const void *bytes, size_t size)
{
    struct error *e = deltafs_private_thread_error();

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
    return DELTAFS_OK;
}

int deltafs_read(deltafs_file *f, void *bytes, size_t size, size_t *got)
{
    uint8_t *p = bytes;
    size_t done = 0;

    if (!f || f->is_written || (size > 0 && !bytes) || !got)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_MODE,
                         "deltafs_read: the file is not open for reading");
    while (done < size && f->record < f->read->count) {
        const struct deltafs_record *r = &f->read->record[f->record];
        size_t part = r->size - f->at < size - done ? r->size - f->at : size - done;
        memcpy(p + done, (const uint8_t *)r->value + f->at, part);
        done += part;
        f->at += part;
        if (f->at == r->size) {
            f->record++;
            f->at = 0;
        }
    }
    *got = done;
    return DELTAFS_OK;
}

int deltafs_file_close(deltafs_file *f)
{
    int status = DELTAFS_OK;

    if (!f)
        return DELTAFS_OK;
    if (f->failed.status != DELTAFS_OK) {
        *deltafs_private_thread_error() = f->failed;
        status = f->failed.status;
    } else if (f->is_written) {
        status = f->name_size > 0 ? deltafs_append_bytes(f->dir, f->name, f->name_size, f->written.bytes, f->used)
                                  : deltafs_append(f->dir, f->key, f->written.bytes, f->used);
    }
    deltafs_records_destroy(f->read);
    buffer_fini(&f->written);
    free(f);
    return status;
}
