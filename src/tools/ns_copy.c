/* ns cp: copy files and folders into namespaces, out of them, and between them.
 *
 * Several ranks share the work in three steps. Rank 0 creates all folders, and commits them. Then each rank goes
 * through the sources, and copies the files and links whose target has a hash that is the rank's: so two sources of one
 * target are copied by the same rank, in their order. At last rank 0 gives the folders their modes and times. What is
 * wrong with a folder says rank 0, what is wrong with a file the rank that copies it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/aside.h"
#include "tools/cmd.h"
#include "tools/ns_copy.h"
#include "tools/place.h"
#include "tools/progress.h"

enum copy_part { COPY_ALL, COPY_FOLDERS, COPY_FILES };

/* A folder that gets its mode, or mode and times, when all files are in it. */
struct late_folder {
    char *path;
    struct stat st;
};

struct ns_cp {
    int is_recursive, is_preserving, is_quiet; /* options */
    int rank, ranks;
    enum copy_part part;
    int has_target;  /* it can be copied to, */
    int is_into;     /* and is a folder that was there */
    char *is_copied; /* of each source: whether it is there, and may be copied */
    struct late_folder *late;
    size_t lates, late_room;
    struct place_set set;
    struct place to;
    size_t to_length; /* of its path, as it was given */
    mode_t mask;      /* of the process; namespaces do not apply it */
    struct stat top;  /* the first folder that was created: it is not copied into itself */
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

/* Remove the part of a file that was copied before something failed. A link to the file stays, and so does the part. */
static void remove_part(const struct place *p)
{
    struct stat st;

    if (place_stat(p, 0, 1, &st) != EXIT_OK || !S_ISREG(st.st_mode))
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
        progress_add(&c->bar, got * (uint64_t)c->ranks); /* the others have copied as much */
    }
    int is_open = out.file || out.fd >= 0, closed = end_close(&c->to, &out);
    code = code == EXIT_OK ? closed : code;
    if (code != EXIT_OK && is_open)
        remove_part(&c->to);
    end_close(from, &in);
    return code;
}

/* ---- What else there is ---- */

static int make_link(const struct place *p, const char *target, const char *path)
{
    return p->ns ? deltafs_namespace_symlink(p->ns, target, path) : symlink(target, path);
}

/* The path of what is replaced may lead through it. So the link is made beside it. */
static int replace_by_link(const struct place *p, const char *target)
{
    char folder[PATH_MAX], aside[ASIDE_ROOM];

    aside_name("cp", p->path, folder, aside);
    int status = make_link(p, target, aside);
    if (status != 0)
        return place_fail(p, status);
    status = p->ns ? deltafs_namespace_rename(p->ns, aside, p->path) : rename(aside, p->path);
    if (status == 0)
        return EXIT_OK;
    int code = place_fail(p, status);
    if (p->ns)
        deltafs_namespace_unlink(p->ns, aside);
    else
        unlink(aside);
    return code;
}

/* `there` is what the target has already. */
static int copy_link(struct ns_cp *c, const struct place *from, const struct stat *there)
{
    char target[PATH_MAX];
    int code = place_readlink(from, target);

    if (code != EXIT_OK)
        return code;
    if (there->st_mode != 0)
        return replace_by_link(&c->to, target);
    int status = make_link(&c->to, target, c->to.path);
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

static uint64_t hash_text(uint64_t hash, const char *text) /* FNV-1a */
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* Whether this rank copies what goes to c->to, or if `name` is not "", to that name there. */
static int is_mine(const struct ns_cp *c, const char *name)
{
    size_t n = strlen(c->to.path);
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), c->to.path);

    if (name[0] != '\0' && n > 0 && c->to.path[n - 1] != '/')
        hash = hash_text(hash, "/");
    hash = hash_text(hash, name);
    return c->part != COPY_FOLDERS && (hash >> 32) % (uint64_t)c->ranks == (uint64_t)c->rank;
}

static int wants_entry(const char *name, void *arg)
{
    return is_mine(arg, name);
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

static int keep_late(struct ns_cp *c, const struct stat *st)
{
    size_t room = c->late_room > 0 ? 2 * c->late_room : 64;
    struct late_folder *more = c->late;

    if (c->lates == c->late_room) {
        more = realloc(c->late, room * sizeof *more);
        c->late_room = more ? room : c->late_room;
    }
    char *path = more ? strdup(c->to.path) : NULL;
    c->late = more ? more : c->late;
    if (!path)
        return text_fail(EXIT_TROUBLE, "no memory");
    c->late[c->lates++] = (struct late_folder){path, *st};
    return EXIT_OK;
}

/* The mode of a folder in the system that is created: its owner must be able to put something into it. */
static int has_late_mode(const struct ns_cp *c, const struct stat *st, const struct stat *there)
{
    return there->st_mode == 0 && !c->to.ns && (st->st_mode & S_IRWXU & ~c->mask) != S_IRWXU;
}

static int finish_folder(struct ns_cp *c, const struct place *to, const struct stat *st)
{
    if (c->is_preserving)
        return preserve(to, st);
    return chmod(to->path, st->st_mode & 0777 & ~c->mask) == 0 ? EXIT_OK : place_fail(to, -1);
}

/* `there` is what the target has already. */
static int copy_folder(struct ns_cp *c, struct place *from, const struct stat *st, const struct stat *there)
{
    mode_t mode = st->st_mode & 0777 & ~c->mask;
    int status = 0, is_late = c->is_preserving || has_late_mode(c, st, there);

    if (from->ns == c->to.ns && c->top.st_mode != 0 && st->st_ino == c->top.st_ino)
        return c->part == COPY_FILES ? EXIT_OK : place_refuse(from, "cannot be copied into itself");
    if (there->st_mode == 0)
        status = c->to.ns ? deltafs_namespace_mkdir(c->to.ns, c->to.path, mode) : mkdir(c->to.path, mode | S_IRWXU);
    if (status != 0)
        return place_fail(&c->to, status);
    int code = EXIT_OK;
    if (c->top.st_mode == 0 && there->st_mode != 0)
        c->top = *there;
    else if (c->top.st_mode == 0)
        code = place_stat(&c->to, 0, 0, &c->top);
    if (code == EXIT_OK && is_late && c->part == COPY_FOLDERS)
        code = keep_late(c, st);
    if (code == EXIT_OK)
        code = place_each_wanted(from, c->ranks > 1 ? wants_entry : NULL, copy_entry, c);
    if (is_late && c->part == COPY_ALL) {
        int one = finish_folder(c, &c->to, st);
        code = code == EXIT_OK ? one : code;
    }
    return code;
}

/* Whether a link of a namespace leads to the file that it would replace. */
static int leads_to(const struct place *p, const struct stat *st, const struct stat *there)
{
    struct deltafs_namespace_stat end = {.struct_size = sizeof end};

    return S_ISLNK(st->st_mode) && S_ISREG(there->st_mode) &&
           deltafs_namespace_stat(p->ns, p->path, 0, &end) == DELTAFS_OK && end.inode == there->st_ino;
}

/* What prevents a copy to what is there, or NULL. */
static const char *what_prevents(const struct ns_cp *c, const struct place *from, const struct stat *st,
                                 const struct stat *there)
{
    if (there->st_mode == 0)
        return S_ISDIR(st->st_mode) && c->part == COPY_FILES ? "was removed" : NULL;
    if (S_ISDIR(st->st_mode) != S_ISDIR(there->st_mode))
        return S_ISDIR(there->st_mode) ? "is a folder; no file takes its place"
                                       : "is no folder; no folder takes its place";
    if (from->ns == c->to.ns && (there->st_ino == st->st_ino || leads_to(from, st, there)))
        return "is the same file";
    return NULL;
}

/* Copy what is at `from` to where c->to is. */
static int copy_any(struct ns_cp *c, struct place *from, const struct stat *st)
{
    const char *wrong;
    struct stat there;

    if (!S_ISDIR(st->st_mode) && !is_mine(c, ""))
        return EXIT_OK;
    /* A file is written through a link. The target itself may be a link to a folder. */
    int follows = S_ISREG(st->st_mode) || (c->is_into && strlen(c->to.path) == c->to_length);
    int code = place_stat(&c->to, follows, 1, &there);
    if (code != EXIT_OK)
        return code;
    wrong = what_prevents(c, from, st, &there);
    if (wrong) /* of a folder it was said when it was to be created */
        return S_ISDIR(st->st_mode) && c->part == COPY_FILES ? EXIT_OK : place_refuse(&c->to, wrong);
    if (S_ISDIR(st->st_mode))
        return copy_folder(c, from, st, &there);
    if (S_ISLNK(st->st_mode))
        return copy_link(c, from, &there);
    if (!S_ISREG(st->st_mode))
        return place_refuse(from, "neither a file, a folder nor a symbolic link; it is left out");
    code = copy_file(c, from, st);
    return code == EXIT_OK && c->is_preserving ? preserve(&c->to, st) : code;
}

/* ---- The command ---- */

static int add_bytes(struct place *p, const struct stat *st, void *arg)
{
    uint64_t *total = arg;

    *total += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    return S_ISDIR(st->st_mode) ? place_each(p, add_bytes, arg) : EXIT_OK;
}

/* Copy one source; *is_copied says that it is there, and may be copied. */
static int copy_operand(struct ns_cp *c, const char *name, char *is_copied)
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
    *is_copied = 1;
    place_base(from.path, base);
    if (c->is_into && base[0] != '\0' && strcmp(base, ".") != 0 && strcmp(base, "..") != 0)
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

static int open_target(struct ns_cp *c, const char *to)
{
    c->set.flags = text_is_in_namespace(to) ? O_RDWR : O_RDONLY;
    int code = place_find(&c->set, to, &c->to);
    c->set.flags = O_RDONLY; /* of other namespaces */
    c->to_length = strlen(c->to.path);
    return code;
}

/* Rank 0: copy all, or create the folders. */
static int copy_first(struct ns_cp *c, char **operand, int sources)
{
    int is_seen = !c->is_quiet && progress_is_seen();
    struct stat st = {.st_mode = 0};
    int code = open_target(c, operand[sources]);

    if (code == EXIT_OK)
        code = place_stat(&c->to, 1, 1, &st);
    c->is_into = S_ISDIR(st.st_mode);
    if (code == EXIT_OK && sources > 1 && !c->is_into)
        code = text_fail(EXIT_TROUBLE, "%s: no folder; several sources need one", operand[sources]);
    c->has_target = code == EXIT_OK;
    if (c->has_target && is_seen)
        measure(c, operand, sources);
    progress_begin(&c->bar, c->total, is_seen && c->total > 0);
    for (int i = 0; i < sources && c->has_target; i++) {
        int one = copy_operand(c, operand[i], &c->is_copied[i]);
        code = one != EXIT_OK ? one : code;
    }
    return place_close(&c->set, code);
}

/* Each rank: copy its part of the files. */
static int copy_files(struct ns_cp *c, char **operand, int sources)
{
    int code = open_target(c, operand[sources]), is_open = code == EXIT_OK;

    for (int i = 0; i < sources && is_open; i++) {
        int one = c->is_copied[i] ? copy_operand(c, operand[i], &c->is_copied[i]) : EXIT_OK;
        code = one != EXIT_OK ? one : code;
    }
    return place_close(&c->set, code);
}

/* Rank 0: the modes and times of folders, those below before those above, which may not let us in then. */
static int finish_folders(struct ns_cp *c, const char *to)
{
    int code = c->lates > 0 ? open_target(c, to) : EXIT_OK, is_open = code == EXIT_OK;

    for (size_t i = c->lates; i > 0 && is_open; i--) {
        snprintf(c->to.path, sizeof c->to.path, "%s", c->late[i - 1].path);
        int one = finish_folder(c, &c->to, &c->late[i - 1].st);
        code = one != EXIT_OK ? one : code;
    }
    return place_close(&c->set, code);
}

/* Collective: after rank 0 has created the folders, with this exit code. */
static int copy_together(struct ns_cp *c, char **operand, int sources, int code)
{
    int is_silent = text_is_silent;

    ns_copy_broadcast(&c->has_target, sizeof c->has_target);
    ns_copy_broadcast(&c->is_into, sizeof c->is_into);
    ns_copy_broadcast(c->is_copied, (size_t)sources);
    if (!c->has_target)
        return ns_copy_agree(code);
    c->part = COPY_FILES;
    text_is_silent = 0;
    int one = copy_files(c, operand, sources);
    text_is_silent = is_silent;
    code = ns_copy_agree(code == EXIT_OK ? one : code);
    one = c->rank == 0 ? finish_folders(c, operand[sources]) : EXIT_OK;
    return ns_copy_agree(code == EXIT_OK ? one : code);
}

static int ns_cp_run(const struct command_call *call)
{
    struct ns_cp *c = call->values;
    int sources = call->count - 1;

    c->mask = umask(0);
    umask(c->mask);
    ns_copy_ranks(&c->rank, &c->ranks);
    c->is_copied = calloc((size_t)sources, 1);
    int code = ns_copy_agree(c->is_copied ? EXIT_OK : text_fail(EXIT_TROUBLE, "no memory"));
    if (code != EXIT_OK)
        return code;
    c->part = c->ranks > 1 ? COPY_FOLDERS : COPY_ALL;
    if (c->rank == 0)
        code = copy_first(c, call->operand, sources);
    if (c->ranks > 1)
        code = copy_together(c, call->operand, sources, code);
    progress_end(&c->bar);
    for (size_t i = 0; i < c->lates; i++)
        free(c->late[i].path);
    free(c->late);
    free(c->is_copied);
    return code;
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
