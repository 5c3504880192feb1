/* Merged epochs: a table has few that are read, however often its writer commits; what is committed is found, and
 * snapshots have what they had. test_namespace_model merges, too, and torture-namespace while the power goes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "directory/dir.h"
#include "directory/read/reader.h"
#include "namespace/all_records.h"
#include "unit_kth.h"
#include "unit_namespace.h"

#define NAMES       40
#define EPOCHS_MOST 8 /* that are read: tiers.c */

/* What a namespace has: the texts of its files, as numbers; 0: there is none. */
struct state {
    unsigned text[NAMES], last;
};

static const char *number_text(unsigned n)
{
    static char text[16];

    snprintf(text, sizeof text, "%u", n);
    return text;
}

static const char *path_of(size_t i)
{
    static char path[16];

    snprintf(path, sizeof path, "/n%zu", i);
    return path;
}

/* Change some files. */
static void change(deltafs_namespace *ns, struct state *s, struct rng *r)
{
    for (uint64_t n = 1 + rng_below(r, 3); n > 0; n--) {
        size_t i = (size_t)rng_below(r, NAMES);
        if (s->text[i] > 0 && rng_below(r, 3) == 0) {
            CHECK_IS(deltafs_namespace_unlink(ns, path_of(i)), DELTAFS_OK);
            s->text[i] = 0;
            continue;
        }
        s->text[i] = ++s->last;
        put_file(ns, path_of(i), number_text(s->text[i]));
    }
}

static void check_names(deltafs_namespace *ns, const struct state *s)
{
    for (size_t i = 0; i < NAMES; i++)
        if (s->text[i] > 0)
            check_file(ns, path_of(i), number_text(s->text[i]));
        else
            CHECK(!has(ns, path_of(i)));
}

static void check_state(const char *path, const struct state *s)
{
    deltafs_namespace *ns = open_ns(path, O_RDONLY);
    unsigned files = 0, listed = 0;

    check_names(ns, s);
    for (size_t i = 0; i < NAMES; i++)
        files += s->text[i] > 0;
    for (const char *p = list_names(ns, "/"); *p; p++)
        listed += *p == 'n';
    CHECK_IS(listed, files);
    close_ns(ns);
}

/* Whether the first file has this text. */
static int has_text(const char *path, const char *text)
{
    deltafs_namespace *ns = open_ns(path, O_RDONLY);
    deltafs_namespace_file *f;
    char bytes[16] = "";
    size_t got;

    if (has(ns, path_of(0))) {
        CHECK_IS(deltafs_namespace_file_open(ns, path_of(0), O_RDONLY, 0, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, sizeof bytes - 1, &got), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    }
    close_ns(ns);
    return strcmp(bytes, text) == 0;
}

static const char *table_of(const char *path)
{
    char table[32];

    CHECK_IS(count_tables(path, table), 1);
    return unit_path("%s/%s", strrchr(path, '/') + 1, table);
}

/* How many epochs the one table has, and how many of them are read. */
static void count_epochs(const char *path, unsigned *all, unsigned *read)
{
    struct error *e;
    struct reader *r;
    deltafs_dir *d;

    CHECK_IS(deltafs_open(table_of(path), NULL, &d), DELTAFS_OK);
    CHECK_IS(dir_reader(d, "a test", NULL, &r, &e), DELTAFS_OK);
    dir_skip_covered(d);
    *all = (unsigned)r->manifest.epoch_count;
    *read = 0;
    for (uint32_t i = 0; i < *all; i++)
        *read += reader_next_epoch(r, i, *all) == i;
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
}

static void commit(deltafs_namespace *ns)
{
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
}

/* Each commit is an epoch, by one writer after the other. */
static void few_epochs(void **state)
{
    struct state s = {.last = 0};
    struct rng r = rng_init(1);
    unsigned all, read;
    deltafs_namespace *ns = new_ns_without_journals("few");
    const char *path = unit_path("few");

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        change(ns, &s, &r);
        commit(ns);
        count_epochs(path, &all, &read);
        CHECK(read <= EPOCHS_MOST && all > i);
        if (rng_below(&r, 4) == 0) {
            close_ns(ns);
            ns = open_ns(path, O_RDWR);
        }
        if (i % 7 == 0)
            check_state(path, &s);
    }
    close_ns(ns);
    check_state(path, &s);
    CHECK(all > 110 && all < 150);
    CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    check_state(path, &s);
}

static const char *snapshot_of(const char *path, unsigned i)
{
    return unit_path("registry@%s%u", strrchr(path, '/') + 1, i);
}

#define COMMITS 30

static void check_snapshots(const char *path, const struct state *of)
{
    for (unsigned i = 0; i < COMMITS; i++)
        check_state(snapshot_of(path, i), &of[i]);
}

/* A snapshot of each commit, also where the commit is one of several in an epoch. */
static void snapshots(void **state)
{
    static struct state of[COMMITS];

    (void)state;
    for (int has_journals = 0; has_journals < 2; has_journals++) {
        struct state s = {.last = 0};
        struct rng r = rng_of(2);
        unsigned all, read;
        deltafs_namespace *ns = has_journals ? new_ns("journals") : new_ns_without_journals("commits");
        const char *path = unit_path(has_journals ? "journals" : "commits");
        for (unsigned i = 0; i < COMMITS; i++) {
            change(ns, &s, &r);
            commit(ns);
            of[i] = s;
            CHECK_IS(deltafs_snapshot_publish(path, snapshot_of(path, i)), DELTAFS_OK);
            if (!has_journals || i % 2 == 0)
                continue;
            close_ns(ns);
            make_epochs(path);
            ns = open_ns(path, O_RDWR);
        }
        close_ns(ns);
        count_epochs(path, &all, &read);
        CHECK(read < all && read <= EPOCHS_MOST);
        check_snapshots(path, of);
        CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
        check_snapshots(path, of);
        CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
        check_snapshots(path, of);
        check_state(path, &s);
    }
}

/* How many records of layers are read that have a table up to these labels. */
static uint64_t count_records(const char *path, uint64_t first, uint64_t second)
{
    const uint64_t limit[] = {first, second};
    static const uint8_t uuid[16] = {1};
    uint64_t number = strtoull(strrchr(table_of(path), '/') + 2, NULL, 16), n = 0;
    struct io io = io_default();
    struct layers layers = {0};
    struct all_records a;
    struct tables t;
    struct error e;

    for (size_t i = 0; i < 2; i++) {
        const struct layer_table table = {.number = number, .limit = limit[i]};
        CHECK_IS(layers_add_namespace(&layers, uuid, path, &e), DELTAFS_OK);
        CHECK_IS(layers_add_table(&layers, &table, &e), DELTAFS_OK);
        if (i > 0)
            CHECK_IS(layers_add_input(&layers, 0, &e), DELTAFS_OK);
    }
    CHECK_IS(tables_init(&t, &io, NULL, 0, &layers, NULL, &e), DELTAFS_OK);
    CHECK_IS(all_records_open(&a, &t, &e), DELTAFS_OK);
    do {
        CHECK_IS(all_records_next(&a, &e), DELTAFS_OK);
        n += a.versions;
    } while (a.versions > 0);
    all_records_close(&a);
    tables_fini(&t);
    layers_fini(&layers);
    return n;
}

/* Of a table that layers have up to different epochs, all is read: what counts for one of them may be covered. */
static void several_layers(void **state)
{
    enum { LAST = 8 };
    const char *path = unit_path("layers");
    struct deltafs_epoch_stat one = {.struct_size = sizeof one};
    uint64_t label[LAST + 2];
    deltafs_namespace *ns = new_ns_without_journals("layers");
    deltafs_dir *d;

    (void)state;
    for (unsigned i = 0; i <= LAST; i++) {
        put_file(ns, "/a", "text");
        commit(ns);
    }
    close_ns(ns);
    CHECK_IS(deltafs_open(table_of(path), NULL, &d), DELTAFS_OK);
    for (uint64_t i = 0; i < LAST + 2; i++) {
        CHECK_IS(deltafs_epoch_stat(d, i, &one), DELTAFS_OK);
        label[i] = one.label;
        CHECK_IS(one.records, 1);
    }
    CHECK_IS(deltafs_epoch_stat(d, LAST + 2, &one), DELTAFS_ERR_INVALID);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    CHECK_IS(count_records(path, label[LAST + 1], label[LAST + 1]), 1);
    CHECK_IS(count_records(path, label[LAST], label[LAST]), LAST + 1);
    CHECK_IS(count_records(path, label[3], label[3]), 4);
    CHECK_IS(count_records(path, label[3], label[LAST + 1]), LAST + 2);
}

/* So many commits that the next one merges. */
static void fill(deltafs_namespace *ns, struct state *s, struct rng *r)
{
    for (unsigned i = 0; i < EPOCHS_MOST; i++) {
        change(ns, s, r);
        commit(ns);
    }
}

/* One operation after the other of a commit that merges fails: it has committed if it says so, and others can follow.
 */
static void failing_merge(void **state)
{
    struct state s = {.last = 0}, now;
    struct rng r = rng_init(3);
    deltafs_namespace *ns = new_ns_without_journals("failing");
    const char *path = unit_path("failing");
    const char *copy = unit_path("copy");
    unsigned all, read, unmerged = 0;
    int has_failed = 1;

    (void)state;
    fill(ns, &s, &r);
    close_ns(ns);
    for (uint64_t k = 0; has_failed; k++) {
        unit_copy(path, copy);
        now = s;
        unit_kth_begin_default(k, EIO);
        ns = open_ns(copy, O_RDWR);
        change(ns, &now, &r);
        now.text[0] = ++now.last;
        put_file(ns, path_of(0), number_text(now.last));
        unit_kth_count(1);
        int status = deltafs_namespace_commit(ns);
        unit_kth_count(0);
        has_failed = unit_kth_has_failed();
        deltafs_namespace_close(ns);
        CHECK_IS(unit_kth_end(), has_failed);
        CHECK(has_failed || status == DELTAFS_OK);
        if (status != DELTAFS_OK && !has_text(copy, number_text(now.last)))
            now = s;
        check_state(copy, &now);
        count_epochs(copy, &all, &read);
        unmerged += status == DELTAFS_OK && read > EPOCHS_MOST;
        ns = open_ns(copy, O_RDWR);
        change(ns, &now, &r);
        commit(ns);
        close_ns(ns);
        check_state(copy, &now);
        count_epochs(copy, &all, &read);
        CHECK(read <= EPOCHS_MOST);
        unit_remove(copy);
    }
    CHECK(unmerged > 10);
}

/* What cannot be read is not covered, and commits go on. */
static void damaged_epoch(void **state)
{
    struct state s = {.last = 0};
    struct rng r = rng_init(4);
    deltafs_namespace *ns = new_ns_without_journals("damaged");
    const char *path = unit_path("damaged");
    unsigned all, read;
    size_t n;

    (void)state;
    put_file(ns, "/first", "text");
    commit(ns);
    close_ns(ns);
    const char *data = unit_path("damaged/%s/00/p00000000.data", strrchr(table_of(path), '/') + 1);
    uint8_t *bytes = unit_load(data, &n);
    bytes[n - 1] ^= 1;
    unit_save(data, bytes, n);
    ns = open_ns(path, O_RDWR);
    for (int i = 0; i < 3; i++)
        fill(ns, &s, &r);
    check_names(ns, &s);
    close_ns(ns);
    ns = open_ns(path, O_RDONLY);
    check_names(ns, &s);
    close_ns(ns);
    count_epochs(path, &all, &read);
    CHECK(all == read && all == 1 + 3 * EPOCHS_MOST);
    free(bytes);
}

#define MANY 5000 /* names that are too many for a journal */

/* Create so many more names. */
static void create_more(deltafs_namespace *ns, unsigned *created)
{
    static char text[MANY][16];
    const char *name[MANY];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof text[i], "%u", (*created)++);
        name[i] = text[i];
    }
    CHECK_IS(deltafs_namespace_create_many(ns, "/", name, MANY, 0600), DELTAFS_OK);
}

/* Who commits often gets few epochs, also where the memory gets full meanwhile. Who only creates does not wait for
 * merges. */
static void full_memory(void **state)
{
    (void)state;
    for (int commits = 0; commits < 2; commits++) {
        const char *path = unit_path("full%d", commits);
        deltafs_namespace *ns = new_ns(strrchr(path, '/') + 1);
        char last[16];
        unsigned created = 0, all, read;
        for (int i = 0; i < 80; i++) {
            create_more(ns, &created);
            if (commits)
                commit(ns);
        }
        close_ns(ns);
        count_epochs(path, &all, &read);
        CHECK(commits ? all > 80 && read <= EPOCHS_MOST : all == read && all > EPOCHS_MOST);
        ns = open_ns(path, O_RDONLY);
        for (unsigned i = 0; i < created; i += 997) {
            snprintf(last, sizeof last, "/%u", i);
            CHECK(has(ns, last));
        }
        CHECK(!has(ns, "/x"));
        close_ns(ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_epochs),     cmocka_unit_test(snapshots),
                                       cmocka_unit_test(several_layers), cmocka_unit_test(failing_merge),
                                       cmocka_unit_test(damaged_epoch),  cmocka_unit_test(full_memory)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
