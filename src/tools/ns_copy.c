/* deltafs ns cp: copy files and folders into namespaces, out of them, and between them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd.h"
#include "tools/place.h"
#include "tools/progress.h"

struct ns_cp {
    int is_recursive, is_preserving, is_quiet; /* options */
    struct place_set set;
    struct place to;
    mode_t mask;     /* of the process; namespaces do not apply it */
    struct stat top; /* the first folder that was created: it is not copied into itself */
    struct progress bar;
    uint64_t total;
    char bytes[1 << 18];
};

/* ---- Files ---- */

/* An open file of either kind. */
struct end {
    deltafs_namespace_file *file; /* NULL: `fd` */
    int fd;
    uint64_t at;
};

static int end_open(const struct place *p, int flags, mode_t mode, struct end *out)
{
    *out = (struct end){.fd = -1};
    if (p->ns)
        return text_of_call(deltafs_namespace_file_open(p->ns, p->path, flags, mode, &out->file));
    out->fd = open(p->path, flags | O_CLOEXEC, mode);
    return out->fd >= 0 ? EXIT_OK : place_fail(p, -1);
}

static int end_read(const struct place *p, struct end *f, void *bytes, size_t room, size_t *got)
{
    ssize_t n = 0;
    int status = f->file ? deltafs_namespace_file_read(f->file, f->at, bytes, room, got) : DELTAFS_OK;

    if (!f->file) {
        n = read(f->fd, bytes, room);
        status = n < 0 ? -1 : 0;
        *got = n < 0 ? 0 : (size_t)n;
    }
    f->at += *got;
    return status == 0 ? EXIT_OK : place_fail(p, status);
}

static int end_write(const struct place *p, struct end *f, const char *bytes, size_t size)
{
    if (f->file) {
        int status = deltafs_namespace_file_write(f->file, f->at, bytes, size);
        f->at += size;
        return text_of_call(status);
    }
    for (ssize_t n; size > 0; bytes += n, size -= (size_t)n) {
        n = write(f->fd, bytes, size);
        if (n < 0)
            return place_fail(p, -1);
    }
    return EXIT_OK;
}

static int end_close(const struct place *p, struct end *f)
{
    int status = f->file ? deltafs_namespace_file_close(f->file) : f->fd >= 0 ? close(f->fd) : 0;

    return status == 0 ? EXIT_OK : place_fail(p, status);
}

/* Remove the part of a file that was copied before something failed. */
static void remove_part(const struct place *p)
{
    struct stat st;

    if (place_stat(p, 1, 1, &st) != EXIT_OK || !S_ISREG(st.st_mode))
        return;
    int status = p->ns ? deltafs_namespace_unlink(p->ns, p->path) : unlink(p->path);
    if (status != 0)
        place_fail(p, status);
}

static int copy_file(struct ns_cp *c, const struct place *from, const struct stat *st)
{
    struct end in, out = {.fd = -1};
    size_t got = 0;
    int code = end_open(from, O_RDONLY, 0, &in);

    if (code == EXIT_OK)
        code = end_open(&c->to, O_WRONLY | O_CREAT | O_TRUNC, st->st_mode & 0777 & ~c->mask, &out);
    while (code == EXIT_OK) {
        code = end_read(from, &in, c->bytes, sizeof c->bytes, &got);
        if (code != EXIT_OK || got == 0)
            break;
        code = end_write(&c->to, &out, c->bytes, got);
        progress_add(&c->bar, got);
    }
    int is_open = out.file || out.fd >= 0, closed = end_close(&c->to, &out);
    code = code == EXIT_OK ? closed : code;
    if (code != EXIT_OK && is_open)
        remove_part(&c->to);
    end_close(from, &in);
    return code;
}

/* ---- What else there is ---- */

static int copy_link(struct ns_cp *c, const struct place *from)
{
    char target[PATH_MAX];
    int code = place_readlink(from, target);

    if (code != EXIT_OK)
        return code;
    int status = c->to.ns ? deltafs_namespace_symlink(c->to.ns, target, c->to.path) : symlink(target, c->to.path);
    return status == 0 ? EXIT_OK : place_fail(&c->to, status);
}

/* Give the copy the mode and the times of what it was made of. */
static int preserve(const struct place *to, const struct stat *st)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    struct deltafs_namespace_attributes a = {.struct_size = sizeof a,
                                             .set = DELTAFS_NAMESPACE_MODE | DELTAFS_NAMESPACE_MTIME |
                                                    DELTAFS_NAMESPACE_ATIME,
                                             .mode = st->st_mode & 07777,
                                             .mtime = st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec,
                                             .atime = st->st_atim.tv_sec * INT64_C(1000000000) + st->st_atim.tv_nsec};

    if (to->ns)
        return text_of_call(deltafs_namespace_set_attributes(to->ns, to->path, 0, &a));
    int status = chmod(to->path, st->st_mode & 07777);
    if (status == 0)
        status = utimensat(AT_FDCWD, to->path, times, 0);
    return status == 0 ? EXIT_OK : place_fail(to, status);
}

static int copy_any(struct ns_cp *c, struct place *from, const struct stat *st);

static int copy_entry(struct place *from, const struct stat *st, void *arg)
{
    struct ns_cp *c = arg;
    char base[NAME_MAX + 1];
    size_t before;

    place_base(from->path, base);
    int code = place_enter(&c->to, base, &before);
    if (code != EXIT_OK)
        return code;
    code = copy_any(c, from, st);
    place_leave(&c->to, before);
    return code;
}

/* `there` is what the target has already. */
static int copy_folder(struct ns_cp *c, struct place *from, const struct stat *st, const struct stat *there)
{
    mode_t mode = st->st_mode & 0777 & ~c->mask;
    int status = 0;

    if (from->ns == c->to.ns && c->top.st_mode != 0 && st->st_ino == c->top.st_ino)
        return text_fail(EXIT_TROUBLE, "%s:%s: cannot be copied into itself", from->name, from->path);
    if (there->st_mode == 0)
        status = c->to.ns ? deltafs_namespace_mkdir(c->to.ns, c->to.path, mode) : mkdir(c->to.path, mode | S_IRWXU);
    if (status != 0)
        return place_fail(&c->to, status);
    int code = c->top.st_mode == 0 ? place_stat(&c->to, 0, 0, &c->top) : EXIT_OK;
    if (code == EXIT_OK)
        code = place_each(from, copy_entry, c);
    if (there->st_mode == 0 && !c->to.ns && (mode & S_IRWXU) != S_IRWXU && chmod(c->to.path, mode) != 0)
        code = place_fail(&c->to, -1);
    return code;
}

/* Copy what is at `from` to where c->to is. */
static int copy_any(struct ns_cp *c, struct place *from, const struct stat *st)
{
    const char *shown = c->to.path;
    struct stat there;
    int code = place_stat(&c->to, S_ISREG(st->st_mode), 1, &there); /* a file is written through a link */

    if (code != EXIT_OK)
        return code;
    if (there.st_mode != 0 && S_ISDIR(st->st_mode) != S_ISDIR(there.st_mode))
        return text_fail(EXIT_TROUBLE, "%s: %s", shown,
                         S_ISDIR(there.st_mode) ? "is a folder; no file takes its place"
                                                : "is no folder; no folder takes its place");
    if (there.st_mode != 0 && from->ns == c->to.ns && there.st_ino == st->st_ino &&
        (from->ns || there.st_dev == st->st_dev))
        return text_fail(EXIT_TROUBLE, "%s: is the same file", shown);
    if (S_ISDIR(st->st_mode))
        code = copy_folder(c, from, st, &there);
    else if (S_ISLNK(st->st_mode))
        code = there.st_mode == 0 ? copy_link(c, from) : text_fail(EXIT_TROUBLE, "%s: exists already", shown);
    else if (S_ISREG(st->st_mode))
        code = copy_file(c, from, st);
    else
        return text_fail(EXIT_TROUBLE, "%s: neither a file, a folder nor a symbolic link; it is left out", from->path);
    return code == EXIT_OK && c->is_preserving && !S_ISLNK(st->st_mode) ? preserve(&c->to, st) : code;
}

/* ---- The command ---- */

static int add_bytes(struct place *p, const struct stat *st, void *arg)
{
    uint64_t *total = arg;

    *total += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    return S_ISDIR(st->st_mode) ? place_each(p, add_bytes, arg) : EXIT_OK;
}

/* Copy one operand; `is_into`: into the folder at c->to. */
static int copy_operand(struct ns_cp *c, const char *name, int is_into)
{
    char base[NAME_MAX + 1];
    struct place from;
    struct stat st;
    size_t before = strlen(c->to.path);
    int code = place_find(&c->set, name, &from);

    if (code == EXIT_OK)
        code = place_stat(&from, !c->is_recursive, 0, &st);
    if (code != EXIT_OK)
        return code;
    if (!from.ns && !c->to.ns)
        return text_fail(EXIT_USAGE, "cp: neither '%s' nor the target is in a namespace; give NS:/PATH", name);
    if (S_ISDIR(st.st_mode) && !c->is_recursive)
        return text_fail(EXIT_TROUBLE, "%s: is a folder; -r copies it", name);
    place_base(from.path, base);
    if (is_into && base[0] != '\0' && strcmp(base, ".") != 0 && strcmp(base, "..") != 0)
        code = place_enter(&c->to, base, &before);
    c->top.st_mode = 0;
    if (code == EXIT_OK)
        code = copy_any(c, &from, &st);
    place_leave(&c->to, before);
    return code;
}

/* The size of all, for the bar; what is wrong with a source is said when it is copied. */
static void measure(struct ns_cp *c, char **operand, int count)
{
    struct place from;
    struct stat st;

    for (int i = 0; i < count; i++)
        if (place_find(&c->set, operand[i], &from) == EXIT_OK && place_stat(&from, !c->is_recursive, 1, &st) == EXIT_OK)
            add_bytes(&from, &st, &c->total);
}

static int ns_cp_run(const struct command_call *call)
{
    struct ns_cp *c = call->values;
    const char *to = call->operand[call->count - 1];
    int sources = call->count - 1, is_seen = !c->is_quiet && progress_is_seen();
    struct stat st = {.st_mode = 0};

    c->mask = umask(0);
    umask(c->mask);
    c->set.flags = text_is_in_namespace(to) ? O_RDWR : O_RDONLY;
    int code = place_find(&c->set, to, &c->to);
    c->set.flags = O_RDONLY; /* of other namespaces */
    if (code == EXIT_OK)
        code = place_stat(&c->to, 1, 1, &st);
    if (code == EXIT_OK && sources > 1 && !S_ISDIR(st.st_mode))
        code = text_fail(EXIT_TROUBLE, "%s: no folder; several sources need one", to);
    if (code == EXIT_OK && is_seen)
        measure(c, call->operand, sources);
    progress_begin(&c->bar, c->total, is_seen && c->total > 0);
    for (int i = 0; i < sources && (code == EXIT_OK || S_ISDIR(st.st_mode)); i++) {
        int one = copy_operand(c, call->operand[i], S_ISDIR(st.st_mode));
        code = one != EXIT_OK ? one : code;
    }
    progress_end(&c->bar);
    return place_close(&c->set, code);
}

static const struct command_option options[] = {
    {"recursive", 'r', NULL, "also folders, with what is in them; symbolic links are copied as such", NULL,
     offsetof(struct ns_cp, is_recursive)},
    {"preserve", 'p', NULL, "the copies get the modes and times of the originals", NULL,
     offsetof(struct ns_cp, is_preserving)},
    {"quiet", 'q', NULL, "no progress bar", NULL, offsetof(struct ns_cp, is_quiet)},
    {0}};

const struct command cmd_ns_cp = {.name = "cp",
                                  .usage = "FROM... TO [OPTION...]",
                                  .text = "Copy files to, from or within namespaces: FROM or TO is NS:/PATH.",
                                  .missing = "FROM and TO must be given",
                                  .least = 2,
                                  .size = sizeof(struct ns_cp),
                                  .option = options,
                                  .run = ns_cp_run};
