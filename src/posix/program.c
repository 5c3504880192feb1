#include "posix/program.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "posix/file.h"
#include "posix/follow.h"
#include "posix/next.h"
#include "posix/route.h"

#define LINE_MAX_SIZE 256 /* bytes of a script's first line that count, as for the kernel */
#define SCRIPTS_MAX   5   /* scripts that are run by scripts */
#define COPY_SIZE     ((size_t)256 << 10)

#ifndef MFD_EXEC
#define MFD_EXEC 0x10U
#endif

int program_is_inside(const char *path)
{
    struct route r;

    return route_find(&r, AT_FDCWD, path);
}

/* ---- Copies ---- */

static int copy_bytes(int from, int to)
{
    char *bytes = malloc(COPY_SIZE);
    ssize_t got = bytes ? 1 : -1;

    while (got > 0) {
        got = read(from, bytes, COPY_SIZE);
        for (ssize_t done = 0, put; got > 0 && done < got; done += put) {
            put = next.write(to, bytes + done, (size_t)(got - done));
            if (put < 0) {
                got = -1;
                break;
            }
        }
    }
    free(bytes);
    return got < 0 ? -1 : 0;
}

/* Kernels before 6.3 do not know MFD_EXEC; those after it may be told that memfds without it cannot be executed. */
static int make_memfd(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_EXEC);

    return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC) : fd;
}

int program_copy(const char *path)
{
    const char *slash = strrchr(path, '/');
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int to = from < 0 ? -1 : make_memfd(slash ? slash + 1 : path);

    if (to >= 0 && copy_bytes(from, to) != 0) {
        next.close(to);
        to = -1;
    }
    int error = errno;
    if (from >= 0)
        close(from);
    errno = error;
    return to;
}

/* ---- Scripts ---- */

/* The first line of a script: "#!INTERPRETER [ARGUMENT]". */
struct script {
    char line[LINE_MAX_SIZE];
    char *interpreter, *argument; /* in it */
};

static char *skip_blanks(char *p)
{
    return p + strspn(p, " \t");
}

/* Whether a file is a script. */
static int script_read(struct script *s, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, s->line, sizeof s->line - 1);

    if (fd >= 0)
        close(fd);
    s->line[got < 0 ? 0 : got] = '\0';
    s->line[strcspn(s->line, "\n")] = '\0';
    if (strncmp(s->line, "#!", 2) != 0)
        return 0;
    s->interpreter = skip_blanks(s->line + 2);
    char *end = s->interpreter + strcspn(s->interpreter, " \t");
    s->argument = *end ? skip_blanks(end + 1) : end;
    *end = '\0';
    for (char *last = s->argument + strlen(s->argument); last > s->argument && strchr(" \t", last[-1]);)
        *--last = '\0';
    return *s->interpreter != '\0';
}

/* The arguments of the interpreter: on the heap, without the texts. */
static char **script_arguments(const struct script *s, const char *path, char *const given[])
{
    size_t n = 0, i = 0;

    while (given && given[n])
        n++;
    char **out = calloc(n + 4, sizeof *out);
    if (!out)
        return NULL;
    out[i++] = (char *)s->interpreter;
    if (*s->argument)
        out[i++] = (char *)s->argument;
    out[i++] = (char *)path;
    if (n > 1)
        memcpy(out + i, given + 1, (n - 1) * sizeof *out);
    return out;
}

/* ---- Execution ---- */

static int execute_at(int folder, const char *path, char *const arguments[], char *const environment[], int flags,
                      int depth);

static int execute_script(const char *path, const struct script *s, char *const arguments[], char *const environment[],
                          int depth)
{
    if (depth == SCRIPTS_MAX)
        return posix_result(ELOOP);
    char **of_interpreter = script_arguments(s, path, arguments);
    int result = of_interpreter ? execute_at(AT_FDCWD, s->interpreter, of_interpreter, environment, 0, depth + 1) : -1;
    free(of_interpreter);
    return result;
}

static int execute_copy(const char *path, char *const arguments[], char *const environment[])
{
    int fd = program_copy(path);

    if (fd < 0)
        return -1;
    next.execveat(fd, "", arguments, environment, AT_EMPTY_PATH);
    int error = errno;
    next.close(fd);
    return posix_result(error);
}

static int execute_outside(int folder, const char *path, char *const arguments[], char *const environment[], int flags,
                           int depth);

/* A file of a mount, or one of the system that a link of a mount leads to. */
static int execute_inside(const char *path, char *const arguments[], char *const environment[], int depth)
{
    char real[PATH_MAX];
    struct script s;
    struct stat st;

    if (follow_path(AT_FDCWD, path, real) == 0 && !program_is_inside(real))
        return execute_outside(AT_FDCWD, real, arguments, environment, 0, depth);
    if (stat(path, &st) != 0)
        return -1;
    if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
        return posix_result(EACCES);
    return script_read(&s, path) ? execute_script(path, &s, arguments, environment, depth)
                                 : execute_copy(path, arguments, environment);
}

/* A file that the kernel finds; its interpreter may be in a mount, or it is a link that leads there. */
static int execute_outside(int folder, const char *path, char *const arguments[], char *const environment[], int flags,
                           int depth)
{
    char real[PATH_MAX];
    struct script s;

    if (folder == AT_FDCWD && flags == 0)
        next.execve(path, arguments, environment);
    else
        next.execveat(folder, path, arguments, environment, flags);
    int error = errno;
    if (error != ENOENT || folder != AT_FDCWD || flags != 0 || follow_path(AT_FDCWD, path, real) != 0)
        return posix_result(error);
    if (program_is_inside(real))
        return execute_inside(real, arguments, environment, depth);
    if (script_read(&s, real) && (follow_path(AT_FDCWD, s.interpreter, real) == 0 && program_is_inside(real)))
        return execute_script(path, &s, arguments, environment, depth);
    return posix_result(error);
}

static int execute_at(int folder, const char *path, char *const arguments[], char *const environment[], int flags,
                      int depth)
{
    char whole[2 * PATH_MAX];
    struct route r;

    struct file *f = (flags & AT_EMPTY_PATH) && path_is_empty(path) ? file_get(folder) : NULL;
    if (f)
        file_path(f, whole, sizeof whole);
    else if (!route_find(&r, folder, path))
        return execute_outside(r.folder, r.path, arguments, environment, flags, depth);
    else if (folder == AT_FDCWD)
        snprintf(whole, sizeof whole, "%s", path);
    else
        snprintf(whole, sizeof whole, "%s%s", r.mount->point, r.path);
    file_put(f);
    return execute_inside(whole, arguments, environment, depth);
}

int program_execute(int folder, const char *path, char *const arguments[], char *const environment[], int flags)
{
    return execute_at(folder, path, arguments, environment, flags, 0);
}
