#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "torture_model.h"

#define NAME_MOST 255
#define KEYS_MOST 300 /* that are asked for one by one */

struct record {
    uint64_t number, size, seed; /* seed: of the value */
};

struct wanted {
    uint64_t key; /* of bytes: their hash */
    uint64_t label, serial;
    struct record record;
};

struct torture_model {
    const struct torture_shape *shape;
    size_t epochs, count;
    uint64_t labels[TORTURE_EPOCHS];
    struct wanted *wanted; /* by key, label, serial */
    uint32_t *seen;        /* at the first record of each key and label: how many were */
};

/* ---- Records ---- */

static int is_bytes(const struct torture_shape *s)
{
    return strcmp(s->keys, "bytes") == 0;
}

static struct record record_at(const struct torture_shape *s, const struct torture_epoch *epoch, uint32_t i)
{
    static const uint64_t range[] = {3000, 7, UINT64_MAX};
    struct torture_rng r = {epoch->seed + i};
    struct record out;

    out.number = torture_below(&r, range[s->key_kind]);
    out.size = strcmp(s->value_size, "any") == 0 ? torture_below(&r, s->size_max + 1) : s->size_max;
    out.seed = torture_next(&r);
    return out;
}

/* Noise, or something that can be packed. */
static void make_value(const struct record *r, uint8_t *bytes)
{
    struct torture_rng rng = {r->seed};

    if (r->seed & 1)
        torture_fill(&rng, bytes, r->size);
    else
        for (uint64_t i = 0; i < r->size; i++)
            bytes[i] = (uint8_t)(i < 8 ? r->seed >> 8 * i : r->seed >> 16);
}

static size_t make_name(uint64_t number, char name[NAME_MOST + 1])
{
    int padding = number % 16 == 0 ? (int)(number % 230) : 0;

    return (size_t)snprintf(name, NAME_MOST + 1, "%llu%*s", (unsigned long long)number, padding, "");
}

int torture_append(const struct torture_shape *s, const struct torture_epoch *epoch, uint32_t first, uint32_t step,
                   deltafs_dir *dir)
{
    uint8_t value[TORTURE_VALUE_MAX];
    char name[NAME_MOST + 1];
    int first_error = DELTAFS_OK;

    for (uint32_t i = first; i < epoch->records; i += step) {
        struct record r = record_at(s, epoch, i);
        make_value(&r, value);
        int status = is_bytes(s) ? deltafs_append_bytes(dir, name, make_name(r.number, name), value, r.size)
                                 : deltafs_append(dir, r.number, value, r.size);
        first_error = first_error != DELTAFS_OK ? first_error : status;
    }
    return first_error;
}

/* ---- The model ---- */

static int compare(const void *a, const void *b)
{
    const struct wanted *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return (x->serial > y->serial) - (x->serial < y->serial);
}

struct torture_model *torture_model_create(const struct torture_shape *s, const struct torture_epoch *epochs, size_t n)
{
    struct torture_model *m = calloc(1, sizeof *m);
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += epochs[i].records;
    if (m) {
        m->wanted = calloc(count + 1, sizeof *m->wanted);
        m->seen = calloc(count + 1, sizeof *m->seen);
    }
    if (!m || !m->wanted || !m->seen || n > TORTURE_EPOCHS) {
        fputs("torture: no memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    m->shape = s;
    m->epochs = n;
    for (size_t i = 0; i < n; i++) {
        m->labels[i] = epochs[i].label;
        for (uint32_t k = 0; k < epochs[i].records; k++) {
            struct wanted *w = &m->wanted[m->count++];
            char name[NAME_MOST + 1];
            *w = (struct wanted){.label = epochs[i].label, .serial = k, .record = record_at(s, &epochs[i], k)};
            w->key = w->record.number;
            if (is_bytes(s))
                w->key = hash_bytes(name, make_name(w->record.number, name));
        }
    }
    qsort(m->wanted, m->count, sizeof *m->wanted, compare);
    return m;
}

void torture_model_destroy(struct torture_model *m)
{
    if (!m)
        return;
    free(m->wanted);
    free(m->seen);
    free(m);
}

/* The first that is not before key and label. */
static size_t model_lower(const struct torture_model *m, uint64_t key, uint64_t label)
{
    size_t low = 0, high = m->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct wanted *w = &m->wanted[middle];
        if (w->key < key || (w->key == key && w->label < label))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int is_right(const struct torture_model *m, size_t at, const struct deltafs_record *got)
{
    uint8_t value[TORTURE_VALUE_MAX];
    char name[NAME_MOST + 1];

    if (at >= m->count)
        return 0;
    const struct wanted *w = &m->wanted[at];
    if (w->key != got->key || w->label != got->label || w->record.size != got->size)
        return 0;
    if (is_bytes(m->shape) &&
        (got->key_size != make_name(w->record.number, name) || memcmp(got->key_bytes, name, got->key_size) != 0))
        return 0;
    make_value(&w->record, value);
    return got->size == 0 || memcmp(value, got->value, got->size) == 0;
}

int torture_model_fits(const struct torture_model *m, deltafs_dir *dir)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};

    if (deltafs_stat(dir, &stat) != DELTAFS_OK || stat.epochs != m->epochs || stat.records != m->count)
        return 0;
    for (size_t i = 0; i < m->epochs; i++) {
        struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
        if (deltafs_epoch_stat(dir, i, &epoch) != DELTAFS_OK || epoch.label != m->labels[i])
            return 0;
    }
    return 1;
}

/* ---- Comparing ---- */

struct check {
    struct torture_model *m;
    deltafs_dir *dir;
    int may_fail;
    unsigned failed;
    size_t scanned;
    struct torture_verdict *v;
};

static void check_status(struct check *c, const char *call, int status)
{
    if (status == DELTAFS_OK)
        return;
    c->failed++;
    if (status != c->may_fail)
        torture_lost(c->v, "%s returns %d: %s", call, status, deltafs_errmsg(c->dir));
}

/* Where reading fails records may be left out. */
static int scan_record(const struct deltafs_record *got, void *arg)
{
    struct check *c = arg;
    struct torture_model *m = c->m;
    size_t first = model_lower(m, got->key, got->label), at = first + m->seen[first];

    while (c->may_fail != DELTAFS_OK && at < m->count && m->wanted[at].key == got->key &&
           m->wanted[at].label == got->label && !is_right(m, at, got))
        at++;
    if (!is_right(m, at, got))
        torture_wrong(c->v, "the scan has a record of %zu bytes for key %llu in epoch %llu that was not written",
                      got->size, (unsigned long long)got->key, (unsigned long long)got->label);
    else
        m->seen[first] = (uint32_t)(at + 1 - first);
    c->scanned++;
    return 0;
}

static void check_scan(struct check *c)
{
    memset(c->m->seen, 0, (c->m->count + 1) * sizeof *c->m->seen);
    int status = deltafs_scan(c->dir, NULL, scan_record, c, NULL);
    check_status(c, "deltafs_scan", status);
    if (status == DELTAFS_OK && c->scanned != c->m->count)
        torture_lost(c->v, "the scan has %zu records of %zu", c->scanned, c->m->count);
}

static int get(struct check *c, uint64_t number, deltafs_records **out)
{
    char name[NAME_MOST + 1];

    *out = NULL;
    return is_bytes(c->m->shape) ? deltafs_get_bytes(c->dir, name, make_name(number, name), NULL, out)
                                 : deltafs_get(c->dir, number, NULL, out);
}

/* `n` records are wanted, from `first` on. */
static void check_key(struct check *c, uint64_t number, size_t first, size_t n)
{
    deltafs_records *got;
    int status = get(c, number, &got);
    size_t count = got ? got->count : 0, at = first;

    if (status != DELTAFS_ERR_NOT_FOUND)
        check_status(c, "deltafs_get", status);
    for (size_t i = 0; i < count; i++, at++) {
        while (status != DELTAFS_OK && at < first + n && !is_right(c->m, at, &got->record[i]))
            at++;
        if (at >= first + n || !is_right(c->m, at, &got->record[i]))
            torture_wrong(c->v, "key %llu has a record in epoch %llu that was not written", (unsigned long long)number,
                          (unsigned long long)got->record[i].label);
    }
    if (count < n && (status == DELTAFS_OK || status == DELTAFS_ERR_NOT_FOUND))
        torture_lost(c->v, "key %llu has %zu records of %zu", (unsigned long long)number, count, n);
    deltafs_records_destroy(got);
}

static void check_keys(struct check *c)
{
    const struct torture_model *m = c->m;
    size_t n, step = 1 + m->count / KEYS_MOST;

    for (size_t first = 0, turn = 0; first < m->count; first += n, turn++) {
        for (n = 1; first + n < m->count && m->wanted[first + n].key == m->wanted[first].key;)
            n++;
        if (turn % step == 0)
            check_key(c, m->wanted[first].record.number, first, n);
    }
    for (uint64_t absent = 5000; absent < 5003; absent++)
        check_key(c, absent, m->count, 0);
}

unsigned torture_model_check(struct torture_model *m, deltafs_dir *dir, int may_fail, struct torture_verdict *v)
{
    struct check c = {.m = m, .dir = dir, .may_fail = may_fail, .v = v};
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};

    check_scan(&c);
    check_keys(&c);
    int status = deltafs_verify(dir, NULL, NULL, &stat);
    check_status(&c, "deltafs_verify", status);
    if (status == DELTAFS_OK && (stat.records != m->count || stat.damages != 0))
        torture_lost(v, "deltafs_verify finds %llu records of %zu, and %llu damages", (unsigned long long)stat.records,
                     m->count, (unsigned long long)stat.damages);
    return c.failed;
}
