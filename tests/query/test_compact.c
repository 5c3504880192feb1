/* Compaction: the answers of the compacted directory are those of the model, whatever the keys, values, layouts and
 * epochs are; a trajectory takes few reads; no failed operation and no crash leaves anything that can be taken for a
 * directory; damage is reported as such. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "directory/dir.h"
#include "directory/format/directory_format.h"
#include "directory/read/reader.h"
#include "fake_io.h"
#include "unit_help.h"
#include "unit_kth.h"
#include "unit_repair.h"
#include "unit_team.h"
#include "query/compact_epochs.h"

#define NAMES 300

static char names[NAMES][16];

static void make_names(void)
{
    for (size_t i = 0; i < NAMES; i++)
        snprintf(names[i], sizeof names[i], "particle/%zu", i);
}

/* Compact with a small memory, so that there are several ranges and segments. */
static int compact_with(const char *from, const char *to, const struct deltafs_range *range, const char *memory)
{
    deltafs_options *o = unit_options("memory", memory, "threads", "0", NULL);
    const struct deltafs_compact_options options = {.struct_size = sizeof options, .range = range, .options = o};
    int status = deltafs_compact(from, to, &options);

    deltafs_options_destroy(o);
    return status;
}

static int compact(const char *from, const char *to)
{
    return compact_with(from, to, NULL, "8M");
}

/* Append an epoch to a model's directory: no record, few or many, of keys that some epochs do not have. */
static void append_epoch(struct model *m, deltafs_dir *d, struct rng *r, enum key_kind kind, int64_t size,
                         uint32_t most, uint64_t label)
{
    uint32_t n = label % 4 == 2 ? 0 : (uint32_t)rng_below(r, most);

    for (uint32_t i = 0; m->is_bytes && i < n; i++) {
        const char *name = names[rng_below(r, NAMES)];
        uint32_t bytes = size >= 0 ? (uint32_t)size : (uint32_t)rng_below(r, 60);
        CHECK_CALL(d, model_append_bytes(m, d, name, strlen(name), bytes), DELTAFS_OK);
    }
    if (!m->is_bytes)
        model_append_some(m, d, r, kind, n, size);
    if (d)
        model_end_epoch(m, d, label);
    else
        model_keep(m, label);
}

/* The keys from `low` to `high`, or from one name to another (NULL: all). */
struct ordered {
    struct model *model;
    uint64_t low, high;
    const char *first, *last;
    struct deltafs_range epochs;
    uint64_t label, key;
    char name[sizeof names[0]];
    size_t nth, count;
};

static int is_wanted(const struct ordered *o, const struct model_record *r)
{
    if (r->label < o->epochs.first || r->label > o->epochs.last)
        return 0;
    if (!o->model->is_bytes)
        return r->key >= o->low && r->key <= o->high;
    return !o->first || (strcmp(r->name, o->first) >= 0 && strcmp(r->name, o->last) <= 0);
}

/* Records come by epoch, key and the order of their appends. */
static int ordered_record(const struct deltafs_record *record, void *arg)
{
    struct ordered *o = arg;
    const struct model_record *want;
    char name[sizeof names[0]] = "";
    size_t n = model_find(o->model, record->key, record->label, record->label, &want);

    if (record->key_bytes && record->key_size < sizeof name)
        memcpy(name, record->key_bytes, record->key_size);
    int is_same = o->count > 0 && record->label == o->label && record->key == o->key;
    CHECK(o->count == 0 || is_same || record->label > o->label ||
          (record->label == o->label && (o->model->is_bytes ? strcmp(name, o->name) > 0 : record->key > o->key)));
    o->nth = is_same ? o->nth + 1 : 0;
    CHECK(o->nth < n && is_wanted(o, want) && model_is_value(&want[o->nth], record));
    o->label = record->label;
    o->key = record->key;
    memcpy(o->name, name, sizeof name);
    o->count++;
    return 0;
}

static int scan_ordered(struct ordered *o, deltafs_dir *d)
{
    size_t first = o->first ? strlen(o->first) : 0, last = o->last ? strlen(o->last) : 0;

    return o->model->is_bytes
               ? deltafs_scan_range_bytes(d, o->first, first, o->last, last, &o->epochs, ordered_record, o, NULL)
               : deltafs_scan_range(d, o->low, o->high, &o->epochs, ordered_record, o, NULL);
}

/* The same, one record after the other. */
static int iterate_ordered(struct ordered *o, deltafs_dir *d)
{
    size_t first = o->first ? strlen(o->first) : 0, last = o->last ? strlen(o->last) : 0;
    const struct deltafs_record *record = NULL;
    deltafs_iter *iter = NULL;
    int status = o->model->is_bytes ? deltafs_iter_open_bytes(d, o->first, first, o->last, last, &o->epochs, &iter)
                                    : deltafs_iter_open(d, o->low, o->high, &o->epochs, &iter);

    while (status == DELTAFS_OK && (status = deltafs_iter_next(iter, &record)) == DELTAFS_OK && record)
        ordered_record(record, o);
    deltafs_iter_close(iter);
    return status;
}

static void choose_ends(struct ordered *o, struct rng *r)
{
    const struct model_record *record = o->model->record;
    uint64_t a = rng_below(r, o->model->committed), b = rng_below(r, o->model->committed);
    int is_turned = o->model->is_bytes ? strcmp(record[a].name, record[b].name) > 0 : record[a].key > record[b].key;

    o->low = record[is_turned ? b : a].key;
    o->high = record[is_turned ? a : b].key;
    o->first = record[is_turned ? b : a].name;
    o->last = record[is_turned ? a : b].name;
    o->epochs.first = rng_below(r, 10);
    o->epochs.last = o->epochs.first + rng_below(r, 10);
}

/* All keys, and random ranges, of all epochs and of some. */
static void check_ordered(struct model *m, deltafs_dir *d, struct rng *r)
{
    for (int turn = 0; turn < 12 && m->committed > 0; turn++) {
        struct ordered o = {.model = m, .high = UINT64_MAX, .epochs = {1, 6}};
        size_t wanted = 0;
        if (turn > 1)
            choose_ends(&o, r);
        for (size_t i = 0; i < m->committed; i++)
            wanted += (size_t)is_wanted(&o, &m->record[i]);
        CHECK_CALL(d, turn % 2 ? iterate_ordered(&o, d) : scan_ordered(&o, d), DELTAFS_OK);
        CHECK_IS(o.count, wanted);
    }
}

/* All answers, of scans with little memory and of ranges too. */
static void check_answers(struct model *m, const char *path, struct rng *r)
{
    struct reader *reader;
    struct error *e;
    deltafs_dir *d;

    if (m->is_bytes) {
        d = unit_open(path);
        model_check_all(m, d, r);
        model_check_facts(m, d);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    } else {
        model_check_directory(m, path, r);
    }
    d = unit_open(path);
    CHECK_IS(dir_reader(d, "test", NULL, &reader, &e), DELTAFS_OK);
    check_ordered(m, d, r);
    reader->memory = 1 << (15 + rng_below(r, 7)); /* a scan takes several passes */
    for (int i = 0; i < 8; i++) {
        uint64_t first = rng_below(r, 12), last = first + rng_below(r, 6);
        const struct deltafs_range range = {first, last};
        model_check_scan(m, d, i > 0 ? &range : NULL);
        for (int k = 0; !m->is_bytes && k < 20 && m->committed > 0; k++)
            model_check_key(m, d, m->record[rng_below(r, m->committed)].key, &range);
        for (int k = 0; m->is_bytes && k < 20; k++) {
            const char *name = names[rng_below(r, NAMES)];
            model_check_name(m, d, name, strlen(name), &range);
        }
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static const struct {
    const char *keys, *layout, *value_size, *partitions;
    enum key_kind kind;
} shapes[] = {{"u64", "partitioned", "24", "1", KEYS_DENSE}, {"u64", "partitioned", "any", "3", KEYS_FEW},
              {"u64", "local", "24", "2", KEYS_CLUSTERED},   {"u64", "partitioned", "0", "2", KEYS_SPARSE},
              {"u64", "partitioned", "3", "1", KEYS_FEW},    {"bytes", "partitioned", "any", "2", KEYS_FEW},
              {"bytes", "local", "12", "1", KEYS_FEW},       {"u64", "partitioned", "40", "2", KEYS_ENDS},
              {"bytes", "partitioned", "30", "1", KEYS_FEW}, {"u64", "partitioned", "24", "5", KEYS_SPARSE},
              {"u64", "local", "any", "7", KEYS_ENDS}};
#define SHAPES (sizeof shapes / sizeof shapes[0])

/* The last two are partitioned by ranges of keys. */
static int is_ranged(size_t shape)
{
    return shape + 2 >= SHAPES;
}

static deltafs_dir *create_shape(struct model *m, size_t shape, const char *path)
{
    *m = (struct model){.is_bytes = strcmp(shapes[shape].keys, "bytes") == 0};
    return unit_create(path, unit_options("keys", shapes[shape].keys, "layout", shapes[shape].layout, "value_size",
                                          shapes[shape].value_size, "partitions", shapes[shape].partitions, "memory",
                                          "8M", "partitioner", is_ranged(shape) ? "range" : "hash", NULL));
}

/* By ranges, others from epoch to epoch: so pivots change. */
static enum key_kind shape_kind(size_t shape, uint64_t label)
{
    return is_ranged(shape) ? (enum key_kind)((shapes[shape].kind + label / 2) % KEYS_KINDS) : shapes[shape].kind;
}

static int64_t shape_size(size_t shape)
{
    return strcmp(shapes[shape].value_size, "any") == 0 ? -1 : atoi(shapes[shape].value_size);
}

/* Some with so many records that there are several ranges. */
static uint32_t shape_most(size_t shape)
{
    return shape % 5 == 0 ? 8000 : 1500;
}

/* Compact, append to the result, and compact that again. */
static void test_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++) {
        struct rng r = rng_init(100 + i);
        const char *from = unit_path("from.%zu", i), *to = unit_path("to.%zu", i), *again = unit_path("again.%zu", i);
        struct model m;
        deltafs_dir *d = create_shape(&m, i, from);
        uint64_t label = 0;

        for (; label < 7; label++)
            append_epoch(&m, d, &r, shape_kind(i, label), shape_size(i), shape_most(i), label);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        CHECK_IS(compact(from, to), DELTAFS_OK);
        check_answers(&m, to, &r);
        check_answers(&m, from, &r);
        deltafs_options *o = unit_options("memory", "8M", NULL);
        CHECK_IS(deltafs_reopen(to, o, &d), DELTAFS_OK);
        deltafs_options_destroy(o);
        for (; label < 10; label++)
            append_epoch(&m, d, &r, shape_kind(i, label), shape_size(i), shape_most(i), label);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
        check_answers(&m, to, &r);
        CHECK_IS(compact_with(to, again, NULL, "64M"), DELTAFS_OK);
        check_answers(&m, again, &r);
        model_fini(&m);
    }
}

/* Only some epochs; and what is asked for wrongly. */
static void test_range(void **state)
{
    struct rng r = rng_init(7);
    const char *from = unit_path("range.from"), *to = unit_path("range.to");
    const struct deltafs_range some = {3, 5}, none = {50, 60};
    struct model m, part = {.count = 0};
    deltafs_dir *d = create_shape(&m, 0, from), *got;
    struct deltafs_epoch_stat epoch = {.struct_size = sizeof epoch};

    (void)state;
    for (uint64_t label = 0; label < 8; label++)
        append_epoch(&m, d, &r, KEYS_DENSE, 24, 3000, label);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(compact_with(from, to, &none, "8M"), DELTAFS_ERR_NOT_FOUND);
    CHECK(!unit_exists(to));
    CHECK_IS(compact_with(from, to, &some, "8M"), DELTAFS_OK);
    CHECK_IS(compact_with(from, to, &some, "8M"), DELTAFS_ERR_EXISTS);
    CHECK_IS(compact_with(unit_path("nothing"), unit_path("other"), NULL, "8M"), DELTAFS_ERR_NOT_FOUND);
    CHECK_IS(deltafs_compact(from, NULL, NULL), DELTAFS_ERR_INVALID);
    got = unit_open(to);
    for (uint64_t i = 0; i < 3; i++) {
        CHECK_CALL(got, deltafs_epoch_stat(got, i, &epoch), DELTAFS_OK);
        CHECK_IS(epoch.label, 3 + i);
    }
    CHECK_CALL(got, deltafs_epoch_stat(got, 3, &epoch), DELTAFS_ERR_INVALID);
    for (size_t i = 0; i < m.committed; i++) {
        if (m.record[i].label < 3 || m.record[i].label > 5)
            continue;
        part.record = realloc(part.record, (part.count + 1) * sizeof *part.record);
        CHECK(part.record != NULL);
        part.record[part.count++] = m.record[i];
    }
    part.capacity = part.committed = part.count;
    part.epochs = 3;
    model_check_all(&part, got, &r);
    model_check_scan(&part, got, NULL);
    CHECK_IS(deltafs_close(got), DELTAFS_OK);
    model_fini(&m);
    model_fini(&part);
}

/* ---- Reads ---- */

#define LONG_EPOCHS 3000 /* more records of a key than a leaf has */
#define LONG_KEYS   40

/* A trajectory takes the manifest, the tail, and one read of the index and of the data, however long it is. */
static void test_reads(void **state)
{
    const char *from = unit_path("long.from"), *to = unit_path("long.to");
    deltafs_dir *d = unit_create(from, unit_options("value_size", "16", "memory", "8M", NULL));
    struct deltafs_io_stat io = {.struct_size = sizeof io};
    deltafs_records *got;
    uint64_t value[2];

    (void)state;
    for (uint64_t label = 0; label < LONG_EPOCHS; label++) {
        for (uint64_t key = 0; key < LONG_KEYS; key++) {
            value[0] = key;
            value[1] = label * 0x9e3779b97f4a7c15;
            CHECK_CALL(d, deltafs_append(d, key, value, sizeof value), DELTAFS_OK);
        }
        CHECK_CALL(d, deltafs_epoch_end(d, label), DELTAFS_OK);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(compact_with(from, to, NULL, "16M"), DELTAFS_OK);
    for (uint64_t key = 0; key < LONG_KEYS; key += 13) {
        d = unit_open(to);
        CHECK_CALL(d, deltafs_get(d, key, NULL, &got), DELTAFS_OK);
        CHECK_IS(got->count, LONG_EPOCHS);
        for (size_t i = 0; i < got->count; i++) {
            memcpy(value, got->record[i].value, sizeof value);
            CHECK(got->record[i].label == i && value[0] == key && value[1] == i * 0x9e3779b97f4a7c15);
        }
        deltafs_records_destroy(got);
        CHECK_IS(deltafs_io_stat(d, &io), DELTAFS_OK);
        CHECK(io.reads <= 4);
        CHECK_IS(deltafs_close(d), DELTAFS_OK);
    }
}

/* ---- Ranks ---- */

struct member {
    struct unit_member member;
    const char *from, *to;
    pthread_t thread;
    struct error error;
    int fails;
};

static int cancel(uint64_t records, void *arg)
{
    const struct member *p = arg;

    return records > 0 && p->fails;
}

static void *member_run(void *arg)
{
    struct member *p = arg;
    const struct collective group = unit_team_group(&p->member);
    const struct deltafs_compact_options o = {.struct_size = sizeof o, .progress = cancel, .arg = p};

    deltafs_private_compact(&group, p->from, p->to, &o, &p->error);
    return NULL;
}

static void run_ranks(const char *from, const char *to, uint32_t ranks, uint32_t fails, int expected)
{
    struct member p[TEAM_MAX] = {0};
    struct unit_team team;

    unit_team_init(&team, ranks);
    for (uint32_t i = 0; i < ranks; i++) {
        p[i] = (struct member){.member = {&team, i}, .from = from, .to = to, .fails = i == fails};
        CHECK_IS(pthread_create(&p[i].thread, NULL, member_run, &p[i]), 0);
    }
    for (uint32_t i = 0; i < ranks; i++)
        CHECK_IS(pthread_join(p[i].thread, NULL), 0);
    for (uint32_t i = 0; i < ranks; i++)
        if (p[i].error.status != expected)
            fail_msg("rank %u: %d, not %d: %s", i, p[i].error.status, expected, p[i].error.text);
    unit_team_fini(&team);
}

/* Ranks with several partitions, one or none; and one rank that ends it for all. */
static void test_ranks(void **state)
{
    struct rng r = rng_init(8);
    const char *from = unit_path("ranks.from");
    struct model m;
    deltafs_dir *d = create_shape(&m, 1, from);

    (void)state;
    for (uint64_t label = 0; label < 5; label++)
        append_epoch(&m, d, &r, KEYS_DENSE, -1, 20000, label);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    for (uint32_t ranks = 2; ranks <= TEAM_MAX; ranks++) {
        const char *to = unit_path("ranks.to.%u", ranks), *no = unit_path("ranks.no.%u", ranks);
        run_ranks(from, to, ranks, UINT32_MAX, DELTAFS_OK);
        check_answers(&m, to, &r);
        run_ranks(from, no, ranks, ranks > 3 ? 0 : ranks - 1, DELTAFS_ERR_CANCELLED);
        CHECK(!unit_exists(no));
    }
    model_fini(&m);
}

/* ---- Faults ---- */

static const char *make_small(const char *name, struct model *m)
{
    struct rng r = rng_init(9);
    const char *path = unit_path("%s", name);
    deltafs_dir *d;

    *m = (struct model){.count = 0};
    d = unit_create(path, unit_options("schema", "a:f4,b:u4,c:f8", "partitions", "2", NULL));
    for (uint64_t label = 0; label < 3; label++) {
        model_append_some(m, d, &r, KEYS_DENSE, 300, 16);
        model_end_epoch(m, d, label);
    }
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    return path;
}

/* Whichever operation fails: the source is as it was, and a directory that can be opened is complete. */
static void test_fault(void **state)
{
    struct rng r = rng_init(10);
    struct model m;
    const char *from = make_small("fault.from", &m), *to = unit_path("fault.to");
    int failed = 1;

    (void)state;
    for (uint64_t k = 0; failed; k++) {
        unit_kth_begin_default(k, k % 2 ? EIO : ENOSPC);
        unit_kth_count(1);
        int status = compact(from, to);
        unit_kth_count(0);
        failed = unit_kth_end();
        CHECK(failed || status == DELTAFS_OK);
        if (status == DELTAFS_OK)
            check_answers(&m, to, &r);
        unit_remove(to); /* what could not be removed */
    }
    check_answers(&m, from, &r);
    model_fini(&m);
}

/* Killed before each of its operations, it leaves nothing that can be opened but a complete directory; and what it
 * leaves can be removed. */
static void test_killed(void **state)
{
    static struct fake_io fake;
    struct rng r = rng_init(11);
    struct model m;
    const char *from = make_small("killed.from", &m), *to = unit_path("killed.to");
    int ended = 1;

    (void)state;
    for (uint64_t k = 0; ended != 0; k++) {
        pid_t child = fork();
        if (child == 0) {
            fake_io_begin_killed(&fake, k);
            _exit(compact(from, to) == DELTAFS_OK ? 0 : 1);
        }
        CHECK_IS(waitpid(child, &ended, 0), child);
        CHECK(ended == 0 || (WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL));
        deltafs_dir *d;
        if (deltafs_open(to, NULL, &d) == DELTAFS_OK) {
            model_check_all(&m, d, &r);
            model_check_scan(&m, d, NULL);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
        }
        unit_remove(to);
    }
    check_answers(&m, from, &r);
    model_fini(&m);
}

/* A directory whose compaction did not end is refused by everyone, and can be removed. */
static void test_unfinished(void **state)
{
    struct model m;
    const char *from = make_small("part.from", &m), *to = unit_path("part.to");
    char manifest[300];
    deltafs_dir *d;
    size_t n;

    (void)state;
    CHECK_IS(compact(from, to), DELTAFS_OK);
    snprintf(manifest, sizeof manifest, "%s/MANIFEST", to);
    uint8_t *text = unit_load(manifest, &n), *last = memmem(text, n, "\nEpoch number=2", 15);
    CHECK(last != NULL);
    unit_cut_manifest(to, (size_t)(last - text) + 1);
    free(text);
    CHECK_IS(deltafs_open(to, NULL, &d), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(NULL), "its compaction did not end: it has 2 of 3 epochs"));
    CHECK_IS(deltafs_reopen(to, NULL, &d), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_remove(to), DELTAFS_OK);
    /* All epochs, but it was not closed: so they may not be on storage. */
    CHECK_IS(compact(from, to), DELTAFS_OK);
    text = unit_load(manifest, &n);
    last = memmem(text, n, "\nclose ", 7);
    CHECK(last != NULL);
    unit_cut_manifest(to, (size_t)(last - text) + 1);
    free(text);
    CHECK_IS(deltafs_open(to, NULL, &d), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(NULL), "it has 3 of 3 epochs, and no closing line"));
    for (int is_dry = 0; is_dry < 2; is_dry++) {
        const struct deltafs_repair_options wish = {.struct_size = sizeof wish, .dry_run = is_dry};
        CHECK_IS(deltafs_repair(to, &wish, NULL, NULL), DELTAFS_ERR_DAMAGED);
        CHECK(strstr(deltafs_errmsg(NULL), "its compaction did not end"));
    }
    CHECK_IS(deltafs_remove(to), DELTAFS_OK);
    model_fini(&m);
}

/* ---- Damage ---- */

/* Whatever byte is wrong, in the source or in the result, nothing wrong is read. */
static void test_damage(void **state)
{
    struct rng r = rng_init(12);
    struct model m;
    const char *from = make_small("damage.from", &m), *to = unit_path("damage.to"), *bad = unit_path("damage.bad");
    static const char *const logs[] = {"00/p00000000.data", "01/p00000001.index"};
    unsigned failed = 0;

    (void)state;
    CHECK_IS(compact(from, to), DELTAFS_OK);
    for (int i = 0; i < 60; i++) {
        struct deltafs_verify_counts counts = {.struct_size = sizeof counts};
        char log[300];
        size_t n;
        unit_copy(i % 3 ? to : from, bad);
        snprintf(log, sizeof log, "%s/%s", bad, logs[i % 2]);
        uint8_t *bytes = unit_load(log, &n);
        size_t at = LOG_HEADER_SIZE + rng_below(&r, n - LOG_HEADER_SIZE);
        unit_poke(log, at, (uint8_t)(bytes[at] ^ 0x10));
        free(bytes);
        if (i % 3 == 0) {
            int status = compact(bad, unit_path("damage.not"));
            CHECK(status == DELTAFS_OK || status == DELTAFS_ERR_DAMAGED);
            CHECK(unit_exists(unit_path("damage.not")) == (status == DELTAFS_OK));
            unit_remove(unit_path("damage.not"));
        } else {
            deltafs_dir *d = unit_open(bad);
            failed += model_check_honest(&m, d) > 0;
            if (deltafs_verify(d, NULL, NULL, &counts) != DELTAFS_ERR_DAMAGED)
                fail_msg("%s at %zu of %zu is not found", log, at, n);
            CHECK_IS(deltafs_close(d), DELTAFS_OK);
        }
        unit_remove(bad);
    }
    CHECK(failed > 10);
    model_fini(&m);
}

/* The index log of a compacted directory has what its data log has not, and none of its epochs can be discarded. */
static void test_repair(void **state)
{
    struct rng r = rng_init(13);
    struct model m;
    const char *from = unit_path("repair.from"), *to = unit_path("repair.to");
    deltafs_dir *d = create_shape(&m, 8, from);
    char log[300];

    (void)state;
    for (uint64_t label = 1; label < 5; label++)
        append_epoch(&m, d, &r, KEYS_FEW, 30, 3000, label);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(compact(from, to), DELTAFS_OK);
    pid_t child = fork(); /* a job that appends, and dies */
    if (child == 0) {
        if (deltafs_reopen(to, NULL, &d) != DELTAFS_OK)
            _exit(1);
        append_epoch(&m, d, &r, KEYS_FEW, 30, 3000, 5);
        model_append_bytes(&m, d, names[0], strlen(names[0]), 30);
        _exit(0);
    }
    int ended;
    CHECK_IS(waitpid(child, &ended, 0), child);
    CHECK_IS(ended, 0);
    append_epoch(&m, NULL, &r, KEYS_FEW, 30, 3000, 5);
    CHECK_IS(repair_run(to, 0, -1), DELTAFS_OK);
    check_answers(&m, to, &r);
    snprintf(log, sizeof log, "%s/00/p00000000.index", to);
    repair_damage(log, 1);
    CHECK_IS(repair_run(to, 0, -1), DELTAFS_ERR_DAMAGED);
    const struct deltafs_repair_options drop = {.struct_size = sizeof drop, .has_drop_from = 1, .drop_from = 1};
    CHECK_IS(deltafs_repair(to, &drop, NULL, NULL), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(NULL), "the first 4 epochs were compacted"));
    model_fini(&m);
}

static int setup(void **state)
{
    make_names();
    return unit_setup(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_range),      cmocka_unit_test(test_reads),
        cmocka_unit_test(test_ranks),   cmocka_unit_test(test_fault),      cmocka_unit_test(test_killed),
        cmocka_unit_test(test_damage),  cmocka_unit_test(test_unfinished), cmocka_unit_test(test_repair),
    };
    return cmocka_run_group_tests(tests, setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
