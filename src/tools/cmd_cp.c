/* deltafs cp: a plain file becomes a logical one, and the reverse.
 *
 * The copy is written under a hidden name in the target's folder, and renamed when it is complete. So
 * nothing incomplete is ever seen under the target's name. On failure and after a signal the hidden file is removed. A
 * device or a pipe is written directly. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/aside.h"
#include "tools/cmd.h"
#include "tools/copy.h"
#include "tools/cp_directory.h"
#include "tools/target.h"

struct cp {
    int is_forced, is_quiet; /* options */
    struct command_range epochs;
    const char *from; /* as named, but without the prefix */
    char to[PATH_MAX], folder[PATH_MAX], aside[ASIDE_ROOM];
    int has_to, to_logical; /* something is at `to`; the copy is a logical file */
    mode_t mode;            /* of the plain file at `to` */
    struct copy copy;
    uint64_t total; /* bytes, as far as is known */
};

/* ---- The source ---- */

static int cp_open_from(struct cp *c, const char *name)
{
    struct target p;

    c->from = text_path(name);
    c->copy.from = (struct copy_end){.fd = -1, .name = c->from};
    if (strcmp(name, "-") == 0) {
        c->copy.from = (struct copy_end){.fd = STDIN_FILENO, .name = "standard input"};
        return EXIT_OK;
    }
    int code = target_look(c->from, &p);
    if (code != EXIT_OK)
        return code;
    if (p.kind == TARGET_LOGICAL) {
        code = target_open_logical(c->from, &c->copy.from.logical);
        return code != EXIT_OK ? code : text_of_call(deltafs_logical_size(c->copy.from.logical, &c->total));
    }
    /* The prefix says that it is one. */
    if (p.kind == TARGET_DIRECTORY || p.kind == TARGET_FOLDER || c->from != name)
        return target_refuse(c->from, p.kind);
    c->copy.from.is_pipe = S_ISFIFO(p.stat.st_mode);
    c->copy.from.fd = open(c->from, O_RDONLY | O_CLOEXEC | (c->copy.from.is_pipe ? O_NONBLOCK : 0));
    c->copy.from.has_holes = p.kind == TARGET_FILE;
    c->total = p.kind == TARGET_FILE ? (uint64_t)p.stat.st_size : 0;
    return c->copy.from.fd >= 0 ? EXIT_OK : text_fail(EXIT_TROUBLE, "%s: %s", c->from, strerror(errno));
}

/* ---- The target's name ---- */

/* A copy into a folder has the name of the source. */
static int cp_into_folder(struct cp *c, struct target *p)
{
    char from[PATH_MAX], folder[PATH_MAX];

    if (c->copy.from.fd == STDIN_FILENO)
        return text_fail(EXIT_TROUBLE, "%s: a folder; give a name in it for what comes from standard input", c->to);
    snprintf(from, sizeof from, "%s", c->from);
    memcpy(folder, c->to, sizeof folder);
    int n = snprintf(c->to, sizeof c->to, "%s/%s", folder, basename(from));
    if (n < 0 || (size_t)n >= sizeof c->to)
        return text_fail(EXIT_TROUBLE, "%s: %s", folder, strerror(ENAMETOOLONG));
    c->has_to = stat(c->to, &p->stat) == 0;
    if (!c->has_to)
        return EXIT_OK;
    int code = target_look(c->to, p);
    if (code == EXIT_OK && p->kind == TARGET_FOLDER)
        code = text_fail(EXIT_TROUBLE, "%s: a folder; no file takes its place", c->to);
    return code;
}

/* Whether what is at the target may be replaced. */
static int cp_check_old(struct cp *c, const struct target *p)
{
    char real[PATH_MAX];

    if (p->kind == TARGET_OTHER && !c->to_logical)
        return EXIT_OK;
    if (p->kind == TARGET_DIRECTORY)
        return text_fail(EXIT_TROUBLE, "%s: a DeltaFS directory; no file takes its place", c->to);
    if (c->to_logical && p->kind != TARGET_LOGICAL)
        return text_fail(EXIT_TROUBLE,
                         "%s: a plain file, but the copy is a logical file; remove it, or give another name", c->to);
    if (!c->to_logical && p->kind == TARGET_LOGICAL)
        return text_fail(EXIT_TROUBLE,
                         "%s: a logical file, but the copy is a plain file; remove it by 'deltafs rm' (or "
                         "give deltafs:%s for a logical copy)",
                         c->to, c->to);
    if (!c->is_forced)
        return text_fail(EXIT_TROUBLE, "%s: there is a file of this name; --force replaces it", c->to);
    c->mode = p->stat.st_mode & 07777;
    /* A symbolic link stays, and what it points to is replaced. */
    if (!realpath(c->to, real))
        return text_fail(EXIT_TROUBLE, "%s: %s", c->to, strerror(errno));
    memcpy(c->to, real, strlen(real) + 1);
    return EXIT_OK;
}

/* Open a device or a pipe for writing. A pipe is not waited for until somebody reads it. */
static int cp_open_other(struct cp *c)
{
    int fd = open(c->to, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

    c->copy.to = (struct copy_end){.fd = fd, .name = c->to};
    if (fd < 0)
        return text_fail(EXIT_TROUBLE, "%s: %s", c->to,
                         errno == ENXIO ? "no process reads this pipe; first start the one that does"
                                        : strerror(errno));
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return EXIT_OK;
}

/* Find out what is at the target's name. */
static int cp_look_to(struct cp *c, const char *name)
{
    struct target p = {.kind = TARGET_OTHER};
    const char *to = text_path(name);
    size_t n = strlen(to);
    struct stat st;
    int code = EXIT_OK;

    c->to_logical = !c->copy.from.logical || to != name;
    if (n == 0)
        return target_refuse_empty();
    if (n >= sizeof c->to)
        return text_fail(EXIT_TROUBLE, "%s: %s", name, strerror(ENAMETOOLONG));
    memcpy(c->to, to, n + 1);
    c->has_to = stat(c->to, &p.stat) == 0;
    if (!c->has_to && errno != ENOENT)
        return text_fail(EXIT_TROUBLE, "%s: %s", c->to, strerror(errno));
    if (!c->has_to && (to[n - 1] == '/' || lstat(c->to, &st) == 0))
        return text_fail(EXIT_TROUBLE, "%s: %s", c->to,
                         to[n - 1] == '/' ? "no such folder" : "a symbolic link to what is not there");
    if (c->has_to)
        code = target_look(c->to, &p);
    if (code == EXIT_OK && c->has_to && p.kind == TARGET_FOLDER)
        code = cp_into_folder(c, &p);
    if (code == EXIT_OK && c->has_to)
        code = cp_check_old(c, &p);
    if (code != EXIT_OK)
        return code;
    return c->has_to && p.kind == TARGET_OTHER ? cp_open_other(c) : EXIT_OK;
}

/* ---- The hidden file ---- */

static int cp_make_aside(struct cp *c)
{
    struct copy_end *to = &c->copy.to;
    const char *wrong = NULL;

    copy_hold_signals();
    aside_name("cp", c->to, c->folder, c->aside);
    *to = (struct copy_end){.fd = -1, .name = c->to, .has_holes = !c->to_logical};
    if (!c->to_logical && (to->fd = open(c->aside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        wrong = strerror(errno);
    if (c->to_logical && deltafs_logical_open(c->aside, O_WRONLY | O_CREAT | O_EXCL, NULL, &to->logical) != DELTAFS_OK)
        wrong = deltafs_errmsg(NULL);
    if (!wrong)
        return EXIT_OK;
    c->aside[0] = '\0';
    return text_fail(EXIT_TROUBLE, "%s: cannot be made in %s: %s", c->to, c->folder, wrong);
}

/* Close the target; `code` is that of the copy. */
static int cp_close_aside(struct cp *c, int code)
{
    struct copy_end *to = &c->copy.to;
    const char *wrong = NULL;

    if (to->logical) {
        wrong = deltafs_logical_close(to->logical) != DELTAFS_OK ? deltafs_errmsg(NULL) : NULL;
    } else {
        if (code == EXIT_OK && c->aside[0] != '\0' &&
            ((c->has_to && fchmod(to->fd, c->mode) != 0) || fsync(to->fd) != 0))
            wrong = strerror(errno);
        if (to->fd != STDOUT_FILENO && close(to->fd) != 0 && !wrong)
            wrong = strerror(errno);
    }
    return wrong && code == EXIT_OK ? text_fail(EXIT_TROUBLE, "cannot write to %s: %s", c->to, wrong) : code;
}

static void cp_remove_aside(struct cp *c)
{
    if (c->to_logical ? deltafs_logical_remove(c->aside) != DELTAFS_OK : unlink(c->aside) != 0)
        text_fail(0, "%s: cannot be removed: %s", c->aside, c->to_logical ? deltafs_errmsg(NULL) : strerror(errno));
}

/* ---- Renaming it ---- */

static int cp_put(struct cp *c)
{
    int failed = !c->has_to       ? aside_put_new(c->aside, c->to, c->to_logical)
                 : !c->to_logical ? rename(c->aside, c->to)
                                  : aside_exchange(c->aside, c->to);

    if (failed && c->has_to && c->to_logical && (errno == EINVAL || errno == ENOSYS))
        return text_fail(EXIT_TROUBLE, "%s: this file system cannot replace a logical file; first run 'deltafs rm %s'",
                         c->to, c->to);
    if (failed)
        return text_fail(EXIT_TROUBLE, "%s: cannot be renamed: %s", c->to, strerror(errno));
    if (c->has_to && c->to_logical)
        cp_remove_aside(c); /* the old file */
    c->aside[0] = '\0';
    if (aside_sync(c->folder) != 0)
        return text_fail(EXIT_TROUBLE, "%s: cannot be synced: %s", c->folder, strerror(errno));
    return EXIT_OK;
}

/* ---- The command ---- */

static int cp_copy(struct cp *c, const char *to)
{
    int is_stdout = strcmp(to, "-") == 0, code;

    if (is_stdout) {
        c->copy.to = (struct copy_end){.fd = STDOUT_FILENO, .name = "standard output"};
        /* A plain file needs no help of ours to get there. */
        code = c->copy.from.logical ? EXIT_OK : target_refuse(c->from, TARGET_FILE);
    } else {
        c->copy.to.fd = -1;
        code = cp_look_to(c, to);
    }
    if (code == EXIT_OK && !is_stdout && c->copy.to.fd < 0)
        code = cp_make_aside(c); /* signals are held back from now on */
    if (code != EXIT_OK)
        return code;
    progress_begin(&c->copy.bar, c->total, !c->is_quiet && !(is_stdout && isatty(STDOUT_FILENO)));
    code = copy_bytes(&c->copy, 0, UINT64_MAX);
    progress_end(&c->copy.bar);
    code = cp_close_aside(c, code);
    if (code == EXIT_OK && !copy_is_interrupted() && c->aside[0] != '\0')
        code = cp_put(c);
    if (c->aside[0] != '\0')
        cp_remove_aside(c);
    return code;
}

/* Says nothing if it is none: then it is opened as a file, which says what is wrong. */
static int cp_is_directory(const char *name)
{
    const char *path = text_path(name);
    struct target t;
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && target_look(path, &t) == EXIT_OK &&
           t.kind == TARGET_DIRECTORY;
}

static int cp_run(const struct command_call *call)
{
    struct cp *c = call->values;
    char **operand = call->operand;

    if (strcmp(operand[0], "-") == 0 && strcmp(operand[1], "-") == 0)
        return text_fail(EXIT_USAGE, "cp: FROM and TO cannot both be -; one of them is a logical file");
    if (cp_is_directory(operand[0])) {
        if (*text_path(operand[1]) == '\0')
            return target_refuse_empty();
        if (strcmp(operand[1], "-") == 0)
            return text_fail(EXIT_TROUBLE, "%s: a directory has no place in a pipe; 'deltafs export' writes to one",
                             operand[0]);
        if (c->is_forced)
            return text_fail(EXIT_USAGE, "cp: --force is not for directories; first run 'deltafs rm %s'", operand[1]);
        return cp_directory(text_path(operand[0]), text_path(operand[1]), c->epochs.is_given ? &c->epochs.range : NULL,
                            c->is_quiet);
    }
    if (c->epochs.is_given)
        return text_fail(EXIT_USAGE, "cp: --epochs is for directories; %s is none", operand[0]);
    int code = cp_open_from(c, operand[0]);
    if (code == EXIT_OK)
        code = cp_copy(c, operand[1]);
    deltafs_logical_close(c->copy.from.logical);
    if (c->copy.from.fd > STDIN_FILENO)
        close(c->copy.from.fd);
    copy_release_signals();
    return code;
}

static const struct command_option options[] = {
    {"force", 'f', NULL, "replace an existing file of the same kind", NULL, offsetof(struct cp, is_forced)},
    {"quiet", 'q', NULL, "no progress bar", NULL, offsetof(struct cp, is_quiet)},
    {"epochs", 0, "A[:B]", "of a directory: only epochs with labels from A to B; A: and :B have one end",
     cmd_parse_range, offsetof(struct cp, epochs)},
    {0}};

extern const struct command cmd_ns_cp;

const struct command cmd_cp = {
    .name = "cp",
    .usage = "FROM TO [OPTION...]",
    .text = "Copy a logical file to a plain file, or a plain file to a logical file; deltafs:TO is always logical.\n"
            "    - is standard input or output. Copy a directory, or some of its epochs, to a new directory.",
    .missing = "FROM and TO must be given, and no more",
    .least = 2,
    .most = 2,
    .size = sizeof(struct cp),
    .option = options,
    .in_namespace = &cmd_ns_cp,
    .run = cp_run};
