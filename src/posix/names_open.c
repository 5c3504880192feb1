#include "posix/names_open.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/file.h"
#include "posix/follow.h"
#include "posix/mark.h"
#include "posix/locks.h"
#include "posix/posix_tree.h"
#include "posix/tree_parts.h"

static int is_file(const struct file *f, const struct stat *st)
{
    return f->kind == FILE_TREE && st->st_ino != 0 && f->st.st_ino == st->st_ino && f->st.st_dev == st->st_dev;
}

/* ---- Before ---- */

static int count_open(struct file *f, int fd, void *count)
{
    (void)fd;
    *(int *)count += f->kind != FILE_PARTICLE;
    return 0;
}

/* A path within a mount whose folders are no links, in `room`. If that cannot be known, it is the path as it is. */
static const char *resolve_folders(const struct mount *m, const char *path, char room[static PATH_MAX])
{
    char whole[2 * PATH_MAX];

    snprintf(whole, sizeof whole, "%s%s", m->point, path);
    if (follow_name(AT_FDCWD, whole, room) != 0 || mount_of(room) != m)
        return path;
    return room[m->point_size] ? room + m->point_size : "/";
}

/* The path without links; if nothing is there any more, it stays as it is. With the lock of the file. */
static void resolve(struct file *f)
{
    char path[2 * PATH_MAX], out[PATH_MAX];

    snprintf(path, sizeof path, "%s%s", f->mount->point, f->path);
    if (follow_path(AT_FDCWD, path, out) != 0 || mount_of(out) != f->mount)
        return;
    char *within = strdup(out[f->mount->point_size] ? out + f->mount->point_size : "/");
    if (!within)
        return;
    free(f->path);
    f->path = within;
    f->is_resolved = 1;
}

/* A file that was opened by a link is found by its own path if what the link leads to, or the link, changes its name.
 */
static int resolve_path(struct file *f, int fd, void *mount)
{
    (void)fd;
    if (f->mount != mount || f->is_resolved || f->is_removed || (f->flags & O_PATH && f->flags & O_NOFOLLOW))
        return 0;
    lock_take(&f->lock);
    resolve(f);
    lock_give(&f->lock);
    return 0;
}

/* A file that is open, and not all in its memfd, is read from the namespace later, so its handle there stays open. */
static int keep_bytes(struct file *f, int fd, void *stat)
{
    char byte;

    if (!is_file(f, stat) || f->has_all || !file_take(f, fd))
        return 0;
    file_read_at(f, fd, &byte, 1, 0);
    lock_give(&f->lock);
    return 0;
}

/* Before a file gets another name: a child of a fork does not get to know that, and could not publish this. */
static int publish_shared(struct file *f, int fd, void *stat)
{
    return is_file(f, stat) && f->is_shared ? file_publish_locked(f, fd, NULL) : 0;
}

void names_hold(struct renaming *n)
{
    struct stat *lost = n->new ? &n->to : &n->from;
    int count = 0;

    if (n->mount->kind != MOUNT_LOGICAL) /* paths of logical files have no links */
        file_each(count_open, &count);
    if (count > 0 && (n->new || S_ISLNK(n->from.st_mode)))
        file_each(resolve_path, n->mount);
    if (count > 0 && n->new) {
        n->old = resolve_folders(n->mount, n->old, n->room[0]);
        n->new = resolve_folders(n->mount, n->new, n->room[1]);
    }
    if (count > 0 && n->new)
        file_each(publish_shared, &n->from);
    file_each(keep_bytes, lost);
    files_hold(n->mount);
}

/* ---- Afterwards ---- */

/* A child of a fork has nothing to publish, either: what is behind the mark stays in the memfd only. */
static int note_removed(struct file *f, int fd, void *stat)
{
    if (!is_file(f, stat))
        return 0;
    f->is_removed = 1;
    if (f->is_held && file_is_at(f, fd) && mark_before_seek(f, fd) == 0)
        mark_set_at_end(f, fd);
    return 0;
}

/* A file that has been opened since is not held. */
static int note_renamed(struct file *f, int fd, void *renaming)
{
    const struct renaming *n = renaming;
    size_t old = strlen(n->old);
    char *path = NULL;

    (void)fd;
    if (f->mount != n->mount || strncmp(f->path, n->old, old) != 0 || (f->path[old] != '/' && f->path[old] != '\0'))
        return 0;
    if (asprintf(&path, "%s%s", n->new, f->path + old) < 0)
        return ENOMEM;
    if (!f->is_held)
        lock_take(&f->lock);
    free(f->path);
    f->path = path;
    if (!f->is_held)
        lock_give(&f->lock);
    return 0;
}

int names_end(struct renaming *n, int is_done)
{
    int error = 0;

    if (is_done)
        file_each(note_removed, n->new ? &n->to : &n->from);
    if (is_done && n->new)
        error = file_each(note_renamed, n);
    files_let_go();
    return error;
}
