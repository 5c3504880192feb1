#include "unit_snapshot.h"

deltafs_namespace *open_view(const char *path, int flags, const char *a, const char *b, int policy)
{
    const char *const on[] = {a, b};
    deltafs_options *o = unit_options("memory", "32M", "threads", "0", NULL);
    deltafs_namespace *ns = NULL;

    CHECK_IS(deltafs_namespace_open_view(path, flags, b ? 2 : 1, on, policy, o, &ns), DELTAFS_OK);
    deltafs_options_destroy(o);
    return ns;
}

void publish(const char *path, const char *name)
{
    CHECK_IS(deltafs_snapshot_publish(path, named(name)), DELTAFS_OK);
}

void new_published(const char *name, const char *text, const char *snapshot)
{
    deltafs_namespace *ns = new_ns(name);

    put_file(ns, "/file", text);
    close_ns(ns);
    publish(unit_path("%s", name), snapshot);
}

void withdraw(const char *name)
{
    CHECK_IS(deltafs_snapshot_withdraw(named(name)), DELTAFS_OK);
}

unsigned count_pins(const char *path)
{
    return count_names(path, "PIN.");
}
