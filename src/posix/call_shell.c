/* Commands of the shell: system and popen. The child begins with posix_spawn. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "posix/begin.h"
#include "posix/mount.h"
#include "posix/locks.h"
#include "posix/next.h"

static int wait_for(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

static int spawn_shell(pid_t *pid, const char *command, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes)
{
    char *arguments[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};

    return posix_spawn(pid, "/bin/sh", actions, attributes, arguments, environ);
}

/* The signals of this process while a command runs: several threads may run one each. */
static struct {
    pthread_mutex_t lock;
    int commands;
    struct sigaction interrupt, quit;
} running = {.lock = LOCK_INITIALIZER};
pthread_mutex_t *const lock_of_commands = &running.lock;

static void ignore_signals(void)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    lock_take(&running.lock);
    if (running.commands++ == 0) {
        sigaction(SIGINT, &ignore, &running.interrupt);
        sigaction(SIGQUIT, &ignore, &running.quit);
    }
    lock_give(&running.lock);
}

static void restore_signals(void)
{
    lock_take(&running.lock);
    if (--running.commands == 0) {
        sigaction(SIGINT, &running.interrupt, NULL);
        sigaction(SIGQUIT, &running.quit, NULL);
    }
    lock_give(&running.lock);
}

/* Run a command; its signals are those that this process has set. */
static int run(const char *command, const sigset_t *mask)
{
    posix_spawnattr_t attributes;
    sigset_t reset;
    pid_t pid;

    sigemptyset(&reset);
    if (running.interrupt.sa_handler != SIG_IGN)
        sigaddset(&reset, SIGINT);
    if (running.quit.sa_handler != SIG_IGN)
        sigaddset(&reset, SIGQUIT);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &reset);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int error = spawn_shell(&pid, command, NULL, &attributes);
    posix_spawnattr_destroy(&attributes);
    return error == 0 ? wait_for(pid) : 127 << 8; /* as of a shell that could not begin */
}

CALL int system(const char *command)
{
    sigset_t children, mask;

    posix_begin();
    if (!mounts.is_used || !command)
        return next.system(command);
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    ignore_signals();
    pthread_sigmask(SIG_BLOCK, &children, &mask);
    int status = run(command, &mask);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    restore_signals();
    return status;
}

/* A stream of popen. Its end of the pipe is closed on exec: no other command may have it. */
struct stream {
    struct stream *next;
    FILE *file;
    pid_t pid;
};

static struct {
    pthread_mutex_t lock;
    struct stream *first;
} streams = {.lock = LOCK_INITIALIZER};
pthread_mutex_t *const lock_of_streams = &streams.lock;

/* Run a command with one end of a pipe; *pid is its process. */
static int run_with(const char *command, int fd, int to, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);

    if (error != 0)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, fd, to);
    if (error == 0)
        error = spawn_shell(pid, command, &actions, NULL);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static int stream_open(struct stream *s, const char *command, const char *mode)
{
    int ends[2], is_read = *mode == 'r';

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    int own = is_read ? ends[0] : ends[1], given = is_read ? ends[1] : ends[0];
    int error = run_with(command, given, is_read ? STDOUT_FILENO : STDIN_FILENO, &s->pid);
    next.close(given);
    s->file = error == 0 ? fdopen(own, is_read ? "r" : "w") : NULL;
    if (!s->file)
        next.close(own);
    return s->file ? 0 : error != 0 ? error : errno;
}

CALL FILE *popen(const char *command, const char *mode)
{
    posix_begin();
    if (!mounts.is_used || (*mode != 'r' && *mode != 'w'))
        return next.popen(command, mode);
    struct stream *s = calloc(1, sizeof *s);
    int error = s ? stream_open(s, command, mode) : ENOMEM;
    if (error != 0) {
        free(s);
        errno = error;
        return NULL;
    }
    lock_take(&streams.lock);
    s->next = streams.first;
    streams.first = s;
    lock_give(&streams.lock);
    return s->file;
}

/* Take a stream out of the list; NULL: it is none of popen above. */
static struct stream *stream_take(const FILE *file)
{
    lock_take(&streams.lock);
    struct stream **s = &streams.first;
    while (*s && (*s)->file != file)
        s = &(*s)->next;
    struct stream *found = *s;
    if (found)
        *s = found->next;
    lock_give(&streams.lock);
    return found;
}

CALL int pclose(FILE *file)
{
    posix_begin();
    struct stream *s = stream_take(file);
    if (!s)
        return next.pclose(file);
    fclose(file);
    int status = wait_for(s->pid);
    free(s);
    return status;
}
