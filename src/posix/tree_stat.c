#include "posix/posix_tree.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/sysmacros.h>
#include "posix/next.h"
#include "posix/pooled.h"
#include "posix/tree_parts.h"

#define DEVICE 0xdf /* of all that is in mounts, with the number of the mount */

static struct timespec time_of(int64_t ns)
{
    int64_t seconds = ns / 1000000000 - (ns % 1000000000 < 0);

    return (struct timespec){.tv_sec = seconds, .tv_nsec = (long)(ns - seconds * 1000000000)};
}

void tree_fill_stat(const struct mount *m, const struct deltafs_namespace_stat *s, struct stat *out)
{
    *out = (struct stat){.st_dev = makedev(DEVICE, (unsigned)(m - mounts.mount) + 1),
                         .st_ino = s->inode,
                         .st_mode = s->mode,
                         .st_nlink = 1, /* of a folder: the number of its folders is not known */
                         .st_uid = s->uid,
                         .st_gid = s->gid,
                         .st_size = (off_t)s->size,
                         .st_blksize = COPY_SIZE,
                         .st_blocks = (blkcnt_t)((s->size + 511) / 512),
                         .st_mtim = time_of(s->mtime),
                         .st_atim = time_of(s->atime),
                         .st_ctim = time_of(s->ctime)};
}

/* The attributes of an open file. */
int file_stat(struct file *f, int fd, struct stat *out)
{
    struct stat now;

    if (f->mount->kind == MOUNT_POOL && !f->is_removed)
        return pooled_stat_open(f, out);
    *out = f->st;
    out->st_nlink = f->is_removed ? 0 : out->st_nlink;
    if (f->kind != FILE_TREE || (f->flags & O_PATH))
        return 0;
    if (next.fstat(fd, &now) != 0)
        return errno;
    out->st_size = now.st_size;
    out->st_blocks = (out->st_size + 511) / 512;
    if (f->dirty.count > 0 || f->cut != UINT64_MAX)
        out->st_mtim = out->st_ctim = now.st_mtim;
    return 0;
}

/* What was written to an open file counts for its size, too. */
int file_note_size(struct file *f, int fd, void *stat)
{
    struct stat *out = stat, now;
    int is_same = f->kind == FILE_TREE && f->st.st_ino == out->st_ino && f->st.st_dev == out->st_dev;

    if (!is_same || (f->dirty.count == 0 && f->cut == UINT64_MAX))
        return 0;
    int error = file_stat(f, fd, &now);
    if (!file_is_at(f, fd)) /* another thread has closed it, and published its bytes */
        return 0;
    *out = error == 0 ? now : *out;
    return error;
}

int tree_stat(struct mount *m, const char *path, int flags, struct stat *out)
{
    struct deltafs_namespace_stat s = {.struct_size = sizeof s};
    deltafs_namespace *ns;
    int error = tree_begin(m->tree, 0, &ns);

    if (error == 0)
        error = tree_end(m->tree, deltafs_namespace_stat(ns, path, flags & AT_SYMLINK_NOFOLLOW, &s));
    if (error != 0)
        return error;
    tree_fill_stat(m, &s, out);
    return S_ISREG(s.mode) ? file_each(file_note_size, out) : 0;
}
