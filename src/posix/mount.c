#include "posix/mount.h"
#include <string.h>

struct mounts mounts;

struct mount *mount_of(const char *path)
{
    for (struct mount *m = mounts.mount; m < mounts.mount + mounts.count; m++)
        if (strncmp(path, m->point, m->point_size) == 0 && (path[m->point_size] == '/' || !path[m->point_size]))
            return m;
    return NULL;
}
