#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "directory/format/partition.h"
#include "damage.h"
#include "io/io_format.h"

#define KEYS 24 /* asked for in a case */

struct checker {
    const struct damage_container *c;
    const struct damage *d;
    struct damage_verdict *v;
    deltafs_dir *dir;
    const struct deltafs_range *range; /* the epochs that were there before */
    int has_failed;                    /* a call told of damage */
    uint8_t *seen;                     /* of each record: whether the scan gave it */
};

void damage_blame(struct damage_verdict *v, unsigned *count, const char *fmt, ...)
{
    va_list ap;

    if (v->lost + v->wrong == 0) {
        va_start(ap, fmt);
        vsnprintf(v->text, sizeof v->text, fmt, ap);
        va_end(ap);
    }
    ++*count;
}

int damage_is_named(const struct damage *d, const char *message)
{
    char path[MEM_NAME_MAX + 8];
    int names_log = strstr(message, ".data: ") || strstr(message, ".index: ") || strstr(message, ".values: ");

    snprintf(path, sizeof path, DAMAGE_PATH "/%s", d->file);
    int names_file =
        strstr(message, path) || (d->partition == DAMAGE_MANIFEST && strstr(message, "has no " MANIFEST_NAME));
    return (names_file || (d->is_foreign && names_log)) &&
           (strstr(message, "offset") || d->partition == DAMAGE_MANIFEST || strstr(message, "missing") ||
            strstr(message, "No such file"));
}

static void check_message(struct checker *k, const char *call, const char *message)
{
    k->has_failed = 1;
    if (!damage_is_named(k->d, message))
        damage_blame(k->v, &k->v->wrong, "%s: the message does not name what is damaged: %s", call, message);
}

/* Whether the manifest still has the epoch of this label. */
static int has_epoch(const struct checker *k, uint64_t label)
{
    return k->d->epochs > 0 && label <= k->c->label[k->d->epochs - 1];
}

/* ---- Keys ---- */

struct asked {
    uint64_t key;
    const void *name;
    size_t name_size;
    size_t first, count; /* its records, in all epochs that are still there */
};

/* The records of a key, in c->record. */
static void find_records(struct checker *k, struct asked *a)
{
    const struct damage_container *c = k->c;
    size_t low = 0, high = c->records;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->record[middle].key < a->key)
            low = middle + 1;
        else
            high = middle;
    }
    a->first = low;
    a->count = 0;
    while (low + a->count < c->records && c->record[low + a->count].key == a->key &&
           has_epoch(k, c->record[low + a->count].epoch))
        a->count++;
}

static int is_record(const struct damage_record *want, const struct deltafs_record *got)
{
    return want->key == got->key && want->epoch == got->label && want->size == got->size &&
           want->name_size == got->key_size && memcmp(want->value, got->value, got->size) == 0 &&
           (got->key_size == 0 || memcmp(want->name, got->key_bytes, got->key_size) == 0);
}

/* Whether the answer says that it lacks the epoch. */
static int is_missing(const deltafs_records *got, uint64_t label)
{
    for (size_t i = 0; got && i < got->missing_count; i++)
        if (got->missing[i] == label)
            return 1;
    return 0;
}

/* Whether the manifest that was read, which may be another container's, has an epoch of this label. */
static int is_listed(const struct checker *k, uint64_t label)
{
    struct deltafs_epoch_stat stat = {.struct_size = sizeof stat};

    for (uint64_t i = 0; deltafs_epoch_stat(k->dir, i, &stat) == DELTAFS_OK; i++)
        if (stat.label == label)
            return 1;
    return 0;
}

/* A record that the answer does not have: it must be of an epoch that the answer says it lacks. */
static void check_absent(struct checker *k, const char *call, const struct asked *a, const deltafs_records *got,
                         const struct damage_record *r)
{
    if (is_listed(k, r->epoch) && !is_missing(got, r->epoch))
        damage_blame(k->v, &k->v->lost, "%s: key %llu: epoch %llu is missing, and the answer does not say so", call,
                     (unsigned long long)a->key, (unsigned long long)r->epoch);
}

/* Compare an answer. Where `is_partial`, epochs may be missing as a whole. */
static void check_answer(struct checker *k, const char *call, const struct asked *a, const deltafs_records *got,
                         int is_partial)
{
    const struct damage_record *want = k->c->record + a->first;
    size_t n = got ? got->count : 0, i = 0, w = 0;

    for (; i < n; i++, w++) {
        int is_first = i == 0 || got->record[i].label != got->record[i - 1].label;
        for (; is_partial && is_first && w < a->count && want[w].epoch < got->record[i].label; w++)
            check_absent(k, call, a, got, &want[w]);
        if (w == a->count || !is_record(&want[w], &got->record[i])) {
            damage_blame(k->v, &k->v->wrong,
                         "%s: key %llu: record %zu of the answer is not one that was written, or not in order", call,
                         (unsigned long long)a->key, i);
            return;
        }
        if (is_partial && i + 1 < n && got->record[i + 1].label != got->record[i].label && w + 1 < a->count &&
            want[w + 1].epoch == want[w].epoch)
            damage_blame(k->v, &k->v->lost, "%s: key %llu: a part of an epoch as if it were all", call,
                         (unsigned long long)a->key);
    }
    if (is_partial && n > 0 && w < a->count && want[w].epoch == want[w - 1].epoch)
        damage_blame(k->v, &k->v->lost, "%s: key %llu: a part of an epoch as if it were all", call,
                     (unsigned long long)a->key);
    for (; is_partial && w < a->count; w++)
        check_absent(k, call, a, got, &want[w]);
    if (!is_partial && n < a->count)
        damage_blame(k->v, &k->v->lost, "%s: key %llu: %zu records of %zu, and no error", call,
                     (unsigned long long)a->key, n, a->count);
}

/* Whether damage to one partition's logs is in the way of a key. */
static int is_in_the_way(const struct checker *k, uint64_t key)
{
    return k->d->partition < 0 || partition_by_hash(key, k->c->partitions) == (uint32_t)k->d->partition;
}

static void check_get(struct checker *k, const struct asked *a)
{
    deltafs_records *got = NULL;
    int status = a->name_size > 0 ? deltafs_get_bytes(k->dir, a->name, a->name_size, k->range, &got)
                                  : deltafs_get(k->dir, a->key, k->range, &got);

    if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND) {
        check_message(k, "get", deltafs_errmsg(k->dir));
        if (!is_in_the_way(k, a->key))
            damage_blame(k->v, &k->v->lost, "get: key %llu: damage of another partition is in its way: %s",
                         (unsigned long long)a->key, deltafs_errmsg(k->dir));
    }
    check_answer(k, "get", a, got, status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND);
    deltafs_records_destroy(got);
}

static void check_get_many(struct checker *k, const struct asked *a, size_t n)
{
    deltafs_records *got[KEYS];
    uint64_t keys[KEYS];
    const void *names[KEYS];
    size_t sizes[KEYS];

    for (size_t i = 0; i < n; i++) {
        keys[i] = a[i].key;
        names[i] = a[i].name;
        sizes[i] = a[i].name_size;
    }
    int status = k->c->is_bytes ? deltafs_get_many_bytes(k->dir, n, names, sizes, k->range, got)
                                : deltafs_get_many(k->dir, n, keys, k->range, got);
    int is_failed = status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND;
    if (is_failed)
        check_message(k, "get_many", deltafs_errmsg(k->dir));
    for (size_t i = 0; i < n; i++) {
        check_answer(k, "get_many", &a[i], got[i], is_failed && is_in_the_way(k, a[i].key));
        deltafs_records_destroy(got[i]);
    }
}

/* Some keys that are there, and some that are not. */
static size_t choose_keys(struct checker *k, struct damage_rng *r, struct asked *a)
{
    size_t n = 0;

    for (; n < KEYS && k->c->records > 0; n++) {
        const struct damage_record *record = &k->c->record[damage_below(r, k->c->records)];
        a[n] = (struct asked){.key = record->key, .name = record->name, .name_size = record->name_size};
        if (n % 6 == 5 && !k->c->is_bytes)
            a[n].key++;
        if (n % 6 == 5 && k->c->is_bytes) {
            a[n].name = "nobody";
            a[n].name_size = 6;
            a[n].key = hash_bytes("nobody", 6);
        }
        find_records(k, &a[n]);
    }
    return n;
}

/* ---- Scans ---- */

static int check_scanned(const struct deltafs_record *record, void *arg)
{
    struct checker *k = arg;
    struct asked a = {.key = record->key};

    find_records(k, &a);
    for (size_t i = a.first; i < a.first + a.count; i++)
        if (!k->seen[i] && is_record(&k->c->record[i], record)) {
            k->seen[i] = 1;
            return 0;
        }
    damage_blame(k->v, &k->v->wrong, "scan: a record of key %llu that was not written, or twice",
                 (unsigned long long)record->key);
    return 0;
}

static void check_scan(struct checker *k)
{
    const struct damage_container *c = k->c;
    int status;

    memset(k->seen, 0, c->records);
    status = deltafs_scan(k->dir, k->range, check_scanned, k, NULL);
    if (status != DELTAFS_OK)
        check_message(k, "scan", deltafs_errmsg(k->dir));
    for (size_t i = 0; i < c->records; i++)
        if (!k->seen[i] && has_epoch(k, c->record[i].epoch) &&
            (status == DELTAFS_OK || !is_in_the_way(k, c->record[i].key))) {
            damage_blame(k->v, &k->v->lost, "scan: a record of key %llu is missing, and no error says so",
                         (unsigned long long)c->record[i].key);
            return;
        }
}

/* ---- All of it ---- */

struct reports {
    struct checker *k;
    unsigned count, named;
};

static void note_report(int status, const char *message, void *arg)
{
    struct reports *r = arg;
    /* Where an earlier manifest does not agree with the logs, either can be named. */
    int is_disagreement = r->k->d->partition == DAMAGE_MANIFEST && strstr(message, ".index: ");

    (void)status;
    r->count++;
    r->named += damage_is_named(r->k->d, message) || is_disagreement;
}

static void check_verify(struct checker *k)
{
    struct reports r = {.k = k};
    struct deltafs_verify_counts stat = {.struct_size = sizeof stat};
    int status = deltafs_verify(k->dir, note_report, &r, &stat);

    if (status != DELTAFS_OK && r.named == 0)
        damage_blame(k->v, &k->v->wrong, "verify: no message names what is damaged; the first: %s",
                     deltafs_errmsg(k->dir));
    if (status == DELTAFS_OK && k->has_failed)
        damage_blame(k->v, &k->v->wrong, "verify finds nothing, but a get or a scan did");
    if (status == DELTAFS_OK && k->d->is_committed)
        damage_blame(k->v, &k->v->lost, "verify does not find what was done to a committed epoch");
    if ((status == DELTAFS_OK) != (r.count == 0) || stat.damages != r.count)
        damage_blame(k->v, &k->v->wrong, "verify: its status, its count and its reports do not agree");
}

void damage_check(const struct damage_container *c, const struct damage *d, struct damage_rng *r,
                  struct damage_verdict *out)
{
    struct checker k = {.c = c, .d = d, .v = out};
    struct asked asked[KEYS];
    const struct deltafs_range before = {0, d->new_label - 1};

    *out = (struct damage_verdict){0};
    if (d->new_label > 0)
        k.range = &before;
    if (deltafs_open(DAMAGE_PATH, NULL, &k.dir) != DELTAFS_OK) {
        check_message(&k, "open", deltafs_errmsg(NULL));
        if (d->partition != DAMAGE_MANIFEST)
            damage_blame(out, &out->lost, "open: damage of a log is in its way: %s", deltafs_errmsg(NULL));
        return;
    }
    k.seen = calloc(1, c->records + 1);
    if (!k.seen)
        damage_die("no memory");
    size_t n = choose_keys(&k, r, asked);
    for (size_t i = 0; i < n; i++)
        check_get(&k, &asked[i]);
    check_get_many(&k, asked, n);
    check_scan(&k);
    check_verify(&k);
    if (deltafs_close(k.dir) != DELTAFS_OK)
        damage_blame(out, &out->wrong, "close: %s", deltafs_errmsg(NULL));
    free(k.seen);
}
