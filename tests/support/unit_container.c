#include <fcntl.h>
#include <ftw.h>
#include "logical/format/logical_format.h"
#include "unit_container.h"

int unit_container_open(struct container *c, const char *name, int flags, struct error *e)
{
    struct io io = io_default();

    return container_open(c, &io, unit_path("%s", name), flags, 0, e);
}

void unit_container_make(const char *name, struct container *c)
{
    struct error e;

    CHECK_IS(unit_container_open(c, name, O_CREAT | O_EXCL, &e), DELTAFS_OK);
}

void unit_session_make(const struct container *c, uint32_t writers, const char *volumes, struct session *s)
{
    struct io io = io_default();
    struct error e = {0};

    if (session_create(c, &io, writers, 5, volumes, 0, s, &e) != DELTAFS_OK)
        fail_msg("%s", e.text);
    for (uint32_t w = 0; w < writers; w += 3)
        for (int kind = LOG_KIND_FRAMES; kind <= LOG_KIND_EXTENTS; kind++) {
            char path[PATH_ROOM];
            session_log_path(c, s, w, kind, path);
            unit_save(path, "x", 1);
        }
}

int unit_session_list(const struct container *c, struct session *first, size_t *n, struct error *e)
{
    struct io io = io_default();
    struct session *list;
    int status = session_list(c, &io, &list, n, e);

    if (status != DELTAFS_OK)
        return status;
    if (*n > 0)
        *first = list[0];
    free(list);
    return DELTAFS_OK;
}

static unsigned entries;

static int count_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)path;
    (void)st;
    (void)flag;
    (void)ftw;
    entries++;
    return 0;
}

unsigned unit_count_entries(const char *path)
{
    entries = 0;
    nftw(path, count_one, 16, FTW_PHYS);
    return entries;
}
