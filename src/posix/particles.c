#include "posix/particles.h"
#include <errno.h>
#include <sys/stat.h>

int particles_create(const char *target, struct particles **out)
{
    (void)target;
    *out = NULL;
    return ENOTSUP;
}

int particles_open(struct mount *m, const char *path, int flags, int *fd)
{
    (void)m;
    (void)path;
    (void)flags;
    *fd = -1;
    return ENOTSUP;
}

ssize_t particles_write(struct file *f, const void *bytes, size_t size)
{
    (void)f;
    (void)bytes;
    (void)size;
    return posix_result(ENOTSUP);
}

int particles_stat(struct mount *m, const char *path, struct stat *out)
{
    (void)m;
    (void)path;
    *out = (struct stat){.st_size = 0};
    return ENOTSUP;
}

int particles_sync(struct file *f)
{
    (void)f;
    return ENOTSUP;
}
