/* What stays when a handle is refreshed: its own changes, and the files and lists that it has open. */
#include <fcntl.h>
#include "namespace/namespace.h"
#include "unit_refresh.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_changes), cmocka_unit_test(own_folders),
                                       cmocka_unit_test(open_files), cmocka_unit_test(open_lists),
                                       cmocka_unit_test(stamps)};

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) ? EXIT_FAILURE : EXIT_SUCCESS;
}
