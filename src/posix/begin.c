#include "posix/begin.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "posix/handover.h"
#include "posix/logical_view.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/pooled.h"
#include "posix/posix_tree.h"
#include "posix/route.h"

static int take_logical(void)
{
    mounts.mount[MOUNTS_MAX] =
        (struct mount){.kind = MOUNT_LOGICAL, .point = "", .target = "/", .stat = logical_stat, .sync = logical_sync};
    mounts.has_logical = 1;
    return 0;
}

/* Take KIND=POINT=TARGET, and count it if it has a mount point. Returns an error number. */
static int take_mount(char *text)
{
    struct mount *m = &mounts.mount[mounts.count];
    char *kind = strtok_r(text, "=", &text), *point = strtok_r(text, "=", &text);

    if (!kind || !point || *point != '/' || !*text)
        return EINVAL;
    if (strcmp(kind, "logical") == 0)
        return take_logical();
    if (mounts.count == MOUNTS_MAX)
        return E2BIG;
    m->kind = strcmp(kind, "particles") == 0 ? MOUNT_PARTICLES
              : strcmp(kind, "pool") == 0    ? MOUNT_POOL
                                             : MOUNT_NAMESPACE;
    m->point = point;
    m->point_size = strlen(point);
    m->target = text;
    int error = m->kind == MOUNT_PARTICLES ? particles_create(m->target, &m->particles)
                : m->kind == MOUNT_POOL    ? pooled_create(&m->pooled)
                                           : tree_create(m->target, &m->tree);
    mounts.count += error == 0;
    return error;
}

static void mounts_begin(void)
{
    const char *given = getenv("DELTAFS_POSIX");
    char *text = given && *given ? strdup(given) : NULL, *rest = text;
    int error = given && *given && !text ? ENOMEM : 0;

    for (char *one; error == 0 && rest && (one = strtok_r(NULL, "|", &rest));)
        error = take_mount(one);
    mounts.is_used = mounts.count > 0 || mounts.has_logical;
    if (error != 0) {
        posix_say("DELTAFS_POSIX=%s: %s; start the program with 'deltafs run'", given, strerror(error));
        next._exit(127);
    }
}

static void begin(void)
{
    next_begin();
    mounts_begin();
    working_folder_set(NULL, NULL);
    if (mounts.is_used)
        handover_take();
}

void posix_begin_now(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, begin);
    atomic_store_explicit(&mounts.has_begun, 1, memory_order_release);
}
