#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "test_mpi_check.h"
#include "test_mpi_plan.h"

#define VALUE_MAX    (1u << 20)
#define BATCH_MAX    256
#define BATCH_BYTES  (1u << 16)
#define ASKED        24    /* keys asked for */
#define ANSWERS_MOST 20000 /* records after which no more are */
#define ANSWER_BYTES 4096  /* of values, that cost as much as another record */
#define ITEM_HEADER  20    /* of src/mpi/shuffle/channel.h: in front of each value that is not of a fixed size */
#define MESSAGE_HEAD 24
#define RANK_SHIFT   (8 - PLAN_RANK_BITS)

uint64_t plan_random(uint64_t seed, uint64_t n)
{
    uint64_t x = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint64_t plan_label(uint32_t epoch)
{
    return 10 * ((uint64_t)epoch + 1);
}

/* ---- The records of a plan ---- */

uint32_t plan_count(const struct plan *p, uint32_t epoch, int rank)
{
    uint64_t n = p->records / 2 + plan_random(p->seed ^ 0xc0, epoch * 64 + (uint64_t)rank) % (p->records + 1);

    if (p->skew == PLAN_NOBODY && epoch + 1 < p->epochs)
        return 0;
    if (p->skew == PLAN_ONE_RANK)
        return rank == (int)(p->seed % (uint64_t)p->ranks) ? p->records * (uint32_t)p->ranks : 0;
    return (uint32_t)n;
}

static uint64_t record_seed(const struct plan *p, uint32_t epoch, int rank, uint32_t i)
{
    return plan_random(p->seed, (uint64_t)epoch << 48 | (uint64_t)rank << 40 | i);
}

static uint64_t record_key(const struct plan *p, uint64_t seed)
{
    uint64_t k = p->skew == PLAN_ONE_KEY ? 7 % p->subfiles : plan_random(seed, 1) % p->subfiles;

    if (p->keys == PLAN_DENSE)
        return k;
    if (p->keys == PLAN_COUNTERS)
        return k % 5 << 46 | k / 5;
    return k == 0 ? 0 : k == 1 ? UINT64_MAX : plan_random(p->seed ^ 0x6b, k);
}

/* Sizes about those at which a message or a chunk, or the piece of a long value in it, is exactly full. */
static size_t boundary_size(const struct plan *p, uint64_t r)
{
    size_t room = p->chunk > 0 && r / 1024 % 2 ? p->chunk : p->message;
    size_t full = room - MESSAGE_HEAD - ITEM_HEADER, low = full - ITEM_HEADER - 3;

    switch (r % 4) {
    case 0:
        return full - 2 + r / 4 % 5;
    case 1: /* leaves room for the head of another item, or for one byte more, or less */
        return low + r / 4 % 6;
    case 2:
        return (2 + r / 4 % 3) * full - 2 + r / 64 % 5;
    default:
        return room - 2 + r / 4 % 5;
    }
}

static size_t record_size(const struct plan *p, uint64_t seed)
{
    uint64_t r = plan_random(seed, 2);

    if (p->value_size >= 0)
        return (size_t)p->value_size;
    if (r % 4 == 0)
        return boundary_size(p, r / 4);
    if (p->has_long && r % 4 == 1)
        return VALUE_MAX - r / 4 % (r / 64 % 4 ? VALUE_MAX : 3);
    if (r % 512 == 1)
        return VALUE_MAX - r / 512 % 3;
    if (r % 64 == 2)
        return r / 64 % 50000;
    return r / 64 % 4 == 0 ? r / 256 % 3 : r / 256 % 100;
}

/* A value's bytes are a stretch of these. */
static const uint8_t *pool(void)
{
    static uint8_t *bytes;

    if (bytes)
        return bytes;
    bytes = malloc(2 * VALUE_MAX);
    for (size_t i = 0; bytes && i < 2 * VALUE_MAX; i += 8) {
        uint64_t r = plan_random(1, i);
        memcpy(bytes + i, &r, 8);
    }
    return bytes;
}

static void record_value(uint64_t seed, int rank, uint32_t i, uint8_t *out, size_t size)
{
    if (size == 0)
        return;
    memcpy(out, pool() + plan_random(seed, 3) % VALUE_MAX, size);
    out[0] = (uint8_t)((unsigned)rank << RANK_SHIFT | (i & ((1u << RANK_SHIFT) - 1)));
}

/* ---- Appending ---- */

/* Up to `n` records in one call, the keys at odd places. */
static int append_batch(const struct plan *p, deltafs_dir *dir, uint32_t epoch, int rank, uint32_t i, size_t n)
{
    static uint8_t keys[BATCH_MAX * 11], values[BATCH_BYTES + BATCH_MAX];
    size_t size = (size_t)p->value_size, key_stride = i % 2 ? 8 : 11, value_stride = size + i % 2;

    for (size_t k = 0; k < n; k++) {
        uint64_t seed = record_seed(p, epoch, rank, i + (uint32_t)k), key = record_key(p, seed);
        memcpy(keys + k * key_stride, &key, 8);
        record_value(seed, rank, i + (uint32_t)k, values + k * value_stride, size);
    }
    return deltafs_append_many(dir, n, keys, key_stride, values, value_stride, size);
}

static int append_one(const struct plan *p, deltafs_dir *dir, uint32_t epoch, int rank, uint32_t i)
{
    static uint8_t value[VALUE_MAX];
    uint64_t seed = record_seed(p, epoch, rank, i);
    size_t size = record_size(p, seed);

    record_value(seed, rank, i, value, size);
    return deltafs_append(dir, record_key(p, seed), value, size);
}

int plan_append(const struct plan *p, deltafs_dir *dir, uint32_t epoch, int rank)
{
    const struct timespec half = {.tv_nsec = 500000000};
    uint32_t n = plan_count(p, epoch, rank);
    size_t most = p->value_size > 0 ? BATCH_BYTES / (size_t)p->value_size : BATCH_MAX;
    int status = DELTAFS_OK, is_slow = epoch == 0 && rank == p->slow_rank;

    for (uint32_t i = 0, batch; i < n && status == DELTAFS_OK; i += batch) {
        batch = most == 0 ? 1 : 1 + (uint32_t)(plan_random(p->seed, i) % (most < BATCH_MAX ? most : BATCH_MAX));
        if (batch > n - i)
            batch = n - i;
        if (p->value_size < 0 || most == 0 || i % 8 == 0) {
            batch = 1;
            status = append_one(p, dir, epoch, rank, i);
        } else {
            status = append_batch(p, dir, epoch, rank, i, batch);
        }
        if (is_slow && i >= n / 2) {
            nanosleep(&half, NULL);
            is_slow = 0;
        }
    }
    return status;
}

/* ---- Comparing ---- */

struct expected {
    uint64_t key;
    uint32_t epoch, i, size;
    int rank;
    uint32_t taken; /* in the first of a writer's records for a key: how many of them are behind the last one found */
    uint32_t found; /* in it: records found */
    uint32_t empty; /* in the first of a key's records: those without a byte that were found */
};

struct oracle {
    const struct plan *plan;
    struct expected *e;
    size_t n;
    uint64_t bytes;
    uint64_t seen;
    uint8_t *value;
};

static int expected_order(const void *va, const void *vb)
{
    const struct expected *a = va, *b = vb;

    if (a->epoch != b->epoch)
        return a->epoch < b->epoch ? -1 : 1;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    return a->i < b->i ? -1 : a->i > b->i;
}

static void oracle_make(struct oracle *o, const struct plan *p, uint32_t epochs)
{
    size_t n = 0;

    *o = (struct oracle){.plan = p, .value = malloc(VALUE_MAX)};
    for (uint32_t epoch = 0; epoch < epochs; epoch++)
        for (int rank = 0; rank < p->ranks; rank++)
            n += plan_count(p, epoch, rank);
    o->e = calloc(n + 1, sizeof *o->e);
    for (uint32_t epoch = 0; epoch < epochs; epoch++)
        for (int rank = 0; rank < p->ranks; rank++)
            for (uint32_t i = 0, count = plan_count(p, epoch, rank); i < count; i++) {
                uint64_t seed = record_seed(p, epoch, rank, i);
                size_t size = record_size(p, seed);
                o->e[o->n++] = (struct expected){
                    .key = record_key(p, seed), .epoch = epoch, .i = i, .size = (uint32_t)size, .rank = rank};
                o->bytes += 8 + size;
            }
    qsort(o->e, o->n, sizeof *o->e, expected_order);
}

static void oracle_free(struct oracle *o)
{
    free(o->e);
    free(o->value);
}

/* The first that is not below. */
static size_t oracle_find(const struct oracle *o, uint32_t epoch, uint64_t key, int rank)
{
    struct expected want = {.key = key, .epoch = epoch, .rank = rank};
    size_t low = 0, high = o->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (expected_order(&o->e[middle], &want) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int is_key(const struct oracle *o, size_t at, uint32_t epoch, uint64_t key)
{
    return at < o->n && o->e[at].epoch == epoch && o->e[at].key == key;
}

/* Find a record that was read among those expected; its writer's that came earlier must have been found before it. */
static int oracle_take(const struct deltafs_record *r, void *arg)
{
    struct oracle *o = arg;
    uint32_t epoch = (uint32_t)(r->label / 10 - 1);
    const uint8_t *value = r->value;
    int rank = r->size > 0 ? value[0] >> RANK_SHIFT : 0;
    size_t first = oracle_find(o, epoch, r->key, rank), at = first;

    o->seen++;
    if (r->size == 0) {
        if (CHECK(is_key(o, first, epoch, r->key)))
            o->e[first].empty++;
        return 0;
    }
    if (!CHECK(is_key(o, first, epoch, r->key) && o->e[first].rank == rank))
        return 0;
    at += o->e[first].taken;
    while (is_key(o, at, epoch, r->key) && o->e[at].rank == rank && o->e[at].size == 0)
        at++;
    if (!CHECK(is_key(o, at, epoch, r->key) && o->e[at].rank == rank))
        return 0;
    o->e[first].taken = (uint32_t)(at - first) + 1;
    o->e[first].found++;
    if (!CHECK(o->e[at].size == r->size))
        return 0;
    record_value(record_seed(o->plan, epoch, rank, o->e[at].i), rank, o->e[at].i, o->value, r->size);
    CHECK(memcmp(o->value, value, r->size) == 0);
    return 0;
}

/* That all of the entries from `at` on for one key were found, no more and no less; returns their end. */
static size_t oracle_end_key(const struct oracle *o, size_t at)
{
    const struct expected *e = &o->e[at];
    uint64_t missing = 0, empty = 0, key = e->key;
    uint32_t epoch = e->epoch;

    for (; is_key(o, at, epoch, key); at++) {
        empty += o->e[at].size == 0;
        missing += o->e[at].size != 0;
        missing -= o->e[at].found;
    }
    CHECK(missing == 0);
    CHECK(empty == e->empty);
    return at;
}

static void oracle_reset(struct oracle *o, uint64_t key, uint32_t epochs)
{
    for (uint32_t epoch = 0; epoch < epochs; epoch++)
        for (size_t at = oracle_find(o, epoch, key, 0); is_key(o, at, epoch, key); at++)
            o->e[at].taken = o->e[at].found = o->e[at].empty = 0;
}

/* Look at the answer for one key: its epochs in order, and all of each. */
static void oracle_check_records(struct oracle *o, uint64_t key, const deltafs_records *records, uint32_t epochs)
{
    uint64_t last = 0;

    oracle_reset(o, key, epochs);
    for (size_t i = 0; records && i < records->count; i++) {
        CHECK(records->record[i].key == key && records->record[i].label >= last);
        last = records->record[i].label;
        oracle_take(&records->record[i], o);
    }
    for (uint32_t epoch = 0; epoch < epochs; epoch++) {
        size_t at = oracle_find(o, epoch, key, 0);
        if (is_key(o, at, epoch, key))
            oracle_end_key(o, at);
    }
}

/* Keys one by one and many at once; some are in no epoch, or not in all. */
static void oracle_ask(struct oracle *o, deltafs_dir *dir, uint32_t epochs)
{
    uint64_t keys[ASKED];
    deltafs_records *records[ASKED] = {NULL};
    int missing = 0;
    size_t asked = 0, answers = 0;

    for (uint64_t i = 0; i < ASKED && answers < ANSWERS_MOST; i++, asked++) {
        uint64_t r = plan_random(o->plan->seed ^ 0xa5, i);
        keys[i] = o->n > 0 && i % 4 ? o->e[r % o->n].key : i % 8 ? r : i / 8 - 1;
        int is_there = 0;
        for (uint32_t epoch = 0; epoch < epochs; epoch++)
            is_there |= is_key(o, oracle_find(o, epoch, keys[i], 0), epoch, keys[i]);
        missing |= !is_there;
        CHECK_STATUS(is_there ? DELTAFS_OK : DELTAFS_ERR_NOT_FOUND, deltafs_get(dir, keys[i], NULL, &records[0]), dir);
        if (is_there) {
            oracle_check_records(o, keys[i], records[0], epochs);
            for (size_t k = 0; records[0] && k < records[0]->count; k++)
                answers += 1 + records[0]->record[k].size / ANSWER_BYTES;
            deltafs_records_destroy(records[0]);
        }
        records[0] = NULL;
    }
    CHECK_STATUS(missing ? DELTAFS_ERR_NOT_FOUND : DELTAFS_OK, deltafs_get_many(dir, asked, keys, NULL, records), dir);
    for (size_t i = 0; i < asked; i++) {
        oracle_check_records(o, keys[i], records[i], epochs);
        deltafs_records_destroy(records[i]);
    }
}

static void oracle_check_stat(const struct oracle *o, deltafs_dir *dir, uint32_t epochs, int is_closed)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_verify_counts verified = {.struct_size = sizeof verified};

    CHECK_STATUS(DELTAFS_OK, deltafs_verify(dir, NULL, NULL, &verified), dir);
    CHECK(verified.records == o->n && verified.damages == 0);
    if (!CHECK_STATUS(DELTAFS_OK, deltafs_stat(dir, &stat), dir))
        return;
    CHECK(stat.epochs == epochs);
    CHECK(stat.records == o->n);
    CHECK(stat.bytes_raw == o->bytes);
    CHECK(stat.value_size == o->plan->value_size);
    CHECK(stat.is_closed == is_closed);
    for (uint32_t i = 0; i < epochs && i < stat.epochs; i++) {
        struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};
        if (CHECK_STATUS(DELTAFS_OK, deltafs_epoch_stat(dir, i, &epoch), dir))
            CHECK(epoch.label == plan_label(i));
    }
}

void plan_compare(const struct plan *p, const char *path, uint32_t epochs, int is_closed)
{
    struct oracle o;
    deltafs_dir *dir;

    if (!CHECK_STATUS(DELTAFS_OK, deltafs_open(path, NULL, &dir), NULL))
        return;
    oracle_make(&o, p, epochs);
    oracle_check_stat(&o, dir, epochs, is_closed);
    CHECK_STATUS(DELTAFS_OK, deltafs_scan(dir, NULL, oracle_take, &o, NULL), dir);
    CHECK(o.seen == o.n);
    for (size_t at = 0; at < o.n;)
        at = oracle_end_key(&o, at);
    oracle_ask(&o, dir, epochs);
    oracle_free(&o);
    CHECK_STATUS(DELTAFS_OK, deltafs_close(dir), NULL);
}

deltafs_dir *plan_create(struct plan *p, const char *folder, const char *name, const char *options)
{
    deltafs_dir *dir = NULL;
    deltafs_options *o = check_options(options);

    check_about("%s", name);
    p->ranks = check_ranks;
    p->message = 32 << 10;
    p->slow_rank = -1;
    CHECK_STATUS(DELTAFS_OK, deltafs_mpi_create(MPI_COMM_WORLD, check_path(folder, name), o, &dir), NULL);
    deltafs_options_destroy(o);
    check_require();
    return dir;
}

void plan_check(const struct plan *p, const char *folder, const char *name, uint32_t epochs, int is_closed)
{
    if (check_rank == 0)
        plan_compare(p, check_path(folder, name), epochs, is_closed);
    check_require();
}

void plan_epoch(const struct plan *p, deltafs_dir *dir, uint32_t epoch)
{
    CHECK_STATUS(DELTAFS_OK, plan_append(p, dir, epoch, check_rank), dir);
    CHECK_STATUS(DELTAFS_OK, deltafs_epoch_end(dir, plan_label(epoch)), dir);
}
