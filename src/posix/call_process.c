/* Processes: fork, exec, and their end. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "posix/begin.h"
#include "posix/execute.h"
#include "posix/file_lock.h"
#include "posix/handover.h"
#include "posix/locks.h"
#include "posix/logical_view.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/posix_job.h"
#include "posix/posix_tree.h"
#include "posix/program.h"
#include "posix/undeclared.h"

/* ---- Begin and end ---- */

static pid_t process;                /* this one, unless it was begun without the C library; 0: it has only begun */
static _Thread_local int is_in_call; /* a handler forks in the middle of a call */

static void before_fork(void)
{
    is_in_call = lock_is_held();
    file_locks_share();
    trees_before_fork();
    particles_before_fork();
    locks_hold();
    files_hold_table();
}

static void after_fork(void)
{
    files_release_table(0);
    locks_release(0);
    particles_after_fork(0);
    trees_after_fork(0);
}

static void after_fork_in_child(void)
{
    files_release_table(1);
    locks_release(1);
    if (!is_in_call) /* its parent may have a file's lock, and wait for it */
        process = getpid();
    job_forget();
    particles_after_fork(1);
    trees_after_fork(1);
    logical_forget();
}

int process_is_whole(void)
{
    return process == 0 || getpid() == process;
}

static void publish(void)
{
    int error = process_is_whole() ? trees_end() : 0;

    if (error == EDEADLK)
        posix_say("a handler of a signal has ended the program in the middle of a call; what it wrote to files that "
                  "were open is lost in part");
    else if (error != 0)
        posix_say("files that were open at the end of the program: %s", strerror(error));
}

/* Without what streams of the C library have not written: it does not write that, either. */
static void end_quickly(void)
{
    publish();
    if (process_is_whole())
        particles_finish();
}

__attribute__((constructor)) static void process_begins(void)
{
    posix_begin();
    process = getpid();
    if (mounts.is_used) {
        pthread_atfork(before_fork, after_fork, after_fork_in_child);
        at_quick_exit(end_quickly);
    }
    logical_take_input();
}

static int find_any(struct file *f, int fd, void *has_any)
{
    (void)f;
    (void)fd;
    *(int *)has_any = 1;
    return 0;
}

/* The same, with what the C library has not written yet; it writes that as it does at the end of a process, which is
 * without waiting for threads that use a stream. */
static void end(void *unused)
{
    int has_any = 0;

    (void)unused;
    file_each(find_any, &has_any);
    if (has_any)
        fcloseall();
    publish();
}

int __cxa_atexit(void (*fn)(void *), void *arg, void *object);

/* Other libraries end behind this one, and may still write: so it ends once more, behind them all. */
__attribute__((destructor)) static void process_ends(void)
{
    if (!mounts.is_used || !process_is_whole())
        return;
    end(NULL);
    particles_finish();
    __cxa_atexit(end, NULL, NULL);
}

CALL void _exit(int status)
{
    posix_begin();
    if (mounts.is_used)
        end_quickly();
    next._exit(status);
    __builtin_unreachable();
}

CALL void _Exit(int status)
{
    _exit(status);
}

/* ---- Children ---- */

/* A child of vfork may not do what this library does. */
CALL pid_t vfork(void)
{
    return fork();
}

static int daemon_descriptors(void)
{
    int fd = open("/dev/null", O_RDWR);

    for (int i = STDIN_FILENO; fd >= 0 && i <= STDERR_FILENO; i++)
        if (dup2(fd, i) < 0)
            return -1;
    if (fd > STDERR_FILENO)
        close(fd);
    return fd < 0 ? -1 : 0;
}

CALL int daemon(int keep_folder, int keep_descriptors)
{
    posix_begin();
    if (!mounts.is_used)
        return next.daemon(keep_folder, keep_descriptors);
    pid_t child = fork();
    if (child > 0)
        _exit(0);
    if (child < 0 || setsid() < 0 || (!keep_folder && chdir("/") != 0))
        return -1;
    return keep_descriptors ? 0 : daemon_descriptors();
}

/* ---- Exec ---- */

/* A script without "#!" is one of the shell. */
static int execute_or_shell(const char *path, char *const arguments[], char *const environment[])
{
    size_t n = 0;

    program_execute(AT_FDCWD, path, arguments, environment, 0);
    if (errno != ENOEXEC)
        return -1;
    while (arguments[n])
        n++;
    char **of_shell = calloc(n + 3, sizeof *of_shell);
    if (!of_shell)
        return -1;
    of_shell[0] = (char *)"/bin/sh";
    of_shell[1] = (char *)path;
    if (n > 1)
        memcpy(of_shell + 2, arguments + 1, (n - 1) * sizeof *of_shell);
    program_execute(AT_FDCWD, of_shell[0], of_shell, environment, 0);
    free(of_shell);
    return -1;
}

/* Whether a search goes on after an error. */
static int is_not_there(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ESTALE || error == ENODEV ||
           error == ETIMEDOUT;
}

/* Search the folders of PATH. */
static int search(const char *name, char *const arguments[], char *const environment[])
{
    const char *list = getenv("PATH");
    char path[PATH_MAX];
    int is_denied = 0;

    if (!*name)
        return posix_result(ENOENT);
    if (strchr(name, '/'))
        return execute_or_shell(name, arguments, environment);
    for (const char *p = list ? list : "/bin:/usr/bin", *end; p; p = *end ? end + 1 : NULL) {
        end = strchrnul(p, ':');
        int size = snprintf(path, sizeof path, "%.*s%s%s", (int)(end - p), p, end > p ? "/" : "", name);
        errno = ENOENT;
        if ((size_t)size < sizeof path)
            execute_or_shell(path, arguments, environment);
        is_denied |= errno == EACCES;
        if (!is_not_there(errno))
            return -1;
    }
    return posix_result(is_denied ? EACCES : errno);
}

/* With an environment that is ready. */
static int execute_ready(const struct execution *e, char *const environment[])
{
    return e->is_searched ? search(e->path, e->arguments, environment)
                          : program_execute(e->folder, e->path, e->arguments, environment, e->flags);
}

int execute(const struct execution *e)
{
    char **environment;

    if (!mounts.is_used)
        return execute_ready(e, e->environment);
    int error = handover_create(e->environment, &environment);
    if (error != 0)
        return posix_result(error);
    if (process_is_whole()) {
        error = trees_end();
        particles_finish();
    }
    if (error != 0)
        posix_say("files that were open when another program began: %s", strerror(error));
    execute_ready(e, environment);
    error = errno;
    handover_free(environment);
    return posix_result(error);
}

CALL int execve(const char *path, char *const arguments[], char *const environment[])
{
    posix_begin();
    return execute(&(struct execution){AT_FDCWD, path, arguments, environment, .flags = 0});
}

CALL int execveat(int folder, const char *path, char *const arguments[], char *const environment[], int flags)
{
    posix_begin();
    return execute(&(struct execution){folder, path, arguments, environment, .flags = flags});
}

CALL int fexecve(int fd, char *const arguments[], char *const environment[])
{
    return execveat(fd, "", arguments, environment, AT_EMPTY_PATH);
}

CALL int execvpe(const char *name, char *const arguments[], char *const environment[])
{
    posix_begin();
    return execute(&(struct execution){AT_FDCWD, name, arguments, environment, .is_searched = 1});
}

CALL int execv(const char *path, char *const arguments[])
{
    return execve(path, arguments, environ);
}

CALL int execvp(const char *name, char *const arguments[])
{
    return execvpe(name, arguments, environ);
}

/* The arguments of a call, on the heap; `list` is behind them then. */
static char **list_arguments(const char *first, va_list list)
{
    size_t n = 1;
    va_list again;

    va_copy(again, list);
    for (const char *one = first; one; n++)
        one = va_arg(again, const char *);
    va_end(again);
    char **arguments = calloc(n, sizeof *arguments);
    if (!arguments)
        return NULL;
    arguments[0] = (char *)first;
    for (size_t i = 1; arguments[i - 1]; i++)
        arguments[i] = va_arg(list, char *);
    return arguments;
}

/* Execute with the arguments of a call, on the heap. */
static int execute_list(struct execution e, char **arguments)
{
    e.arguments = arguments;
    posix_begin();
    int result = arguments ? execute(&e) : -1;
    free(arguments);
    return result;
}

CALL int execl(const char *path, const char *first, ...)
{
    va_list list;

    va_start(list, first);
    char **arguments = list_arguments(first, list);
    va_end(list);
    return execute_list((struct execution){AT_FDCWD, path, NULL, environ, .flags = 0}, arguments);
}

CALL int execlp(const char *name, const char *first, ...)
{
    va_list list;

    va_start(list, first);
    char **arguments = list_arguments(first, list);
    va_end(list);
    return execute_list((struct execution){AT_FDCWD, name, NULL, environ, .is_searched = 1}, arguments);
}

CALL int execle(const char *path, const char *first, ...)
{
    va_list list;

    va_start(list, first);
    char **arguments = list_arguments(first, list), **environment = va_arg(list, char **);
    va_end(list);
    return execute_list((struct execution){AT_FDCWD, path, NULL, environment, .flags = 0}, arguments);
}

/* ---- Libraries ---- */

/* A library of a mount is loaded from a copy. */
static __attribute__((noinline)) void *load_inside(const char *path, int flags)
{
    char copy[64];
    int fd = program_copy(path);

    snprintf(copy, sizeof copy, "/proc/self/fd/%d", fd);
    void *object = next.dlopen(fd < 0 ? path : copy, flags); /* without the file, this is the way to an error message */
    if (fd >= 0)
        next.close(fd);
    return object;
}

/* The loader takes the folders to search from whoever calls it, so that must not be this library: this call has to be
 * a jump. */
__attribute__((optimize("O2"))) CALL void *dlopen(const char *path, int flags)
{
    posix_begin();
    if (path && strchr(path, '/') && program_is_inside(path))
        return load_inside(path, flags);
    return next.dlopen(path, flags);
}
