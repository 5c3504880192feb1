#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "files.h"

struct check {
    const struct files *f;
    size_t least;
    int may_fail;
    struct files_reading *out;
    struct torture_verdict *v;
};

/* A call returned `status`: whether it failed, which it may have had to. */
static int check_failed(struct check *c, const char *call, int status, const char *message)
{
    if (status == DELTAFS_OK)
        return 0;
    if (!c->out->has_failed)
        snprintf(c->out->message, sizeof c->out->message, "%s: %s", call, message);
    c->out->has_failed = 1;
    /* Rows may have been written, and not indexed. */
    if (status == DELTAFS_ERR_CHANGED && c->f->maybe > c->f->state)
        return 1;
    if (c->may_fail == DELTAFS_OK)
        torture_lost(c->v, "%s returns %d: %s", call, status, message);
    else if (c->may_fail != FILES_ANY && status != c->may_fail)
        torture_wrong(c->v, "%s returns %d instead of %d: %s", call, status, c->may_fail, message);
    return 1;
}

static int is_missing(const uint64_t *label, size_t n, uint64_t wanted)
{
    for (size_t i = 0; i < n; i++)
        if (label[i] == wanted)
            return 1;
    return 0;
}

/* Compare the records of a key with those of the epochs from 0 to `state`; after an error some may be missing. */
static void check_records(struct check *c, uint64_t key, const deltafs_records *got, size_t state, int has_error)
{
    const struct files_shape *s = &c->f->shape;
    size_t at = 0, n = got ? got->count : 0;
    uint8_t value[FILES_VALUE];

    for (size_t i = 0; i < state; i++) {
        uint64_t label = files_label(i);
        size_t size = files_value(s, label, key, value);
        if (key >= files_records(s, i))
            continue;
        if (at < n && got->record[at].label == label) {
            const struct deltafs_record *r = &got->record[at++];
            if (r->size != size || (size > 0 && memcmp(r->value, value, size) != 0))
                torture_wrong(c->v, "key %ju has another value in epoch %ju", (uintmax_t)key, (uintmax_t)label);
        } else if (!has_error || (got && !is_missing(got->missing, got->missing_count, label))) {
            torture_lost(c->v, "key %ju: epoch %ju is missing, and nothing says so", (uintmax_t)key, (uintmax_t)label);
        }
    }
    if (at < n)
        torture_wrong(c->v, "key %ju has %zu records more than were written", (uintmax_t)key, n - at);
}

static void check_get(struct check *c, deltafs_dir *d, uint64_t key, size_t state)
{
    deltafs_records *got = NULL;
    char name[32];
    int n = snprintf(name, sizeof name, "key %ju", (uintmax_t)key);
    int status = strcmp(c->f->shape.keys, "bytes") == 0 ? deltafs_get_bytes(d, name, (size_t)n, NULL, &got)
                                                        : deltafs_get(d, key, NULL, &got);
    int has_error = status != DELTAFS_ERR_NOT_FOUND && check_failed(c, "get", status, deltafs_errmsg(d));

    check_records(c, key, got, state, has_error);
    deltafs_records_destroy(got);
}

struct scanned {
    struct check *c;
    size_t state;
    uint8_t seen[FILES_STATES + 2][FILES_KEYS];
};

static int check_scanned(const struct deltafs_record *r, void *arg)
{
    struct scanned *s = arg;
    uint64_t key = r->key;
    uint8_t value[FILES_VALUE];
    char name[32] = "";

    if (r->key_bytes && r->key_size < sizeof name) {
        memcpy(name, r->key_bytes, r->key_size);
        key = strtoull(name + strcspn(name, "0123456789"), NULL, 10);
    }
    size_t i = (size_t)(r->label / 10) - 1, size = files_value(&s->c->f->shape, r->label, key, value);

    if (r->label % 10 || r->label == 0 || i >= s->state || key >= files_records(&s->c->f->shape, i) ||
        s->seen[i][key]++ || r->size != size || (size > 0 && memcmp(r->value, value, size) != 0))
        torture_wrong(s->c->v, "scan: a record of key %ju labelled %ju that was not written, or twice", (uintmax_t)key,
                      (uintmax_t)r->label);
    return 0;
}

static void check_scan(struct check *c, deltafs_dir *d, size_t state)
{
    struct scanned s = {.c = c, .state = state};
    size_t missing = 0;

    if (check_failed(c, "scan", deltafs_scan(d, NULL, check_scanned, &s, NULL), deltafs_errmsg(d)))
        return;
    for (size_t i = 0; i < state; i++)
        for (uint64_t key = 0; key < files_records(&c->f->shape, i); key++)
            missing += !s.seen[i][key];
    if (missing > 0)
        torture_lost(c->v, "scan: %zu records are missing, and nothing says so", missing);
}

/* Verifying must find what reading found. */
static void check_verified(struct check *c, int status, const char *message)
{
    int has_failed = c->out->has_failed;

    if (!check_failed(c, "verify", status, message) && has_failed && c->may_fail == FILES_ANY)
        torture_wrong(c->v, "verify finds nothing, but there was: %s", c->out->message);
}

static void check_directory(struct check *c)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    const struct files *f = c->f;
    size_t most = f->maybe > f->state ? f->maybe : f->state;
    deltafs_dir *d;

    if (check_failed(c, "open", deltafs_open(f->path, NULL, &d), deltafs_errmsg(NULL)))
        return;
    if (!check_failed(c, "stat", deltafs_stat(d, &stat), deltafs_errmsg(d))) {
        size_t state = stat.epochs < most ? (size_t)stat.epochs : most;
        for (uint64_t key = 0; key < FILES_KEYS; key += 5)
            check_get(c, d, key, state);
        check_scan(c, d, state);
        check_verified(c, deltafs_verify(d, NULL, NULL, NULL), deltafs_errmsg(d));
        if (!c->out->has_failed && stat.epochs < c->least)
            torture_lost(c->v, "%zu epochs of %zu are there, and nothing says so", (size_t)stat.epochs, c->least);
        if (!c->out->has_failed && stat.epochs > most)
            torture_wrong(c->v, "there are %zu epochs, and %zu were written", (size_t)stat.epochs, most);
    }
    deltafs_close(d);
}

/* Each byte is what it was at one of the moments from `first` on. Of a writer that was killed, and of one that did not
 * sync what it closed, some writes may be gone: the file says then that it is not closed, or not complete. If the
 * writer that was killed had emptied the file, the sessions before it are removed, and without its writes there is
 * nothing. */
static int is_past(const struct files *f, const uint8_t *bytes, size_t n, size_t first)
{
    for (size_t i = 0; i < n; i++) {
        int is_right = (i < f->size && bytes[i] == f->bytes[i]) || (f->was_emptied && bytes[i] == 0);
        for (size_t k = first; k < f->state && !is_right; k++)
            is_right = bytes[i] == f->past[k][i];
        if (!is_right)
            return 0;
    }
    return 1;
}

/* Of writes that failed, each byte may be there or not; so may be a truncation before them. */
static int is_written(const struct files *f, const uint8_t *bytes, size_t n)
{
    size_t least = f->is_emptied ? 0 : f->size < f->other_size ? f->size : f->other_size;
    size_t most = f->size > f->other_size ? f->size : f->other_size;

    if (f->maybe <= f->state)
        return n == f->size && memcmp(bytes, f->bytes, n) == 0;
    if (f->shape.kind == FILES_LOGICAL && f->cut < least)
        least = f->cut;
    for (size_t i = 0; i < n && i < most; i++)
        if (bytes[i] != f->other[i] && bytes[i] != (i < f->size ? f->bytes[i] : 0) &&
            (!(f->is_emptied || (f->shape.kind == FILES_LOGICAL && i >= f->cut)) || bytes[i]))
            return 0;
    return n >= least && n <= most;
}

static void check_logical(struct check *c)
{
    static uint8_t bytes[FILES_BYTES + 1];
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat, .is_closed = 1};
    const struct files *f = c->f;
    deltafs_logical *l;
    size_t got = 0;

    if (!check_failed(c, "open", deltafs_logical_open(f->path, O_RDONLY, NULL, &l), deltafs_errmsg(NULL))) {
        int is_read =
            !check_failed(c, "read", deltafs_logical_read(l, 0, bytes, sizeof bytes, &got), deltafs_errmsg(NULL));
        check_failed(c, "stat", deltafs_logical_stat(l, &stat), deltafs_errmsg(NULL));
        size_t first = stat.is_incomplete || f->may_lack       ? 0
                       : stat.is_closed || !f->shape.is_killed ? f->state
                                                               : f->shape.states - 1;
        if (is_read && !is_written(f, bytes, got) && (first == f->state || !is_past(f, bytes, got, first)))
            torture_lost(c->v, "%zu bytes are read that are not those of the file, which has %zu, and nothing says so",
                         got, f->size);
        deltafs_logical_close(l);
    }
    check_verified(c, deltafs_logical_verify_path(c->f->path, NULL, NULL, NULL), deltafs_errmsg(NULL));
}

struct rows {
    struct check *c;
    size_t table, row; /* that may come next */
    uint8_t seen[FILES_STATES + 2][200];
};

static int check_row(const struct deltafs_row *r, void *arg)
{
    struct rows *s = arg;
    const struct files *f = s->c->f;
    size_t i = (size_t)r->label, k = (size_t)r->row, most = f->maybe > f->state ? f->maybe : f->state;
    float x;

    /* A logical file has all rows in one table. */
    if (f->shape.kind == FILES_INSIDE && r->label == 7)
        for (i = 0; i < most && k >= files_rows(&f->shape, i); i++)
            k -= files_rows(&f->shape, i);
    struct files_row want = files_row_of(i, k);
    memcpy(&x, r->value, sizeof x < r->size ? sizeof x : r->size);
    if (i >= most || k >= files_rows(&f->shape, i) || want.id != r->key || r->size != sizeof x || x != want.x ||
        s->seen[i][k]++)
        torture_wrong(s->c->v, "key %ju: row %ju of timestep %ju is not one of its rows, or comes twice",
                      (uintmax_t)r->key, (uintmax_t)r->row, (uintmax_t)r->label);
    return 0;
}

static void check_rows(struct check *c, deltafs_fileindex *ix, uint64_t key)
{
    struct rows s = {.c = c};
    const struct files *f = c->f;
    int status = deltafs_fileindex_get(ix, key, NULL, check_row, &s, NULL);

    if (status != DELTAFS_ERR_NOT_FOUND && check_failed(c, "get", status, deltafs_errmsg(NULL)))
        return;
    for (size_t i = 0; i < c->least; i++)
        for (size_t k = 0; k < files_rows(&f->shape, i); k++)
            if (files_row_of(i, k).id == key && !s.seen[i][k])
                torture_lost(c->v, "key %ju: row %zu of table %zu is missing, and nothing says so", (uintmax_t)key, k,
                             i);
}

static void check_index(struct check *c)
{
    deltafs_fileindex *ix;
    deltafs_dir *d;
    char keys[300];
    int status = deltafs_fileindex_open(c->f->path, NULL, &ix);

    if (check_failed(c, "open", status, deltafs_errmsg(NULL))) {
        /* What is no index any more must not be taken for particles. */
        snprintf(keys, sizeof keys, c->f->shape.kind == FILES_INSIDE ? "%s/keys" : "%s", c->f->path);
        status = deltafs_fileindex_open(keys, NULL, &ix);
        if (status == DELTAFS_ERR_NOT_FOUND && deltafs_open(keys, NULL, &d) == DELTAFS_OK) {
            torture_wrong(c->v, "an index passes for a directory of records");
            deltafs_close(d);
        }
        if (status == DELTAFS_OK)
            deltafs_fileindex_close(ix);
        return;
    }
    for (uint64_t key = 0; key < FILES_KEYS; key += 5)
        check_rows(c, ix, key);
    check_verified(c, deltafs_fileindex_verify(ix, NULL, NULL, NULL), deltafs_errmsg(NULL));
    deltafs_fileindex_close(ix);
}

void files_check(const struct files *f, size_t least, int may_fail, struct files_reading *out,
                 struct torture_verdict *v)
{
    struct check c = {.f = f, .least = least, .may_fail = may_fail, .out = out, .v = v};

    *out = (struct files_reading){0};
    if (f->shape.kind == FILES_DIRECTORY)
        check_directory(&c);
    if (f->shape.kind == FILES_LOGICAL || f->shape.kind == FILES_INSIDE)
        check_logical(&c);
    if (f->shape.kind == FILES_INSIDE)
        *out = (struct files_reading){0};
    /* Rows of a session that nobody can miss are zeros, for its index, too. */
    if (f->shape.kind == FILES_INDEX || (f->shape.kind == FILES_INSIDE && !f->may_lack))
        check_index(&c);
}
