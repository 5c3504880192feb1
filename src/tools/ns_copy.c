/* Copy files and folders into namespaces and pools, out of them, and between them: ns cp, pool load, pool drain.
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
#include "tools/ns_copy.h"
#include "tools/place_file.h"
#include "tools/progress.h"
#include "tools/text.h"

#define BLOCK (1u << 20) /* bytes that are copied at once: several chunks of a pool */

enum copy_part { COPY_ALL, COPY_FOLDERS, COPY_FILES };

/* A folder that gets its mode, or mode and times, when all files are in it. */
struct late_folder {
    char *path;
    struct stat st;
};

struct ns_copy {
    struct ns_copy_options o;
    int rank, ranks;
    enum copy_part part;
    int has_target; /* it can be copied to, */
    int is_into;    /* and is a folder that was there */
    char *can_copy; /* of each source: whether it is there, and may be copied */
    struct late_folder *late;
    size_t lates, late_room;
    struct place_set set;
    struct place to;
    size_t to_length; /* of its path, as it was given */
    mode_t mask;      /* of the process; namespaces do not apply it */
    struct stat top;  /* the first folder that was created: it is not copied into itself */
    struct progress bar;
    uint64_t total;
    char bytes[BLOCK], again[BLOCK]; /* that are copied; that are read after they were written */
};

/* ---- Files ---- */

/* Copy the bytes of open files. A namespace has checksums of its own. */
static int copy_bytes(struct ns_copy *c, const struct place *from, struct place_file *in, struct place_file *out)
{
    size_t got = 1;
    int code = EXIT_OK;

    while (code == EXIT_OK && got > 0) {
        code = place_file_read(from, in, c->bytes, sizeof c->bytes, &got);
        if (code != EXIT_OK || got == 0)
            break;
        code = place_file_write(&c->to, out, c->bytes, got);
        if (code == EXIT_OK && c->o.stage != NS_COPY_UNSTAGED && !c->to.ns)
            code = place_file_check(&c->to, out, c->bytes, got, c->again);
        progress_add(&c->bar, got * (uint64_t)c->ranks); /* the others have copied as much */
    }
    return code;
}

/* What is staged may have to be copied again, whatever its mode is. */
static int open_copy(struct ns_copy *c, const struct stat *st, struct place_file *out)
{
    mode_t mode = st->st_mode & 0777 & ~c->mask;

    if (c->o.stage == NS_COPY_UNSTAGED)
        return place_file_open(&c->to, O_WRONLY | O_CREAT | O_TRUNC, mode, out);
    return place_file_open(&c->to, O_RDWR | O_CREAT | O_TRUNC, mode | S_IRUSR | S_IWUSR, out);
}

static int copy_file(struct ns_copy *c, const struct place *from, const struct stat *st)
{
    struct place_file in, out = {.fd = -1};
    int code = place_file_open(from, O_RDONLY, 0, &in), is_open = 0;

    if (code == EXIT_OK) {
        code = open_copy(c, st, &out);
        is_open = code == EXIT_OK;
    }
    if (is_open)
        code = copy_bytes(c, from, &in, &out);
    int closed = place_file_close(&c->to, &out);
    code = code == EXIT_OK ? closed : code;
    if (code != EXIT_OK && is_open)
        place_remove_part(&c->to);
    place_file_close(from, &in);
    return code;
}

/* ---- What else there is ---- */

/* `there` is what the target has already. */
static int copy_link(struct ns_copy *c, const struct place *from, const struct stat *there)
{
    char target[PATH_MAX];
    int code = place_readlink(from, target);

    if (code != EXIT_OK)
        return code;
    return place_link(&c->to, target, there->st_mode != 0);
}

static uint64_t hash_text(uint64_t hash, const char *text) /* FNV-1a */
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* Whether this rank copies what goes to c->to, or if `name` is not "", to that name there. */
static int is_mine(const struct ns_copy *c, const char *name)
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

static int copy_any(struct ns_copy *c, struct place *from, const struct stat *st);

static int copy_entry(struct place *from, const struct stat *st, void *arg)
{
    struct ns_copy *c = arg;
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

static int keep_late(struct ns_copy *c, const struct stat *st)
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
static int has_late_mode(const struct ns_copy *c, const struct stat *st, const struct stat *there)
{
    return there->st_mode == 0 && place_is_plain(&c->to) && (st->st_mode & S_IRWXU & ~c->mask) != S_IRWXU;
}

static int finish_folder(struct ns_copy *c, const struct place *to, const struct stat *st)
{
    if (c->o.is_preserving)
        return place_preserve(to, st);
    return chmod(to->path, st->st_mode & 0777 & ~c->mask) == 0 ? EXIT_OK : place_fail(to, -1);
}

/* Whether the folder that is copied gets the mode and the times of the original. One that is staged into a folder that
 * was there, such as a home directory, leaves it as it is. */
static int is_preserved(const struct ns_copy *c, const struct stat *there)
{
    int is_target = strlen(c->to.path) == c->to_length;

    return c->o.is_preserving && !(c->o.stage != NS_COPY_UNSTAGED && is_target && there->st_mode != 0);
}

/* `there` is what the target has already. */
static int copy_folder(struct ns_copy *c, struct place *from, const struct stat *st, const struct stat *there)
{
    mode_t mode = st->st_mode & 0777 & ~c->mask;
    int code = EXIT_OK, is_late = is_preserved(c, there) || has_late_mode(c, st, there);

    if (place_is_beside(from, &c->to) && c->top.st_mode != 0 && st->st_ino == c->top.st_ino)
        return c->part == COPY_FILES ? EXIT_OK : place_refuse(from, "cannot be copied into itself");
    if (there->st_mode == 0)
        code = place_mkdir(&c->to, place_is_plain(&c->to) ? mode | S_IRWXU : mode);
    if (code != EXIT_OK)
        return code;
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

    return p->ns && S_ISLNK(st->st_mode) && S_ISREG(there->st_mode) &&
           deltafs_namespace_stat(p->ns, p->path, 0, &end) == DELTAFS_OK && end.inode == there->st_ino;
}

/* What prevents a copy to what is there, or NULL. */
static const char *what_prevents(const struct ns_copy *c, const struct place *from, const struct stat *st,
                                 const struct stat *there)
{
    if (there->st_mode == 0)
        return S_ISDIR(st->st_mode) && c->part == COPY_FILES ? "was removed" : NULL;
    if (S_ISDIR(st->st_mode) != S_ISDIR(there->st_mode))
        return S_ISDIR(there->st_mode) ? "is a folder; no file takes its place"
                                       : "is no folder; no folder takes its place";
    if (place_is_beside(from, &c->to) && (there->st_ino == st->st_ino || leads_to(from, st, there)))
        return "is the same file";
    if (c->o.stage != NS_COPY_UNSTAGED && !S_ISDIR(there->st_mode) && !S_ISREG(there->st_mode) &&
        !S_ISLNK(there->st_mode))
        return "is neither a file, a folder nor a link";
    return NULL;
}

/* Whether a file that is staged is there already. */
static int is_copied(const struct ns_copy *c, const struct stat *st, const struct stat *there)
{
    return c->o.stage != NS_COPY_UNSTAGED && S_ISREG(there->st_mode) && there->st_size == st->st_size &&
           there->st_mtim.tv_sec == st->st_mtim.tv_sec && there->st_mtim.tv_nsec == st->st_mtim.tv_nsec;
}

/* Copy what is at `from` to where c->to is. */
static int copy_any(struct ns_copy *c, struct place *from, const struct stat *st)
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
    if (is_copied(c, st, &there)) {
        progress_add(&c->bar, (uint64_t)st->st_size * (uint64_t)c->ranks);
        return EXIT_OK;
    }
    code = copy_file(c, from, st);
    return code == EXIT_OK && c->o.is_preserving ? place_preserve(&c->to, st) : code;
}

/* ---- Sources and target ---- */

static int add_bytes(struct place *p, const struct stat *st, void *arg)
{
    uint64_t *total = arg;

    *total += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    return S_ISDIR(st->st_mode) ? place_each(p, add_bytes, arg) : EXIT_OK;
}

/* Find a source, and what it is. */
static int find_source(struct ns_copy *c, const char *name, struct place *from, struct stat *st)
{
    int code =
        c->o.stage == NS_COPY_FROM_POOL ? place_find_in_pool(&c->set, name, from) : place_find(&c->set, name, from);

    return code == EXIT_OK ? place_stat(from, !c->o.is_recursive || c->o.stage != NS_COPY_UNSTAGED, 0, st) : code;
}

/* Copy one source; *can_copy says that it is there, and may be copied. */
static int copy_operand(struct ns_copy *c, const char *name, char *can_copy)
{
    char base[NAME_MAX + 1];
    struct place from;
    struct stat st;
    size_t before = strlen(c->to.path);
    int code = find_source(c, name, &from, &st);

    if (code != EXIT_OK)
        return code;
    if (place_is_plain(&from) && place_is_plain(&c->to))
        return text_fail(EXIT_USAGE, "cp: neither '%s' nor the target is in a namespace; give NS:/PATH", name);
    if (S_ISDIR(st.st_mode) && !c->o.is_recursive)
        return text_fail(EXIT_TROUBLE, "%s: is a folder; -r copies it", name);
    *can_copy = 1;
    place_base(from.path, base);
    int is_into = c->is_into && !(c->o.stage != NS_COPY_UNSTAGED && S_ISDIR(st.st_mode));
    if (is_into && base[0] != '\0' && strcmp(base, ".") != 0 && strcmp(base, "..") != 0)
        code = place_enter(&c->to, base, &before);
    c->top.st_mode = 0;
    if (code == EXIT_OK)
        code = copy_any(c, &from, &st);
    place_leave(&c->to, before);
    return code;
}

/* The size of all, for the bar; what is wrong with a source is said when it is copied. */
static void measure(struct ns_copy *c, char **operand, int count)
{
    struct place from;
    struct stat st;

    for (int i = 0; i < count; i++)
        if (find_source(c, operand[i], &from, &st) == EXIT_OK)
            add_bytes(&from, &st, &c->total);
}

static int open_target(struct ns_copy *c, const char *to)
{
    c->set.flags = text_is_in_namespace(to) ? O_RDWR : O_RDONLY;
    int code =
        c->o.stage == NS_COPY_INTO_POOL ? place_find_in_pool(&c->set, to, &c->to) : place_find(&c->set, to, &c->to);
    c->set.flags = O_RDONLY; /* of other namespaces */
    c->to_length = strlen(c->to.path);
    return code;
}

/* Rank 0: copy all, or create the folders. */
static int copy_first(struct ns_copy *c, char **operand, int sources)
{
    int is_seen = !c->o.is_quiet && progress_is_seen();
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
        int one = copy_operand(c, operand[i], &c->can_copy[i]);
        code = one != EXIT_OK ? one : code;
    }
    return place_close(&c->set, code);
}

/* Each rank: copy its part of the files. */
static int copy_files(struct ns_copy *c, char **operand, int sources)
{
    int code = open_target(c, operand[sources]), is_open = code == EXIT_OK;

    for (int i = 0; i < sources && is_open; i++) {
        int one = c->can_copy[i] ? copy_operand(c, operand[i], &c->can_copy[i]) : EXIT_OK;
        code = one != EXIT_OK ? one : code;
    }
    return place_close(&c->set, code);
}

/* Rank 0: the modes and times of folders, those below before those above, which may not let us in then. */
static int finish_folders(struct ns_copy *c, const char *to)
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
static int copy_together(struct ns_copy *c, char **operand, int sources, int code)
{
    int is_silent = text_is_silent;

    ns_copy_broadcast(&c->has_target, sizeof c->has_target);
    ns_copy_broadcast(&c->is_into, sizeof c->is_into);
    ns_copy_broadcast(c->can_copy, (size_t)sources);
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

static int copy(struct ns_copy *c, char **operand, int sources)
{
    c->mask = umask(0);
    umask(c->mask);
    c->can_copy = calloc((size_t)sources, 1);
    int code = ns_copy_agree(c->can_copy ? EXIT_OK : text_fail(EXIT_TROUBLE, "no memory"));
    if (code != EXIT_OK)
        return code;
    c->part = c->ranks > 1 ? COPY_FOLDERS : COPY_ALL;
    if (c->rank == 0)
        code = copy_first(c, operand, sources);
    if (c->ranks > 1)
        code = copy_together(c, operand, sources, code);
    progress_end(&c->bar);
    for (size_t i = 0; i < c->lates; i++)
        free(c->late[i].path);
    free(c->late);
    free(c->can_copy);
    return code;
}

int ns_copy(const struct ns_copy_options *o, char **operand, int sources)
{
    struct ns_copy *c = calloc(1, sizeof *c);
    int code = ns_copy_agree(c ? EXIT_OK : text_fail(EXIT_TROUBLE, "no memory"));

    if (code == EXIT_OK) {
        c->o = *o;
        ns_copy_ranks(&c->rank, &c->ranks);
        code = copy(c, operand, sources);
    }
    free(c);
    return code;
}
