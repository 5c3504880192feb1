/* Journals of namespaces: whoever reads a namespace sees what its journals have: other processes, snapshots, lists,
 * compaction, collection. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "io/lease.h"
#include "namespace/journal.h"
#include "unit_io.h"
#include "unit_kth.h"
#include "unit_namespace.h"

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

/* What is durable in a journal stays so: a writer whose own commits need not be durable does not remove the journal
 * before the epochs that have it are, and neither does the next one. */
static void inherited(void **state)
{
    static const char *const sync[] = {"none", "close"};
    deltafs_namespace *ns;
    char name[32];
    size_t size;

    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *path = unit_path("inherited%d", i);
        int is_table = i % 2; /* or its data, which is first: MANIFEST and its copy */
        deltafs_options *o = unit_options("memory", "32M", "threads", "0", "sync", sync[i / 2], NULL);
        deltafs_options *none = unit_options("memory", "32M", "threads", "0", "sync", "none", NULL);
        ns = new_ns(strrchr(path, '/') + 1);
        put_file(ns, "/a", "kept");
        close_ns(ns);
        unit_io_begin();
        CHECK_IS(deltafs_namespace_open(path, O_RDWR, o, &ns), DELTAFS_OK);
        for (unsigned k = 0; k < JOURNAL_GROUP_MAX / 50; k++) { /* more than a group of the journal */
            snprintf(name, sizeof name, "/%u", k);
            CHECK_IS(deltafs_namespace_mkdir(ns, name, 0700), DELTAFS_OK);
        }
        unit_io_fail(OP_SYNC, "MANIFEST", is_table ? 2 : 0, 1, EIO);
        CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_ERR_IO);
        CHECK_IS(unit_io_failures(), 1);
        CHECK_IS(deltafs_namespace_close(ns), DELTAFS_ERR_IO);
        /* The epoch of the table is there. */
        unit_io_fail(OP_SYNC, "MANIFEST", 0, UINT64_MAX, EIO);
        if (is_table)
            CHECK_IS(deltafs_namespace_open(path, O_RDWR, none, &ns), DELTAFS_ERR_IO);
        unit_io_end();
        free(unit_load(journal_of(path), &size));
        CHECK(size > 0);
        CHECK_IS(deltafs_namespace_open(path, O_RDWR, none, &ns), DELTAFS_OK);
        check_file(ns, "/a", "kept");
        close_ns(ns);
        deltafs_options_destroy(o);
        deltafs_options_destroy(none);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(beside_the_writer),  cmocka_unit_test(writers_that_died),
                                       cmocka_unit_test(failed_data),        cmocka_unit_test(old_journal),
                                       cmocka_unit_test(snapshots),          cmocka_unit_test(services),
                                       cmocka_unit_test(damaged_journal),    cmocka_unit_test(damaged_when_closed),
                                       cmocka_unit_test(many_commits),       cmocka_unit_test(one_after_the_other),
                                       cmocka_unit_test(interrupted_before), cmocka_unit_test(synced),
                                       cmocka_unit_test(inherited),          cmocka_unit_test(refused)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
