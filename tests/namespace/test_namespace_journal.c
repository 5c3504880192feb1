/* Journals: what a commit appends, what is left of it after a crash or damage, and that whoever reads a namespace sees
 * what its journals have: other processes, snapshots, lists, compaction, collection. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "io/lease.h"
#include "namespace/journal.h"
#include "unit_io.h"
#include "unit_kth.h"
#include "unit_namespace.h"

#define GROUPS 4
#define TABLE  7

/* ---- The file ---- */

/* Commits of 1, 2, ... records, with labels 10, 20, ...; ends[i] is where commit i ends. */
static uint8_t *make_groups(int sync, size_t ends[GROUPS], size_t *n)
{
    const char *path = unit_path("groups");
    struct io io = io_default();
    struct journal j = {.table = TABLE};
    struct error e;

    for (uint64_t i = 0; i < GROUPS; i++) {
        for (uint64_t k = 0; k <= i; k++)
            CHECK_IS(journal_put(&j, k & 1 ? JOURNAL_CHUNK : JOURNAL_ENTRY, 100 - k, "record", 6, &e), DELTAFS_OK);
        CHECK_IS(journal_commit(&j, &io, path, 10 * i + 10, sync, &e), DELTAFS_OK);
        ends[i] = j.end;
    }
    CHECK_IS(journal_close(&j, &e), DELTAFS_OK);
    uint8_t *bytes = unit_load(path, n);
    CHECK_IS(*n, ends[GROUPS - 1]);
    unit_remove(path);
    return bytes;
}

/* What is read has the first so many commits, with the right records. */
static void check_groups(const uint8_t *bytes, size_t n, size_t groups)
{
    struct journal j;
    struct error e;
    size_t entries = 0, chunks = 0, count;

    for (size_t i = 0; i < groups; i++) {
        entries += i / 2 + 1;
        chunks += (i + 1) / 2;
    }
    CHECK_IS(journal_parse(&j, "journal", bytes, n, TABLE, &e), DELTAFS_OK);
    CHECK_IS(j.last_label, 10 * groups);
    const struct journal_record *r = journal_find(&j, JOURNAL_ENTRY, 0, UINT64_MAX, &count);
    CHECK_IS(count, entries);
    for (size_t i = 0; i < count; i++)
        CHECK(r[i].size == 6 && memcmp(journal_bytes(&j, &r[i]), "record", 6) == 0 &&
              (i == 0 || r[i].key > r[i - 1].key || (r[i].key == r[i - 1].key && r[i].label > r[i - 1].label)));
    journal_find(&j, JOURNAL_CHUNK, 99, 99, &count);
    CHECK_IS(count, groups > 0 ? groups - 1 : 0);
    journal_find(&j, JOURNAL_CHUNK, 101, UINT64_MAX, &count);
    CHECK_IS(count, 0);
    journal_drop(&j, 10);
    journal_find(&j, JOURNAL_ENTRY, 0, UINT64_MAX, &count);
    CHECK_IS(count, entries - (entries > 0));
    CHECK_IS(j.last_label, groups > 1 ? 10 * groups : 0);
    journal_fini(&j);
    CHECK_IS(journal_parse(&j, "journal", bytes, n, TABLE + 1, &e), groups > 0 ? DELTAFS_ERR_DAMAGED : DELTAFS_OK);
    journal_fini(&j);
}

/* A commit that a crash has interrupted does not count, wherever it was, and whatever follows it. */
static void interrupted_commits(void **state)
{
    size_t ends[GROUPS], n, whole = 0;
    uint8_t *bytes = make_groups(1, ends, &n), *tail = malloc(n + 100);

    (void)state;
    for (size_t cut = 0; cut <= n; cut++) {
        whole += whole < GROUPS && cut == ends[whole];
        check_groups(bytes, cut, whole);
        memcpy(tail, bytes, cut);
        memset(tail + cut, 0, n + 100 - cut);
        if (cut == 0 || tail[cut - 1] != 0 || (whole > 0 && cut == ends[whole - 1]))
            check_groups(tail, n + 100, whole);
    }
    free(tail);
    free(bytes);
}

/* One wrong byte: of the last commit it may be from a crash; before that it is damage, unless nothing was synced. */
static void damaged_commits(void **state)
{
    struct journal j;
    struct error e;
    char offset[32];

    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        size_t ends[GROUPS], n, group = 0;
        uint8_t *bytes = make_groups(sync, ends, &n);
        for (size_t at = 0; at < n; at++) {
            group += at == ends[group];
            bytes[at] ^= 0x40;
            if (!sync || group == GROUPS - 1) {
                check_groups(bytes, n, group);
            } else {
                CHECK_IS(journal_parse(&j, "the/journal", bytes, n, TABLE, &e), DELTAFS_ERR_DAMAGED);
                snprintf(offset, sizeof offset, " %zu", group > 0 ? ends[group - 1] : 0);
                CHECK(strstr(e.text, "the/journal") && strstr(e.text, offset));
                journal_fini(&j);
            }
            bytes[at] ^= 0x40;
        }
        free(bytes);
    }
}

/* One wrong byte in a commit costs this commit only, and what is kept is a journal without damage. */
static void salvaged_commits(void **state)
{
    size_t ends[GROUPS], n, group = 0, lost, count;
    uint8_t *bytes = make_groups(1, ends, &n), *kept = malloc(n);
    struct journal j;
    struct error e;

    (void)state;
    for (size_t at = 0; at < n; at++) {
        group += at == ends[group];
        size_t begin = group > 0 ? ends[group - 1] : 0, size = ends[group] - begin;
        bytes[at] ^= 0x40;
        CHECK_IS(journal_salvage(&j, "journal", bytes, n, TABLE, &lost, &e), DELTAFS_OK);
        bytes[at] ^= 0x40;
        CHECK_IS(lost, size);
        CHECK_IS(j.end, n - size);
        memcpy(kept, bytes, begin);
        memcpy(kept + begin, bytes + ends[group], n - ends[group]);
        CHECK(memcmp(j.bytes.bytes, kept, j.end) == 0);
        journal_fini(&j);
        CHECK_IS(journal_parse(&j, "journal", kept, n - size, TABLE, &e), DELTAFS_OK);
        CHECK_IS(j.last_label, group == GROUPS - 1 ? 10 * (GROUPS - 1) : 10 * GROUPS);
        journal_find(&j, JOURNAL_ENTRY, 0, UINT64_MAX, &count);
        CHECK_IS(count, 6 - (group / 2 + 1)); /* of all four commits: 1 + 1 + 2 + 2 */
        journal_fini(&j);
    }
    CHECK_IS(journal_salvage(&j, "journal", bytes, n, TABLE + 1, &lost, &e), DELTAFS_OK);
    CHECK_IS(lost, n);
    CHECK_IS(j.end, 0);
    journal_fini(&j);
    free(kept);
    free(bytes);
}

static void check_lookup(struct journal *j, const struct journal_record *model, size_t models, int kind, uint64_t key,
                         uint64_t high)
{
    size_t count, want[2] = {0}, found[2] = {0};
    uint64_t labels[2] = {0};

    for (const struct journal_record *m = model; m < model + models; m++) {
        want[0] += m->kind == kind && m->key == key;
        want[1] += m->kind == kind && m->key >= key && m->key <= high;
        labels[0] += m->kind == kind && m->key == key ? m->label : 0;
    }
    for (const struct journal_record *r = NULL; (r = journal_get(j, kind, key, r)) != NULL; found[0]++) {
        CHECK(r->kind == kind && r->key == key && r->size == 8 && memcmp(journal_bytes(j, r), &key, 8) == 0);
        labels[1] += r->label;
    }
    CHECK(found[0] == want[0] && labels[0] == labels[1]);
    if (high == key)
        return;
    const struct journal_record *r = journal_find(j, kind, key, high, &count);
    CHECK_IS(count, want[1]);
    for (size_t i = 1; i < count; i++)
        CHECK(r[i].key > r[i - 1].key || (r[i].key == r[i - 1].key && r[i].label >= r[i - 1].label));
}

/* Records are found by key and by range, while more are committed, aborted and left out. */
static void lookups(void **state)
{
    static struct journal_record model[20000];
    struct rng r = rng_init(27);
    const char *path = unit_path("lookups");
    struct io io = io_default();
    struct journal j = {.table = TABLE};
    struct error e;
    size_t models = 0;

    (void)state;
    for (uint64_t label = 1; label <= 400; label++) {
        size_t n = (size_t)rng_below(&r, label % 10 == 0 ? 200 : 4), before = models;
        for (size_t i = 0; i < n; i++) {
            uint64_t key = rng_below(&r, 500);
            int kind = rng_below(&r, 2) ? JOURNAL_ENTRY : JOURNAL_CHUNK;
            CHECK_IS(journal_put(&j, kind, key, &key, 8, &e), DELTAFS_OK);
            model[models++] = (struct journal_record){.key = key, .label = label, .kind = (uint8_t)kind};
        }
        if (rng_below(&r, 5) == 0) {
            journal_abort(&j);
            models = before;
        }
        CHECK_IS(journal_commit(&j, &io, path, label, 0, &e), DELTAFS_OK);
        for (int i = 0; i < 3; i++) {
            uint64_t key = rng_below(&r, 500);
            check_lookup(&j, model, models, rng_below(&r, 2) ? JOURNAL_ENTRY : JOURNAL_CHUNK, key,
                         key + (rng_below(&r, 10) == 0 ? 20 : 0));
        }
        if (label != 200)
            continue;
        journal_drop(&j, 100);
        size_t left = 0;
        for (size_t i = 0; i < models; i++)
            if (model[i].label > 100)
                model[left++] = model[i];
        models = left;
    }
    CHECK_IS(journal_close(&j, &e), DELTAFS_OK);
}

/* The bytes of a file can be those of a journal: of another one, or of this one as it was before, also when it was
 * closed. (A commit with such a file that was interrupted was taken for damage.) */
static void journals_in_files(void **state)
{
    struct io io = io_default();
    struct error e;
    size_t ends[GROUPS], n, closed_size;
    uint8_t *copy = make_groups(1, ends, &n);

    (void)state;
    for (uint64_t table = TABLE; table < TABLE + 2; table++) {
        const char *path = unit_path("in file %d", (int)table);
        struct journal j = {.table = table};
        CHECK_IS(journal_put(&j, JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
        CHECK_IS(journal_commit(&j, &io, path, 10 * GROUPS, 1, &e), DELTAFS_OK);
        CHECK_IS(journal_seal(&j, &e), DELTAFS_OK);
        uint8_t *closed = unit_load(path, &closed_size);
        CHECK_IS(journal_put(&j, JOURNAL_CHUNK, 1, copy, ends[GROUPS - 1], &e), DELTAFS_OK);
        CHECK_IS(journal_put(&j, JOURNAL_CHUNK, 2, closed, closed_size, &e), DELTAFS_OK);
        free(closed);
        CHECK_IS(journal_put(&j, JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
        CHECK_IS(journal_commit(&j, &io, path, 10 * GROUPS + 1, 1, &e), DELTAFS_OK);
        CHECK_IS(journal_close(&j, &e), DELTAFS_OK);
        uint8_t *bytes = unit_load(path, &n);
        CHECK_IS(journal_parse(&j, "journal", bytes, n - 1, table, &e), DELTAFS_OK);
        CHECK_IS(j.last_label, 10 * GROUPS);
        journal_fini(&j);
        free(bytes);
    }
    free(copy);
}

/* Sound commits that no writer makes. */
static void hostile_commits(void **state)
{
    struct io io = io_default();
    struct journal j = {.table = TABLE};
    struct error e;

    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *path = unit_path("hostile%d", i);
        CHECK_IS(journal_put(&j, i == 0 ? 3 : JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
        if (i == 1)
            j.bytes.bytes[j.end + JOURNAL_HEADER_SIZE + 1]++; /* the size of the record */
        CHECK_IS(journal_commit(&j, &io, path, 10, 1, &e), DELTAFS_OK);
        CHECK_IS(journal_put(&j, JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
        CHECK_IS(journal_commit(&j, &io, path, i == 2 ? 10 : 11, 1, &e), DELTAFS_OK);
        CHECK_IS(journal_close(&j, &e), DELTAFS_OK);
        CHECK_IS(journal_read(&j, &io, path, TABLE, &e), DELTAFS_ERR_DAMAGED);
        journal_fini(&j);
    }
}

/* A commit that fails leaves none of it; and one with too much is none for a journal. */
static void failing_commits(void **state)
{
    const char *path = unit_path("failing");
    struct journal j = {.table = TABLE}, read;
    static uint8_t large[JOURNAL_GROUP_MAX];
    struct error e;

    (void)state;
    for (uint64_t k = 0, label = 0; k < 8; k++) {
        struct io io;
        unit_kth_begin(&io, k, EIO);
        j = (struct journal){.table = TABLE};
        int status = DELTAFS_OK;
        for (label = 0; label < 2 && status == DELTAFS_OK; label++) {
            CHECK_IS(journal_put(&j, JOURNAL_ENTRY, 1, "record", 6, &e), DELTAFS_OK);
            status = journal_commit(&j, &io, path, label + 1, 1, &e);
        }
        uint64_t committed = status == DELTAFS_OK ? 2 : label - 1;
        journal_close(&j, error_ignored());
        CHECK(unit_kth_end() == (status != DELTAFS_OK) || committed == 2);
        io = io_default();
        CHECK_IS(journal_read(&read, &io, path, TABLE, &e), DELTAFS_OK);
        CHECK_IS(read.last_label, committed);
        journal_fini(&read);
        if (unit_exists(path))
            unit_remove(path);
    }
    CHECK_IS(journal_put(&j, JOURNAL_CHUNK, 1, large, sizeof large, &e), DELTAFS_OK);
    CHECK(j.is_full);
    journal_abort(&j);
    CHECK(!j.is_full);
    journal_fini(&j);
}

/* ---- Namespaces ---- */

static uint64_t epochs_of(const char *path)
{
    struct deltafs_stat s = {.struct_size = sizeof s};
    char table[32], name[4096];
    deltafs_dir *d;

    CHECK_IS(count_tables(path, table), 1);
    snprintf(name, sizeof name, "%s/%s", path, table);
    if (deltafs_open(name, NULL, &d) == DELTAFS_ERR_NOT_DELTAFS)
        return 0;
    CHECK_IS(deltafs_stat(d, &s), DELTAFS_OK);
    CHECK_IS(deltafs_close(d), DELTAFS_OK);
    return s.epochs;
}

static const char *journal_of(const char *path)
{
    char table[32];

    CHECK_IS(count_tables(path, table), 1);
    return unit_path("%s/%s" TABLE_JOURNAL, strrchr(path, '/') + 1, table);
}

static void check_names(const char *path, int flags, const char *names, const char *text)
{
    deltafs_namespace *ns = open_ns(path, flags);

    assert_string_equal(list_names(ns, "/"), names);
    check_file(ns, "/a", text);
    close_ns(ns);
}

static void beside_the_writer(void **state)
{
    const char *path = unit_path("beside");
    deltafs_namespace *ns = new_ns("beside"), *before;
    deltafs_namespace_list *list;
    const struct deltafs_namespace_entry *entry;

    (void)state;
    put_file(ns, "/a", "one");
    CHECK_IS(deltafs_namespace_mkdir(ns, "/folder", 0700), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(epochs_of(path), 0);
    check_names(path, O_RDONLY, "a folder", "one");
    before = open_ns(path, O_RDONLY);
    CHECK_IS(deltafs_namespace_list_open(before, "/", &list), DELTAFS_OK);
    put_file(ns, "/a", "two");
    put_file(ns, "/folder/b", "b");
    CHECK_IS(deltafs_namespace_rmdir(ns, "/folder"), DELTAFS_ERR_NOT_EMPTY);
    CHECK_IS(deltafs_namespace_unlink(ns, "/folder/b"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_rmdir(ns, "/folder"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    check_names(path, O_RDONLY, "a", "two");
    CHECK_IS(epochs_of(path), 0);
    /* What was open before stays as it was, also when all becomes an epoch. */
    close_ns(ns);
    CHECK_IS(epochs_of(path), 0);
    check_names(path, O_RDONLY, "a", "two");
    make_epochs(path);
    CHECK_IS(epochs_of(path), 1);
    CHECK(!unit_exists(journal_of(path)));
    CHECK_IS(deltafs_namespace_list_next(list, &entry), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_list_close(list), DELTAFS_OK);
    assert_string_equal(list_names(before, "/"), "a folder");
    check_file(before, "/a", "one");
    close_ns(before);
    check_names(path, O_RDONLY, "a", "two");
}

/* The writer commits so often, and dies. */
static void die_writing(const char *path, int commits)
{
    pid_t pid = fork();
    int ended;

    assert_true(pid >= 0);
    if (pid == 0) {
        deltafs_namespace *ns = open_ns(path, O_RDWR);
        char text[16];
        for (int i = 1; i <= commits; i++) {
            snprintf(text, sizeof text, "/%d", i);
            put_file(ns, text, text);
            put_file(ns, "/a", text);
            CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
        }
        put_file(ns, "/a", "lost");
        die();
    }
    assert_true(waitpid(pid, &ended, 0) == pid);
    CHECK(has_died(ended));
}

/* A new folder, in a commit of its own. */
static int add_folder(const char *path)
{
    deltafs_namespace *ns = NULL;
    int status = try_open(path, O_RDWR, "32M", &ns);

    if (status != DELTAFS_OK)
        return status;
    status = deltafs_namespace_mkdir(ns, "/b", 0700);
    int closed = deltafs_namespace_close(ns);
    return status == DELTAFS_OK ? closed : status;
}

/* Whatever fails while a writer goes on with the table of one that died, nothing that was committed is lost. */
static void writers_that_died(void **state)
{
    const char *path = unit_path("died"), *copy = unit_path("copy");
    deltafs_namespace *ns = new_ns("died");
    int has_failed = 1;

    (void)state;
    close_ns(ns);
    die_writing(path, 3);
    CHECK(unit_exists(journal_of(path)));
    check_names(path, O_RDONLY, "1 2 3 a", "/3");
    for (uint64_t k = 0; has_failed; k++) {
        unit_copy(path, copy);
        unit_kth_begin_default(k, EIO);
        unit_kth_count(1);
        int status = add_folder(copy);
        unit_kth_count(0);
        has_failed = unit_kth_end();
        CHECK(has_failed || status == DELTAFS_OK);
        ns = open_ns(copy, O_RDONLY);
        const char *names = status == DELTAFS_OK || has(ns, "/b") ? "1 2 3 a b" : "1 2 3 a";
        close_ns(ns);
        check_names(copy, O_RDONLY, names, "/3");
        check_names(copy, O_RDWR, names, "/3");
        CHECK(!has_failed || count_tables(copy, (char[32]){0}) <= 2);
        unit_remove(copy);
    }
    check_names(path, O_RDWR, "1 2 3 a", "/3");
    CHECK_IS(epochs_of(path), 0);
    CHECK(unit_exists(journal_of(path)));
    make_epochs(path);
    CHECK_IS(epochs_of(path), 1);
    CHECK(!unit_exists(journal_of(path)));
    check_names(path, O_RDWR, "1 2 3 a", "/3");
}

/* Each writer goes on with the journal of the one before. It becomes an epoch when it has JOURNAL_LEFT bytes. */
static void one_after_the_other(void **state)
{
    enum { SESSIONS = 40, LINKS = 10 };
    static char target[1001];
    const char *path = unit_path("after");
    char name[32];

    (void)state;
    memset(target, 't', sizeof target - 1);
    close_ns(new_ns("after"));
    for (int i = 0; i < SESSIONS; i++) {
        deltafs_namespace *ns = open_ns(path, O_RDWR);
        if (i > 0) {
            snprintf(name, sizeof name, "/%d", i - 1);
            check_file(ns, name, name);
            CHECK_IS(deltafs_namespace_rename(ns, name, "/last"), DELTAFS_OK);
            check_file(ns, "/last", name);
        }
        snprintf(name, sizeof name, "/%d", i);
        put_file(ns, name, name);
        for (int k = 0; k < LINKS; k++) {
            snprintf(name, sizeof name, "/link%d.%d", i, k);
            CHECK_IS(deltafs_namespace_symlink(ns, target, name), DELTAFS_OK);
        }
        close_ns(ns);
        CHECK(epochs_of(path) <= (uint64_t)(i + 1) * LINKS * 1100 / JOURNAL_LEFT);
    }
    CHECK_IS(epochs_of(path), (uint64_t)SESSIONS * LINKS * 1100 / JOURNAL_LEFT);
    CHECK(unit_exists(journal_of(path)));
    for (int round = 0; round < 2; round++) {
        deltafs_namespace *ns = open_ns(path, round == 0 ? O_RDONLY : O_RDWR);
        check_file(ns, "/last", "/38");
        check_file(ns, "/39", "/39");
        for (int i = 0; i < SESSIONS * LINKS; i++) {
            snprintf(name, sizeof name, "/link%d.%d", i / LINKS, i % LINKS);
            CHECK_IS(stat_of(ns, name).size, 1000);
        }
        close_ns(ns);
    }
}

/* While a collection has the namespace, a writer is refused, and changes nothing of what another one has left. */
static void refused(void **state)
{
    const char *path = unit_path("refused");
    deltafs_namespace *ns = new_ns("refused");
    struct io io = io_default();
    struct lease lease;
    struct error e;

    (void)state;
    close_ns(ns);
    die_writing(path, 2000); /* more than JOURNAL_LEFT */
    CHECK_IS(epochs_of(path), 0);
    CHECK_IS(lease_take(&lease, &io, path, 600, 0, &e), DELTAFS_OK);
    CHECK_IS(try_open(path, O_RDWR, "32M", &ns), DELTAFS_ERR_BUSY);
    CHECK(strstr(deltafs_errmsg(NULL), unit_path("refused/" LEASE_NAME)));
    CHECK_IS(lease_drop(&lease, &e), DELTAFS_OK);
    CHECK_IS(epochs_of(path), 0);
    CHECK(unit_exists(journal_of(path)));
    ns = open_ns(path, O_RDWR);
    check_file(ns, "/a", "/2000");
    close_ns(ns);
    CHECK_IS(epochs_of(path), 1);
}

/* The next writer truncates a commit that was interrupted, whatever there is of it, before its own. */
static void interrupted_before(void **state)
{
    const char *path = unit_path("before"), *copy = unit_path("before2"), *journal;
    deltafs_namespace *ns;
    uint8_t *bytes, noise[5000];
    size_t n, now;

    (void)state;
    close_ns(new_ns("before"));
    die_writing(path, 2);
    journal = journal_of(path);
    bytes = unit_load(journal, &n);
    memset(noise, 0x5a, sizeof noise);
    bytes = realloc(bytes, n + sizeof noise);
    memcpy(bytes + n, bytes, 10); /* as a commit begins */
    memcpy(bytes + n + 10, noise, sizeof noise - 10);
    unit_save(journal, bytes, n + sizeof noise);
    free(bytes);
    /* It does so just when this one reads. */
    unit_copy(path, copy);
    unit_io_begin();
    unit_io_shrink(".journal", n);
    check_names(copy, O_RDONLY, "1 2 a", "/2");
    unit_io_end();
    unit_remove(copy);
    check_names(path, O_RDWR, "1 2 a", "/2");
    ns = open_ns(path, O_RDWR);
    CHECK_IS(deltafs_namespace_unlink(ns, "/1"), DELTAFS_OK);
    close_ns(ns);
    free(unit_load(journal, &now));
    CHECK(now > n && now < n + 200);
    check_names(path, O_RDONLY, "2 a", "/2");
    check_names(path, O_RDWR, "2 a", "/2");
}

/* A journal is synced when its commits say so: before a commit that says that those in front of it are durable, and
 * when the namespace is closed, with the option sync=close. */
static void synced(void **state)
{
    static const char *const options[] = {"none", "close", "commit"};
    const char *path = unit_path("synced");
    deltafs_namespace *ns;
    size_t before, n;

    (void)state;
    close_ns(new_ns("synced"));
    for (int i = 0; i < 3; i++) {
        deltafs_options *o = unit_options("memory", "32M", "threads", "0", "sync", options[i], NULL);
        const char *names = i == 0 ? "a" : i == 1 ? "a b" : "a b";
        unit_io_begin();
        CHECK_IS(deltafs_namespace_open(path, O_RDWR, o, &ns), DELTAFS_OK);
        deltafs_options_destroy(o);
        if (i == 0)
            put_file(ns, "/a", "text");
        else
            CHECK_IS(deltafs_namespace_mkdir(ns, i == 1 ? "/b" : "/c", 0700), DELTAFS_OK);
        unit_io_fail(OP_SYNC, ".journal", 0, 1, EIO);
        if (i < 2)
            CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
        else
            free(unit_load(journal_of(path), &before));
        CHECK_IS(deltafs_namespace_close(ns), i == 0 ? DELTAFS_OK : DELTAFS_ERR_IO);
        unit_io_end();
        check_names(path, O_RDONLY, names, "text");
    }
    free(unit_load(journal_of(path), &n));
    CHECK_IS(n, before);
}

/* An epoch of bytes that fails takes none with it that are in the journal. */
static void failed_data(void **state)
{
    const char *path = unit_path("data");
    deltafs_namespace *ns = new_ns("data");
    deltafs_namespace_file *f;
    static uint8_t large[JOURNAL_GROUP_MAX];

    (void)state;
    close_ns(ns);
    unit_io_begin();
    ns = open_ns(path, O_RDWR);
    put_file(ns, "/a", "kept");
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_open(ns, "/large", O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, 0, large, sizeof large), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    unit_io_fail(OP_WRITE, ".data", 0, 1, EIO);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_ERR_IO);
    CHECK_IS(deltafs_namespace_close(ns), DELTAFS_ERR_IO);
    unit_io_end();
    check_names(path, O_RDONLY, "a", "kept");
    check_names(path, O_RDWR, "a", "kept");
    check_names(path, O_RDONLY, "a", "kept");
}

/* A journal whose removal was lost in a crash counts no more. */
static void old_journal(void **state)
{
    const char *path = unit_path("old"), *journal;
    deltafs_namespace *ns = new_ns("old");
    struct deltafs_namespace_info info = {.struct_size = sizeof info}, before = info;
    uint8_t *bytes;
    size_t n;

    (void)state;
    close_ns(ns);
    die_writing(path, 2);
    journal = journal_of(path);
    bytes = unit_load(journal, &n);
    make_epochs(path);
    ns = open_ns(path, O_RDWR);
    CHECK_IS(deltafs_namespace_unlink(ns, "/1"), DELTAFS_OK);
    close_ns(ns);
    make_epochs(path);
    CHECK_IS(deltafs_namespace_info(path, &before), DELTAFS_OK);
    unit_save(journal, bytes, n);
    free(bytes);
    check_names(path, O_RDONLY, "2 a", "/2");
    CHECK_IS(deltafs_namespace_info(path, &info), DELTAFS_OK);
    CHECK_IS(info.records, before.records);
    check_names(path, O_RDWR, "2 a", "/2");
    CHECK(!unit_exists(journal));
    CHECK_IS(epochs_of(path), 2);
}

/* Snapshots of commits that are in the journal, or were there, are what they were; and their bytes are kept. */
static void snapshots(void **state)
{
    const char *path = unit_path("snap"), *const one = unit_path("registry@one"),
               *const two = unit_path("registry@two");
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};
    deltafs_namespace *ns = new_ns("snap");

    (void)state;
    put_file(ns, "/a", "first");
    put_file(ns, "/gone", "gone");
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(deltafs_snapshot_publish(path, one), DELTAFS_OK);
    put_file(ns, "/a", "second");
    CHECK_IS(deltafs_namespace_unlink(ns, "/gone"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(deltafs_snapshot_publish(path, two), DELTAFS_OK);
    put_file(ns, "/a", "third");
    put_file(ns, "/new", "new");
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    for (int round = 0; round < 4; round++) {
        check_names(one, O_RDONLY, "a gone", "first");
        check_names(two, O_RDONLY, "a", "second");
        check_names(path, O_RDONLY, "a new", "third");
        if (round == 0) {
            close_ns(ns);
            make_epochs(path);
            CHECK_IS(epochs_of(path), 1);
        }
        if (round == 1)
            CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
        if (round == 2)
            CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    }
    CHECK_IS(deltafs_snapshot_withdraw(two), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    check_names(one, O_RDONLY, "a gone", "first");
    CHECK_IS(deltafs_snapshot_withdraw(one), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    check_names(path, O_RDONLY, "a new", "third");
}

/* Collection, compaction, verify and repair with the journal of a writer that died. */
static void services(void **state)
{
    const char *path = unit_path("services"), *copy = unit_path("services2");
    struct deltafs_verify_counts n = {.struct_size = sizeof n};
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};
    struct deltafs_namespace_compacted compacted = {.struct_size = sizeof compacted};
    deltafs_namespace *ns = new_ns("services");
    deltafs_namespace_file *f;
    static uint8_t large[JOURNAL_GROUP_MAX];

    (void)state;
    CHECK_IS(deltafs_namespace_file_open(ns, "/large", O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_write(f, 0, large, sizeof large), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(ns, "/large"), DELTAFS_OK);
    close_ns(ns);
    make_epochs(path);
    die_writing(path, 5);
    unit_copy(path, copy);
    CHECK_IS(deltafs_namespace_verify(path, NULL, NULL, &n), DELTAFS_OK);
    CHECK(n.records >= 15 && n.damages == 0);
    CHECK_IS(deltafs_namespace_compact(path, &compacted), DELTAFS_OK);
    CHECK(compacted.entries == 7 && compacted.records >= 10);
    check_names(path, O_RDONLY, "1 2 3 4 5 a", "/5");
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_OK);
    check_names(path, O_RDONLY, "1 2 3 4 5 a", "/5");
    CHECK_IS(deltafs_namespace_collect(copy, &c), DELTAFS_OK);
    CHECK(c.bytes_after < c.bytes_before);
    check_names(copy, O_RDONLY, "1 2 3 4 5 a", "/5");
    CHECK(!unit_exists(journal_of(copy)));
    check_names(copy, O_RDWR, "1 2 3 4 5 a", "/5");
}

/* Damage in front of a commit is found, by everyone, and reported with its place. */
static void damaged_journal(void **state)
{
    const char *path = unit_path("damaged"), *journal;
    struct deltafs_verify_counts n = {.struct_size = sizeof n};
    struct deltafs_namespace_collected c = {.struct_size = sizeof c};
    deltafs_options *o = unit_options("sync", "commit", NULL);
    deltafs_namespace *ns = new_ns("damaged");
    char table[32];

    (void)state;
    close_ns(ns);
    CHECK_IS(deltafs_namespace_open(path, O_RDWR, o, &ns), DELTAFS_OK);
    for (int i = 0; i < 2; i++) {
        put_file(ns, "/a", "text");
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    }
    deltafs_options_destroy(o);
    unit_copy(path, unit_path("copy"));
    close_ns(ns);
    path = unit_path("copy");
    journal = journal_of(path);
    check_names(path, O_RDONLY, "a", "text");
    unit_poke(journal, 40, 'x');
    CHECK_IS(deltafs_namespace_verify(path, NULL, NULL, &n), DELTAFS_ERR_DAMAGED);
    CHECK_IS(n.damages, 1);
    CHECK(strstr(deltafs_errmsg(NULL), TABLE_JOURNAL) && strstr(deltafs_errmsg(NULL), "offset 0"));
    CHECK_IS(try_open(path, O_RDONLY, "32M", &ns), DELTAFS_ERR_DAMAGED);
    CHECK_IS(try_open(path, O_RDWR, "32M", &ns), DELTAFS_ERR_DAMAGED);
    CHECK_IS(count_tables(path, table), 1);
    CHECK_IS(deltafs_namespace_collect(path, &c), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_snapshot_publish(path, unit_path("registry@damaged")), DELTAFS_ERR_DAMAGED);
    /* A repair keeps the second commit, and says that the first is lost. */
    CHECK_IS(deltafs_namespace_repair(path, NULL, NULL, NULL), DELTAFS_ERR_DAMAGED);
    CHECK_IS(deltafs_namespace_repair(path, NULL, NULL, NULL), DELTAFS_OK);
    check_names(path, O_RDWR, "a", "text");
}

/* In a journal that its writer has closed, no byte of a commit can be damaged without being noticed. */
static void damaged_when_closed(void **state)
{
    const char *path = unit_path("closed"), *journal;
    deltafs_options *o = unit_options("memory", "32M", "threads", "0", "sync", "commit", NULL);
    deltafs_namespace *ns = new_ns("closed");
    size_t n;

    (void)state;
    close_ns(ns);
    CHECK_IS(deltafs_namespace_open(path, O_RDWR, o, &ns), DELTAFS_OK);
    deltafs_options_destroy(o);
    put_file(ns, "/a", "text");
    close_ns(ns);
    journal = journal_of(path);
    uint8_t *bytes = unit_load(journal, &n);
    CHECK(n > 2 * JOURNAL_HEADER_SIZE);
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 0x10;
        unit_save(journal, bytes, n);
        bytes[i] ^= 0x10;
        if (i < n - JOURNAL_HEADER_SIZE) {
            CHECK_IS(try_open(path, O_RDONLY, "32M", &ns), DELTAFS_ERR_DAMAGED);
            continue;
        }
        check_names(path, O_RDONLY, "a", "text");
    }
    unit_save(journal, bytes, n);
    free(bytes);
    ns = open_ns(path, O_RDWR); /* the next one goes on behind it */
    put_file(ns, "/b", "text");
    close_ns(ns);
    check_names(path, O_RDONLY, "a b", "text");
}

/* The number of epochs does not grow with that of commits, and a namespace of an earlier version gets no journal. */
static void many_commits(void **state)
{
    static char target[1001];
    const char *path = unit_path("many");
    deltafs_namespace *ns = new_ns("many");
    char name[32];

    (void)state;
    memset(target, 't', sizeof target - 1);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "/%d", i);
        CHECK_IS(deltafs_namespace_symlink(ns, target, name), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    }
    CHECK_IS(epochs_of(path), 5000 * 1100 / JOURNAL_FULL);
    close_ns(ns);
    CHECK_IS(epochs_of(path), 5000 * 1100 / JOURNAL_FULL + 1);
    ns = open_ns(path, O_RDONLY);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "/%d", i);
        CHECK_IS(stat_of(ns, name).size, 1000);
    }
    close_ns(ns);

    ns = new_ns_without_journals("earlier");
    path = unit_path("earlier");
    put_file(ns, "/a", "text");
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
    CHECK_IS(epochs_of(path), 1);
    CHECK(!unit_exists(journal_of(path)));
    check_names(path, O_RDONLY, "a", "text");
    close_ns(ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(interrupted_commits),
                                       cmocka_unit_test(damaged_commits),
                                       cmocka_unit_test(salvaged_commits),
                                       cmocka_unit_test(lookups),
                                       cmocka_unit_test(journals_in_files),
                                       cmocka_unit_test(hostile_commits),
                                       cmocka_unit_test(failing_commits),
                                       cmocka_unit_test(beside_the_writer),
                                       cmocka_unit_test(writers_that_died),
                                       cmocka_unit_test(failed_data),
                                       cmocka_unit_test(old_journal),
                                       cmocka_unit_test(snapshots),
                                       cmocka_unit_test(services),
                                       cmocka_unit_test(damaged_journal),
                                       cmocka_unit_test(damaged_when_closed),
                                       cmocka_unit_test(many_commits),
                                       cmocka_unit_test(one_after_the_other),
                                       cmocka_unit_test(interrupted_before),
                                       cmocka_unit_test(synced),
                                       cmocka_unit_test(refused)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
