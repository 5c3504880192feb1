#include "unit_refresh.h"
#include <fcntl.h>
#include "namespace/namespace.h"

void refresh(deltafs_namespace *ns)
{
    CHECK_IS(deltafs_namespace_refresh(ns), DELTAFS_OK);
}

void commit(deltafs_namespace *ns)
{
    CHECK_IS(deltafs_namespace_commit(ns), DELTAFS_OK);
}

const char *path_of(const deltafs_namespace *ns)
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

void check_as_opened(deltafs_namespace *ns, const char *folder)
{
    deltafs_namespace *now = open_ns(path_of(ns), O_RDONLY);
    char names[512];

    check_tables(&ns->tables, &now->tables);
    CHECK(!ns->has_resolver || ns->resolver.tables == ns->tables.count);
    snprintf(names, sizeof names, "%s", list_names(now, folder));
    assert_string_equal(list_names(ns, folder), names);
    close_ns(now);
}

void make_many(deltafs_namespace *ns, const char *folder, unsigned n)
{
    char path[64];

    CHECK_IS(deltafs_namespace_mkdir(ns, folder, 0700), DELTAFS_OK);
    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%u", folder, i);
        CHECK_IS(deltafs_namespace_create(ns, path, 0600, O_EXCL), DELTAFS_OK);
    }
    commit(ns);
}

deltafs_namespace *create_one(const char *name, int has_journals)
{
    return has_journals ? new_ns(name) : new_ns_without_journals(name);
}

void see_changes(deltafs_namespace *a, deltafs_namespace *b)
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

deltafs_namespace_file *open_file(deltafs_namespace *ns, const char *path, int flags)
{
    deltafs_namespace_file *f = NULL;

    CHECK_IS(deltafs_namespace_file_open(ns, path, flags, 0600, &f), DELTAFS_OK);
    return f;
}

void close_file(deltafs_namespace_file *f)
{
    CHECK_IS(deltafs_namespace_file_close(f), DELTAFS_OK);
}
