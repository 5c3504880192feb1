/* Refreshing a handle: it sees what others have committed, as one that is opened now does; its own changes stay, and so
 * do the files and lists that it has open. And what that costs: operations are counted, not timed. */
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fake_io.h"
#include "namespace/namespace.h"
#include "unit_namespace.h"

static void refresh(deltafs_namespace *ns)
{
    CHECK_IS(deltafs_namespace_refresh(ns), DELTAFS_OK);
}

static void commit(deltafs_namespace *ns)
{
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
}

static const char *path_of(const deltafs_namespace *ns)
{
    return unit_path("%s", strrchr(ns->path, '/') + 1);
}

/* Of the tables of others, the handle reads the same as one that is opened now. */
static void check_tables(const struct tables *is, const struct tables *now)
{
    size_t read = 0;

    CHECK_IS(is->count, now->count);
    CHECK(memcmp(is->compacted, now->compacted, sizeof is->compacted) == 0);
    for (size_t i = 0; i < is->count; i++) {
        const struct table *a = &is->table[i], *b = &now->table[i];
        read += a->epochs.first == 0;
        CHECK_IS(a->number, b->number);
        CHECK(a->is_own || (a->epochs.first == b->epochs.first && a->epochs.last == b->epochs.last &&
                            a->from == b->from && a->limit == b->limit && table_last_label(a) == table_last_label(b)));
    }
    CHECK(read <= is->shares);
}

/* A folder has for the handle what it has for one that is opened now. */
static void check_as_opened(deltafs_namespace *ns, const char *folder)
{
    deltafs_namespace *now = open_ns(path_of(ns), O_RDONLY);
    char names[512];

    check_tables(&ns->tables, &now->tables);
    CHECK(!ns->has_resolver || ns->resolver.tables == ns->tables.count);
    snprintf(names, sizeof names, "%s", list_names(now, folder));
    assert_string_equal(list_names(ns, folder), names);
    close_ns(now);
}

/* Many names in a commit, which is an epoch by itself. */
static void make_many(deltafs_namespace *ns, const char *folder, unsigned n)
{
    char path[64];

    CHECK_IS(deltafs_namespace_mkdir(ns, folder, 0700), DELTAFS_OK);
    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%u", folder, i);
        CHECK_IS(deltafs_namespace_create(ns, path, 0600, O_EXCL), DELTAFS_OK);
    }
    commit(ns);
}

static deltafs_namespace *create_one(const char *name, int has_journals)
{
    return has_journals ? new_ns(name) : new_ns_without_journals(name);
}

/* ---- What is seen ---- */

/* Each kind of change, of names that the handle has looked up, and of others. */
static void see_changes(deltafs_namespace *a, deltafs_namespace *b)
{
    struct deltafs_namespace_attributes mode = {
        .struct_size = sizeof mode, .set = DELTAFS_NAMESPACE_MODE, .mode = 0640};
    char target[8];
    size_t size;

    CHECK(!has(b, "/f") && !has(b, "/d/f"));
    put_file(a, "/f", "one");
    put_file(a, "/old", "old");
    CHECK_IS(deltafs_namespace_mkdir(a, "/d", 0700), DELTAFS_OK);
    put_file(a, "/d/f", "in folder");
    commit(a);
    CHECK(!has(b, "/f") && !has(b, "/d/f"));
    refresh(b);
    check_file(b, "/f", "one");
    check_file(b, "/d/f", "in folder");
    check_as_opened(b, "/");

    put_file(a, "/f", "another");
    CHECK_IS(deltafs_namespace_set_attributes(a, "/d", 0, &mode), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_set_attributes(a, "/", 0, &mode), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(a, "/old"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_symlink(a, "f", "/link"), DELTAFS_OK);
    commit(a);
    check_file(b, "/f", "one");
    refresh(b);
    check_file(b, "/f", "another");
    CHECK_IS(stat_of(b, "/f").size, 7);
    CHECK_IS(stat_of(b, "/d").mode, S_IFDIR | 0640);
    CHECK_IS(stat_of(b, "/").mode, S_IFDIR | 0640);
    CHECK(!has(b, "/old"));
    CHECK_IS(deltafs_namespace_readlink(b, "/link", target, sizeof target, &size), DELTAFS_OK);
    CHECK_IS(size, 1);
    check_as_opened(b, "/");

    CHECK_IS(deltafs_namespace_rename(a, "/d", "/e"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_rename(a, "/f", "/e/g"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_unlink(a, "/link"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(a, "/link", 0700), DELTAFS_OK);
    commit(a);
    check_file(b, "/d/f", "in folder");
    refresh(b);
    CHECK(!has(b, "/d/f") && !has(b, "/d") && !has(b, "/f"));
    check_file(b, "/e/f", "in folder");
    check_file(b, "/e/g", "another");
    CHECK_IS(stat_of(b, "/link").mode, S_IFDIR | 0700);
    check_as_opened(b, "/");
    check_as_opened(b, "/e");
}

static void changes(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "changes%d", i);
        deltafs_namespace *a = create_one(name, i & 1), *b = open_ns(path_of(a), i & 2 ? O_RDWR : O_RDONLY);
        see_changes(a, b);
        close_ns(b);
        close_ns(a);
    }
}

/* A journal that becomes an epoch, one that the next writer goes on with, and epochs without a journal. */
static void journals(void **state)
{
    deltafs_namespace *a = new_ns("journals"), *b = open_ns(path_of(a), O_RDWR),
                      *seldom = open_ns(path_of(a), O_RDONLY);
    static char text[200000];
    char path[32];
    size_t got;

    (void)state;
    for (int i = 0; i < 40; i++) {
        deltafs_namespace_file *f;
        snprintf(path, sizeof path, "/%d", i);
        memset(text, 'a' + i % 26, sizeof text);
        CHECK_IS(deltafs_namespace_file_open(a, path, O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_write(f, 0, text, sizeof text), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        commit(a);
        if (i == 20) {
            close_ns(a);
            a = open_ns(path_of(b), O_RDWR);
        }
        for (int k = 0; k < 2; k++) {
            deltafs_namespace *ns = k == 0 ? b : seldom;
            if (k == 1 && i % 9 != 8)
                continue;
            refresh(ns);
            CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
            CHECK_IS(deltafs_namespace_file_read(f, 0, text, sizeof text, &got), DELTAFS_OK);
            CHECK(got == sizeof text && text[0] == 'a' + i % 26 && text[got - 1] == text[0]);
            CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
            CHECK(has(ns, "/0") && !has(ns, "/40"));
        }
    }
    close_ns(seldom);
    make_many(a, "/many", 4000);
    CHECK(!has(b, "/many/3999"));
    refresh(b);
    CHECK(has(b, "/many/3999") && has(b, "/39"));
    check_as_opened(b, "/");
    close_ns(b);
    close_ns(a);
}

/* An epoch of what was seen in a journal, and one that has copies of others, let no names be forgotten. */
static void seen_epochs(void **state)
{
    deltafs_namespace *a = new_ns("seen"), *b = open_ns(path_of(a), O_RDONLY);
    static char text[200000];
    char path[32];

    (void)state;
    for (int i = 0; i < 8; i++) {
        snprintf(path, sizeof path, "/many%d", i);
        make_many(a, path, 4000);
    }
    for (int i = 0; i < 2; i++) {
        deltafs_namespace_file *f;
        snprintf(path, sizeof path, "/%d", i);
        CHECK_IS(deltafs_namespace_file_open(a, path, O_RDWR | O_CREAT, 0600, &f), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_write(f, 0, text, sizeof text), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        commit(a);
    }
    refresh(b);
    CHECK(has(b, "/1") && !has(b, "/2"));
    uint64_t clears = b->clears;
    close_ns(a);
    CHECK_IS(count_names(path_of(b), "t"), 2); /* no journal */
    refresh(b);
    CHECK_IS(b->clears, clears);
    CHECK(has(b, "/1") && !has(b, "/2") && has(b, "/many7/3999"));
    check_as_opened(b, "/");
    close_ns(b);
}

/* Tables of new writers: more than the handle had memory for when it was opened. */
static void new_writers(void **state)
{
    deltafs_namespace *a = new_ns("writers"), *b = open_ns(path_of(a), O_RDONLY), *writer[7];
    char path[32];

    (void)state;
    for (int i = 0; i < 7; i++) {
        writer[i] = open_ns(path_of(a), O_RDWR);
        refresh(b); /* nothing is in the table yet */
        snprintf(path, sizeof path, "/%d", i);
        put_file(writer[i], path, path);
        commit(writer[i]);
        refresh(b);
        check_file(b, path, path);
        put_file(writer[i], "/all", path);
        commit(writer[i]);
        if (i > 0)
            refresh(writer[i - 1]);
        refresh(b);
        check_file(b, "/all", path);
    }
    check_as_opened(b, "/");
    for (int i = 0; i < 7; i++)
        close_ns(writer[i]);
    refresh(b);
    check_as_opened(b, "/");
    close_ns(b);
    close_ns(a);
}

/* Epochs that others cover, and a compaction. */
static void merges(void **state)
{
    char path[32];

    (void)state;
    for (int has_journals = 0; has_journals < 2; has_journals++) {
        deltafs_namespace *a = create_one(has_journals ? "merges" : "merges0", has_journals);
        deltafs_namespace *b = open_ns(path_of(a), O_RDWR), *c = open_ns(path_of(a), O_RDONLY);
        for (int i = 0; i < 24; i++) {
            snprintf(path, sizeof path, "/%d", i);
            put_file(a, path, path);
            put_file(a, "/last", path);
            commit(a);
            put_file(b, "/b", path);
            if (i % 5 == 4) {
                commit(b);
                refresh(a);
                check_file(a, "/b", path);
            }
            if (i % 8 == 7)
                CHECK_IS(deltafs_namespace_compact(path_of(a), NULL), DELTAFS_OK);
            refresh(b);
            check_file(b, path, path);
            check_file(b, "/last", path);
            if (i % 11 != 10)
                continue;
            refresh(c);
            check_file(c, "/last", path);
            check_as_opened(c, "/");
        }
        commit(b);
        make_many(a, "/many", 4000); /* an epoch, with what was compacted when it was in a journal */
        refresh(a);
        check_as_opened(a, "/");
        refresh(b);
        check_as_opened(b, "/");
        close_ns(c);
        close_ns(b);
        close_ns(a);
    }
}

/* A reader without a lease, whose tables were removed. */
static void removed_tables(void **state)
{
    deltafs_namespace *a = new_ns("removed"), *b;
    const char *path = unit_path("removed");

    (void)state;
    put_file(a, "/one", "1");
    make_many(a, "/many", 4000);
    b = open_ns(path, O_RDONLY);
    check_file(b, "/one", "1");
    remove_leases(path);
    put_file(a, "/two", "2");
    close_ns(a);
    CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_collect(path, NULL), DELTAFS_OK);
    refresh(b);
    check_file(b, "/one", "1");
    check_file(b, "/two", "2");
    CHECK(has(b, "/many/3999"));
    check_as_opened(b, "/");
    close_ns(b);
}

/* On top of snapshots; and names that a resolver looks up. */
static void layers(void **state)
{
    const char *below[2];
    deltafs_namespace *a, *b;

    (void)state;
    for (int i = 0; i < 2; i++) {
        a = new_ns(i == 0 ? "below0" : "below1");
        put_file(a, "/f", i == 0 ? "zero" : "one");
        put_file(a, i == 0 ? "/0" : "/1", "x");
        close_ns(a);
        CHECK_IS(deltafs_snapshot_publish(unit_path("below%d", i), unit_path("registry@%d", i)), DELTAFS_OK);
    }
    below[0] = unit_path("registry@0");
    below[1] = unit_path("registry@1");
    CHECK_IS(
        deltafs_namespace_open_view(unit_path("above"), O_RDWR | O_CREAT, 2, below, DELTAFS_SNAPSHOT_FIRST, NULL, &a),
        DELTAFS_OK);
    b = open_ns(unit_path("above"), O_RDWR);
    check_file(b, "/f", "zero");
    put_file(a, "/f", "above");
    CHECK_IS(deltafs_namespace_unlink(a, "/1"), DELTAFS_OK);
    commit(a);
    check_file(b, "/f", "zero");
    refresh(b);
    check_file(b, "/f", "above");
    check_as_opened(b, "/");
    put_file(b, "/b", "b");
    commit(b);
    refresh(a);
    check_as_opened(a, "/");
    close_ns(b);
    CHECK_IS(deltafs_namespace_open_view(NULL, O_RDONLY, 2, below, DELTAFS_SNAPSHOT_FIRST, NULL, &b), DELTAFS_OK);
    refresh(b);
    assert_string_equal(list_names(b, "/"), "0 1 f");
    close_ns(b);
    CHECK_IS(deltafs_snapshot_publish(unit_path("above"), unit_path("registry@above")), DELTAFS_OK);
    b = open_ns(unit_path("registry@above"), O_RDONLY);
    put_file(a, "/f", "later");
    commit(a);
    refresh(b);
    check_file(b, "/f", "above");
    close_ns(b);
    close_ns(a);
}

#define COMMITS 400

/* Commit two files with the same number, again and again; some commits are epochs, or fill the journal. */
static noreturn void write_numbers(const char *path)
{
    deltafs_namespace *ns = open_ns(path, O_RDWR);
    static char text[100000];
    deltafs_namespace_file *f;

    for (int i = 1; i <= COMMITS; i++) {
        snprintf(text, sizeof text, "%d", i);
        for (int k = 0; k < 2; k++) {
            CHECK_IS(deltafs_namespace_file_open(ns, k ? "/b" : "/a", O_WRONLY | O_CREAT | O_TRUNC, 0600, &f),
                     DELTAFS_OK);
            CHECK_IS(deltafs_namespace_file_write(f, 0, text, i % 3 == 0 ? sizeof text : 20), DELTAFS_OK);
            CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
        }
        if (i % 50 == 0) {
            snprintf(text, sizeof text, "/many%d", i);
            make_many(ns, text, 3000);
        }
        commit(ns);
    }
    CHECK_IS(deltafs_namespace_close(ns), DELTAFS_OK);
    die();
}

static int number_in(deltafs_namespace *ns, const char *path)
{
    char text[20] = "0";
    deltafs_namespace_file *f;
    size_t got;

    if (!has(ns, path))
        return 0;
    CHECK_IS(deltafs_namespace_file_open(ns, path, O_RDONLY, 0, &f), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_read(f, 0, text, sizeof text, &got), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
    return atoi(text);
}

/* While another process commits, a refresh sees all or nothing of each commit, and never less than before. */
static void beside_a_writer(void **state)
{
    deltafs_namespace *ns = new_ns("beside");
    int last = 0, ended = 0;
    pid_t gone = 0;

    (void)state;
    commit(ns);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        write_numbers(unit_path("beside"));
    while (gone == 0) {
        gone = waitpid(pid, &ended, WNOHANG);
        refresh(ns);
        int a = number_in(ns, "/a"), b = number_in(ns, "/b");
        CHECK(a == b && a >= last);
        last = a;
    }
    CHECK(gone == pid && has_died(ended));
    CHECK_IS(last, COMMITS);
    CHECK(has(ns, "/many400/2999"));
    check_as_opened(ns, "/");
    close_ns(ns);
}

/* ---- What stays ---- */

/* Changes that are not committed, whatever others commit. */
static void own_changes(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        deltafs_namespace *a = new_ns(i ? "own1" : "own0"), *b;
        const char *path = unit_path(i ? "own1" : "own0");
        put_file(a, "/gone", "1");
        put_file(a, "/kept", "1");
        put_file(a, "/both", "1");
        commit(a);
        b = open_ns(path, O_RDWR);
        CHECK_IS(deltafs_namespace_unlink(b, "/gone"), DELTAFS_OK);
        CHECK_IS(deltafs_namespace_mkdir(b, "/d", 0700), DELTAFS_OK);
        put_file(b, "/d/mine", "mine");
        put_file(b, "/d/too", "too");
        CHECK_IS(deltafs_namespace_symlink(b, "d/mine", "/link"), DELTAFS_OK);
        put_file(b, "/both", "of b");
        CHECK(has(b, "/kept"));
        CHECK_IS(deltafs_namespace_unlink(a, "/kept"), DELTAFS_OK);
        put_file(a, "/both", "of a");
        if (i == 0)
            commit(a);
        else
            make_many(a, "/many", 4000);
        refresh(b);
        CHECK(!has(b, "/gone") && !has(b, "/kept"));
        check_file(b, "/link", "mine");
        check_file(b, "/both", "of a"); /* which is newer */
        assert_string_equal(list_names(b, "/d"), "mine too");
        assert_string_equal(list_names(b, "/"), i == 0 ? "both d link" : "both d link many");
        CHECK_IS(deltafs_namespace_rename(b, "/d", "/e"), DELTAFS_OK);
        put_file(b, "/both", "newest");
        commit(b);
        check_as_opened(b, "/");
        check_as_opened(b, "/e");
        refresh(a);
        check_file(a, "/both", "newest");
        check_file(a, "/e/mine", "mine");
        check_as_opened(a, "/");
        close_ns(b);
        close_ns(a);
    }
}

/* What others have put into a folder that the handle has created. */
static void own_folders(void **state)
{
    deltafs_namespace *a = new_ns("folders"), *b = open_ns(path_of(a), O_RDWR);

    (void)state;
    CHECK_IS(deltafs_namespace_mkdir(b, "/d", 0700), DELTAFS_OK);
    put_file(b, "/d/mine", "mine");
    commit(b);
    refresh(a);
    put_file(a, "/d/one", "one");
    put_file(a, "/d/mine", "yours");
    commit(a);
    refresh(b);
    check_file(b, "/d/one", "one");
    check_file(b, "/d/mine", "yours");
    CHECK_IS(deltafs_namespace_create(b, "/d/one", 0600, O_EXCL), DELTAFS_ERR_EXISTS);
    make_many(a, "/d/many", 4000);
    put_file(a, "/d/two", "two");
    commit(a);
    refresh(b);
    check_file(b, "/d/two", "two");
    CHECK(has(b, "/d/many/7"));
    CHECK_IS(deltafs_namespace_unlink(a, "/d/two"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_mkdir(a, "/d/two", 0700), DELTAFS_OK);
    commit(a);
    refresh(b);
    CHECK_IS(deltafs_namespace_create(b, "/d/two", 0600, 0), DELTAFS_ERR_FOLDER);
    CHECK_IS(deltafs_namespace_rmdir(b, "/d/two"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_rmdir(b, "/d"), DELTAFS_ERR_NOT_EMPTY);
    close_ns(b);
    close_ns(a);
}

static deltafs_namespace_file *open_file(deltafs_namespace *ns, const char *path, int flags)
{
    deltafs_namespace_file *f = NULL;

    CHECK_IS(deltafs_namespace_file_open(ns, path, flags, 0600, &f), DELTAFS_OK);
    return f;
}

static void check_text(deltafs_namespace_file *f, const char *text)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    char bytes[64] = "";
    size_t got;

    CHECK_IS(deltafs_namespace_file_read(f, 0, bytes, sizeof bytes - 1, &got), DELTAFS_OK);
    assert_string_equal(bytes, text);
    CHECK_IS(deltafs_namespace_file_stat(f, &s), DELTAFS_OK);
    CHECK_IS(s.size, strlen(text));
}

static void close_file(deltafs_namespace_file *f)
{
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}

/* A file that is open has what it had; opened again, it has what is new. */
static void open_files(void **state)
{
    struct deltafs_namespace_attributes mode = {
        .struct_size = sizeof mode, .set = DELTAFS_NAMESPACE_MODE, .mode = 0640};
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    deltafs_namespace *a = new_ns("files"), *b;
    deltafs_namespace_file *old, *now, *same;

    (void)state;
    put_file(a, "/f", "first");
    put_file(a, "/g", "g");
    commit(a);
    b = open_ns(path_of(a), O_RDWR);
    old = open_file(b, "/f", O_RDWR);
    put_file(a, "/f", "the second");
    CHECK_IS(deltafs_namespace_set_attributes(a, "/g", 0, &mode), DELTAFS_OK);
    commit(a);
    refresh(b);
    check_text(old, "first");
    now = open_file(b, "/f", O_RDWR);
    same = open_file(b, "/f", O_RDWR);
    check_text(now, "the second");
    CHECK_IS(stat_of(b, "/f").size, 10);
    CHECK_IS(deltafs_namespace_file_write(same, 0, "THE", 3), DELTAFS_OK);
    check_text(now, "THE second");
    check_text(old, "first");
    /* What the handle itself does is true of both. */
    CHECK_IS(deltafs_namespace_set_attributes(b, "/f", 0, &mode), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_rename(b, "/f", "/h"), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_file_stat(old, &s), DELTAFS_OK);
    CHECK_IS(s.mode, S_IFREG | 0640);
    close_file(now);
    close_file(same);
    check_file(b, "/h", "THE second");
    /* The newest change counts, which is that of the old one. */
    CHECK_IS(deltafs_namespace_file_write(old, 0, "F", 1), DELTAFS_OK);
    CHECK_IS(stat_of(b, "/h").size, 5);
    now = open_file(b, "/h", O_RDONLY);
    check_text(now, "First");
    close_file(now);
    close_file(old);
    check_file(b, "/h", "First");
    CHECK(!has(b, "/f"));
    /* The same bytes: one file, with the new attributes. */
    old = open_file(b, "/g", O_RDWR);
    mode.mode = 0600;
    CHECK_IS(deltafs_namespace_set_attributes(a, "/g", 0, &mode), DELTAFS_OK);
    CHECK_IS(deltafs_namespace_rename(a, "/g", "/i"), DELTAFS_OK);
    commit(a);
    refresh(b);
    CHECK_IS(stat_of(b, "/i").mode, S_IFREG | 0600);
    now = open_file(b, "/i", O_RDWR);
    CHECK_IS(deltafs_namespace_file_stat(now, &s), DELTAFS_OK);
    CHECK_IS(s.mode, S_IFREG | 0600);
    CHECK_IS(deltafs_namespace_file_write(old, 1, "!", 1), DELTAFS_OK);
    check_text(now, "g!");
    close_file(now);
    close_file(old);
    check_file(b, "/i", "g!");
    CHECK(!has(b, "/g"));
    /* Removed here, and changed there after that: it is back, and a file of its own. */
    commit(b);
    refresh(a);
    old = open_file(b, "/i", O_RDWR);
    CHECK_IS(deltafs_namespace_unlink(b, "/i"), DELTAFS_OK);
    put_file(a, "/i", "back");
    commit(a);
    refresh(b);
    CHECK_IS(deltafs_namespace_file_write(old, 0, "x", 1), DELTAFS_OK);
    check_file(b, "/i", "back");
    check_text(old, "x!");
    close_file(old);
    check_file(b, "/i", "back");
    close_ns(b);
    close_ns(a);
}

/* A list goes on, whatever is refreshed: each name that stays is in it once, and its state may be that of now. */
static void open_lists(void **state)
{
    const struct deltafs_namespace_entry *entry;
    deltafs_namespace_list *l;
    char path[32];

    (void)state;
    for (int i = 0; i < 12; i++) {
        char name[32];
        snprintf(name, sizeof name, "lists%d", i);
        deltafs_namespace *a = create_one(name, i & 1), *c = NULL;
        for (int k = 0; k < 40; k++) {
            snprintf(path, sizeof path, "/%d", k);
            put_file(a, path, "1");
        }
        commit(a);
        deltafs_namespace *b = open_ns(path_of(a), i & 2 ? O_RDWR : O_RDONLY);
        unsigned seen[40] = {0}, n = 0;
        CHECK_IS(deltafs_namespace_list_open(b, "/", &l), DELTAFS_OK);
        for (;;) {
            CHECK_IS(deltafs_namespace_list_next(l, &entry), DELTAFS_OK);
            if (!entry)
                break;
            seen[atoi(entry->name)]++;
            snprintf(path, sizeof path, "/%s", entry->name);
            if (++n == 10 && i / 4 == 1)
                CHECK_IS(deltafs_namespace_compact(path_of(a), NULL), DELTAFS_OK);
            if (n == 10 && i / 4 == 2)
                c = open_ns(path_of(a), O_RDWR);
            deltafs_namespace *writer = c ? c : a;
            put_file(writer, path, "new");
            put_file(writer, "/0", "0");
            commit(writer);
            refresh(b);
            check_file(b, path, strcmp(path, "/0") == 0 ? "0" : "new"); /* not what the list says */
            CHECK_IS(stat_of(b, path).size, strcmp(path, "/0") == 0 ? 1 : 3);
        }
        for (int k = 0; k < 40; k++)
            CHECK_IS(seen[k], 1);
        CHECK_IS(deltafs_namespace_list_close(l), DELTAFS_OK);
        check_as_opened(b, "/");
        close_ns(b);
        if (c)
            close_ns(c);
        close_ns(a);
    }
}

/* A change after a refresh is newer than all that was seen, also if the other's clock is ahead. */
static void stamps(void **state)
{
    deltafs_namespace *a = new_ns("stamps"), *b = open_ns(path_of(a), O_RDWR), *c = open_ns(path_of(a), O_RDONLY);

    (void)state;
    for (int i = 0; i < 5; i++) {
        a->last_stamp += UINT64_C(3600000000000);
        put_file(a, "/f", "a");
        commit(a);
        if (i == 2)
            make_many(a, "/many", 4000);
        refresh(b);
        put_file(b, "/f", "b");
        commit(b);
        refresh(c);
        check_file(c, "/f", "b");
        refresh(a);
        check_file(a, "/f", "b");
    }
    close_ns(c);
    close_ns(b);
    close_ns(a);
}

/* ---- Failures and costs ---- */

static struct {
    int is_counting, has_failed;
    uint64_t operations, fails_at, bytes;
} counted;

static ssize_t count(struct fake_call *c)
{
    if (!counted.is_counting)
        return fake_do(c);
    if (++counted.operations == counted.fails_at) {
        counted.has_failed = 1;
        return -EIO;
    }
    ssize_t rc = fake_do(c);
    counted.bytes += c->op == FAKE_READ && rc > 0 ? (uint64_t)rc : 0;
    return rc;
}

/* With the operation of this number failing; 0: none. */
static int counted_refresh(deltafs_namespace *ns, uint64_t fails_at)
{
    memset(&counted, 0, sizeof counted);
    counted.fails_at = fails_at;
    counted.is_counting = 1;
    int status = deltafs_namespace_refresh(ns);
    counted.is_counting = 0;
    return status;
}

/* Whatever cannot be read, what was seen stays, and the next refresh finds all. */
static void failures(void **state)
{
    struct fake_io fake;
    int failed = 0;

    (void)state;
    for (int what = 0; what < 4; what++)
        for (uint64_t k = 1, has_failed = 1; has_failed; k++) {
            deltafs_namespace *a = new_ns("failures"), *c = NULL;
            const char *path = unit_path("failures");
            put_file(a, "/f", "one");
            commit(a);
            fake_io_begin(&fake, count);
            deltafs_namespace *b = open_ns(path, O_RDWR);
            check_file(b, "/f", "one");
            put_file(b, "/own", "own");
            if (k % 2 == 0)
                refresh(b);
            io_replace_default(NULL, NULL);
            put_file(a, "/f", "second");
            if (what == 1)
                make_many(a, "/many", 4000);
            commit(a);
            if (what == 2)
                put_file(c = open_ns(path, O_RDWR), "/c", "c");
            if (c)
                commit(c);
            if (what == 3)
                CHECK_IS(deltafs_namespace_compact(path, NULL), DELTAFS_OK);
            io_replace_default(&fake.ops, &fake);
            int status = counted_refresh(b, k);
            CHECK(status == DELTAFS_OK || (counted.has_failed && status == DELTAFS_ERR_IO));
            failed += status != DELTAFS_OK;
            has_failed = (uint64_t)counted.has_failed;
            check_file(b, "/own", "own");
            CHECK(has(b, "/f"));
            refresh(b);
            check_file(b, "/f", "second");
            check_file(b, "/own", "own");
            CHECK(has(b, "/many/3999") == (what == 1) && has(b, "/c") == (what == 2));
            close_ns(b);
            CHECK_IS(fake_io_end(&fake), 0);
            if (c)
                close_ns(c);
            close_ns(a);
            unit_remove(path);
        }
    CHECK(failed > 10);
}

/* A journal that is damaged behind what was read. */
static void damage(void **state)
{
    deltafs_options *o = unit_options("memory", "32M", "threads", "0", "sync", "commit", NULL);
    deltafs_namespace *a, *b;
    char table[32];
    size_t n, at;

    (void)state;
    CHECK_IS(deltafs_namespace_open(unit_path("damage"), O_RDWR | O_CREAT, o, &a), DELTAFS_OK);
    deltafs_options_destroy(o);
    b = open_ns(path_of(a), O_RDONLY);
    put_file(a, "/f", "one");
    commit(a);
    count_tables(path_of(a), table);
    const char *journal = unit_path("damage/%s" TABLE_JOURNAL, table);
    refresh(b);
    put_file(a, "/f", "two");
    commit(a);
    at = a->own.journal.end + 50;
    put_file(a, "/f", "three");
    commit(a);
    put_file(a, "/f", "four");
    commit(a);
    uint8_t *bytes = unit_load(journal, &n);
    bytes[at] ^= 1;
    unit_save(journal, bytes, n);
    CHECK_IS(deltafs_namespace_refresh(b), DELTAFS_ERR_DAMAGED);
    CHECK(strstr(deltafs_errmsg(NULL), journal));
    CHECK_IS(deltafs_namespace_refresh(b), DELTAFS_ERR_DAMAGED);
    check_file(b, "/f", "one");
    bytes[at] ^= 1;
    unit_save(journal, bytes, n);
    free(bytes);
    refresh(b);
    check_file(b, "/f", "four");
    close_ns(b);
    close_ns(a);
}

/* A journal that was written again by a repair, without a commit that was damaged. */
static void repaired(void **state)
{
    char table[32], path[32];
    size_t n, first = 0;

    (void)state;
    for (int is_open = 0; is_open < 2; is_open++) {
        snprintf(path, sizeof path, "repaired%d", is_open);
        deltafs_namespace *a = new_ns(path), *b = open_ns(path_of(a), O_RDONLY);
        for (int i = 0; i < 5; i++) {
            snprintf(path, sizeof path, "/%d", i);
            put_file(a, path, path);
            commit(a);
            if (i == 0)
                first = a->own.journal.end;
            if (i == 1 || (i == 2 && is_open))
                refresh(b);
        }
        count_tables(path_of(a), table);
        const char *journal = unit_path("repaired%d/%s" TABLE_JOURNAL, is_open, table);
        const char *aside = unit_path("repaired%d/aside", is_open);
        uint8_t *bytes = unit_load(journal, &n);
        unit_save(aside, bytes + first, n - first);
        free(bytes);
        CHECK_IS(rename(aside, journal), 0);
        refresh(b);
        assert_string_equal(list_names(b, "/"), "1 2 3 4");
        check_as_opened(b, "/");
        check_file(b, "/3", "/3");
        close_ns(b);
        close_ns(a);
    }
}

/* A commit that was seen, and then taken back, as it could not be synced. */
static void taken_back(void **state)
{
    deltafs_namespace *a = new_ns("back"), *b = open_ns(path_of(a), O_RDWR);
    char table[32];

    (void)state;
    put_file(a, "/f", "one");
    commit(a);
    off_t end = (off_t)a->own.journal.end;
    snprintf(table, sizeof table, "t%016llx", (unsigned long long)a->own.number);
    put_file(b, "/own", "own");
    put_file(a, "/f", "two");
    put_file(a, "/g", "g");
    put_file(a, "/own", "of a");
    commit(a);
    refresh(b);
    check_file(b, "/f", "two");
    check_file(b, "/own", "of a");
    assert_string_equal(list_names(b, "/"), "f g own");
    CHECK_IS(truncate(unit_path("back/%s" TABLE_JOURNAL, table), end), 0);
    refresh(b);
    check_file(b, "/f", "one");
    check_file(b, "/own", "own");
    assert_string_equal(list_names(b, "/"), "f own");
    CHECK(!has(b, "/g"));
    close_ns(b);
    close_ns(a);
}

/* On a file system where this host may see late what others do. */
static ssize_t be_late(struct fake_call *c)
{
    return c->op == FAKE_REFRESH ? 1 : fake_do(c);
}

static void late(void **state)
{
    deltafs_namespace *a = new_ns("late"), *b;
    struct fake_io fake;

    (void)state;
    fake_io_init(&fake, be_late);
    fake_io_has_all(&fake);
    io_replace_default(&fake.ops, &fake);
    b = open_ns(path_of(a), O_RDWR);
    io_replace_default(NULL, NULL);
    see_changes(a, b);
    CHECK(b->tables.is_late);
    close_ns(b);
    CHECK_IS(fake_io_end(&fake), 0);
    close_ns(a);
}

static void refusals(void **state)
{
    deltafs_namespace *a = new_ns("refusals");

    (void)state;
    CHECK_IS(deltafs_namespace_refresh(NULL), DELTAFS_ERR_INVALID);
    a->broken = (struct error){.status = DELTAFS_ERR_NO_SPACE, .text = "broken"};
    CHECK_IS(deltafs_namespace_refresh(a), DELTAFS_ERR_NO_SPACE);
    a->broken.status = DELTAFS_OK;
    close_ns(a);
}

/* What a refresh costs depends on what is new, and on nothing else. */
static void costs(void **state)
{
    deltafs_namespace *writer[4] = {new_ns("costs")}, *b;
    static char text[200000];
    struct fake_io fake;

    (void)state;
    for (int i = 1; i < 4; i++)
        writer[i] = open_ns(path_of(writer[0]), O_RDWR);
    make_many(writer[0], "/many", 4000);
    for (int i = 0; i < 4; i++) {
        deltafs_namespace_file *f = open_file(writer[i], "/large", O_RDWR | O_CREAT);
        CHECK_IS(deltafs_namespace_file_write(f, 0, text, sizeof text), DELTAFS_OK);
        close_file(f);
        commit(writer[i]);
    }
    fake_io_begin(&fake, count);
    b = open_ns(path_of(writer[0]), O_RDONLY);
    CHECK_IS(counted_refresh(b, 0), DELTAFS_OK);
    CHECK_IS(counted_refresh(b, 0), DELTAFS_OK);
    CHECK(counted.operations <= 6 && counted.bytes == 0);
    for (int i = 0; i < 4; i++) {
        CHECK(!has(b, "/new"));
        put_file(writer[i], "/new", "1");
        commit(writer[i]);
        CHECK_IS(counted_refresh(b, 0), DELTAFS_OK);
        CHECK(counted.operations <= 11 && counted.bytes < 300);
        CHECK(has(b, "/new"));
        CHECK_IS(deltafs_namespace_unlink(writer[i], "/new"), DELTAFS_OK);
        commit(writer[i]);
        CHECK_IS(counted_refresh(b, 0), DELTAFS_OK);
        CHECK(counted.operations <= 8 && counted.bytes < 300); /* the journal is open now */
        CHECK(!has(b, "/new"));
    }
    close_ns(b);
    CHECK_IS(fake_io_end(&fake), 0);
    for (int i = 0; i < 4; i++)
        close_ns(writer[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes),        cmocka_unit_test(journals),    cmocka_unit_test(seen_epochs),
        cmocka_unit_test(new_writers),    cmocka_unit_test(merges),      cmocka_unit_test(layers),
        cmocka_unit_test(removed_tables), cmocka_unit_test(own_changes), cmocka_unit_test(beside_a_writer),
        cmocka_unit_test(own_folders),    cmocka_unit_test(open_files),  cmocka_unit_test(open_lists),
        cmocka_unit_test(stamps),         cmocka_unit_test(failures),    cmocka_unit_test(damage),
        cmocka_unit_test(refusals),       cmocka_unit_test(taken_back),  cmocka_unit_test(repaired),
        cmocka_unit_test(late),           cmocka_unit_test(costs)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
