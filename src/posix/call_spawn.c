/* Children that begin as another program: posix_spawn. popen and system, in call_shell.c, use it.
 *
 * If nothing of a mount is given to the child, the C library's functions do it. Otherwise the child is a fork, in which
 * this library does what was asked for, as calls of its own: open, dup2, chdir, execve. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "posix/begin.h"
#include "posix/execute.h"
#include "posix/handover.h"
#include "posix/next.h"
#include "posix/posix_tree.h"
#include "posix/program.h"

/* ---- File actions ---- */

enum action_kind { ACTION_OPEN, ACTION_CLOSE, ACTION_DUP2, ACTION_CHDIR, ACTION_FCHDIR, ACTION_CLOSEFROM, ACTION_TTY };

struct action {
    enum action_kind kind;
    int fd, to;
    int flags;
    mode_t mode;
    char *path;
};

/* The same actions that the C library has in a form of its own. Where they are is noted at the end of its structure, in
 * the part that is kept for later versions and is zero in a new one. */
struct actions {
    size_t count, room;
    struct action *action;
};

_Static_assert(sizeof((posix_spawn_file_actions_t *)0)->__pad >= 2 * sizeof(void *), "room for a pointer");

static void *place_of(posix_spawn_file_actions_t *a)
{
    return (char *)(a + 1) - sizeof(struct actions *);
}

static struct actions *actions_of(const posix_spawn_file_actions_t *a)
{
    struct actions *own = NULL;

    if (a)
        memcpy(&own, place_of((posix_spawn_file_actions_t *)a), sizeof own);
    return own;
}

static struct actions *make_actions(posix_spawn_file_actions_t *a)
{
    struct actions *own = actions_of(a);

    if (!own && (own = calloc(1, sizeof *own)))
        memcpy(place_of(a), &own, sizeof own);
    return own;
}

/* Note an action, once the C library has; `one.path` is copied. */
static int note(posix_spawn_file_actions_t *a, int error, struct action one)
{
    if (error != 0 || !mounts.is_used)
        return error;
    struct actions *own = make_actions(a);
    if (own && own->count == own->room) {
        size_t room = 2 * own->room + 4;
        struct action *action = realloc(own->action, room * sizeof *action);
        own->action = action ? action : own->action;
        own->room = action ? room : own->room;
    }
    one.path = one.path ? strdup(one.path) : NULL;
    if (!own || own->count == own->room || (!one.path && (one.kind == ACTION_OPEN || one.kind == ACTION_CHDIR))) {
        free(one.path);
        return ENOMEM;
    }
    own->action[own->count++] = one;
    return 0;
}

CALL int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *a)
{
    posix_begin();
    struct actions *own = actions_of(a);
    for (size_t i = 0; own && i < own->count; i++)
        free(own->action[i].path);
    if (own)
        free(own->action);
    free(own);
    return next.posix_spawn_file_actions_destroy(a);
}

CALL int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *restrict a, int fd, const char *restrict path,
                                          int flags, mode_t mode)
{
    posix_begin();
    return note(a, next.posix_spawn_file_actions_addopen(a, fd, path, flags, mode),
                (struct action){.kind = ACTION_OPEN, .fd = fd, .path = (char *)path, .flags = flags, .mode = mode});
}

CALL int posix_spawn_file_actions_addclose(posix_spawn_file_actions_t *a, int fd)
{
    posix_begin();
    return note(a, next.posix_spawn_file_actions_addclose(a, fd), (struct action){.kind = ACTION_CLOSE, .fd = fd});
}

CALL int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *a, int fd, int to)
{
    posix_begin();
    return note(a, next.posix_spawn_file_actions_adddup2(a, fd, to),
                (struct action){.kind = ACTION_DUP2, .fd = fd, .to = to});
}

CALL int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *restrict a, const char *restrict path)
{
    posix_begin();
    return note(a, next.posix_spawn_file_actions_addchdir_np(a, path),
                (struct action){.kind = ACTION_CHDIR, .path = (char *)path});
}

CALL int posix_spawn_file_actions_addfchdir_np(posix_spawn_file_actions_t *a, int fd)
{
    posix_begin();
    return note(a, next.posix_spawn_file_actions_addfchdir_np(a, fd), (struct action){.kind = ACTION_FCHDIR, .fd = fd});
}

CALL int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *a, int first)
{
    posix_begin();
    return note(a, next.posix_spawn_file_actions_addclosefrom_np(a, first),
                (struct action){.kind = ACTION_CLOSEFROM, .fd = first});
}

CALL int posix_spawn_file_actions_addtcsetpgrp_np(posix_spawn_file_actions_t *a, int fd)
{
    posix_begin();
    return note(a, next.posix_spawn_file_actions_addtcsetpgrp_np(a, fd), (struct action){.kind = ACTION_TTY, .fd = fd});
}

/* Whether an action is about a file of a mount. */
static int is_of_mount(const struct action *a)
{
    switch (a->kind) {
    case ACTION_OPEN:
    case ACTION_CHDIR:
        return program_is_inside(a->path);
    case ACTION_DUP2:
    case ACTION_FCHDIR:
        return file_is_ours(a->fd);
    default:
        return 0;
    }
}

/* ---- The child ---- */

struct spawn {
    struct execution execution;
    const struct actions *actions;
    const posix_spawnattr_t *attributes; /* NULL: none */
    sigset_t mask;                       /* of the parent */
    int error;                           /* descriptor: why the program did not begin goes there */
};

/* The descriptor for the error is not in the way of one that the child is to have. */
static int make_way(struct spawn *s, int fd)
{
    if (fd != s->error)
        return 0;
    int other = next.fcntl(s->error, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (other < 0)
        return errno;
    next.close(s->error);
    s->error = other;
    return 0;
}

static int do_open(const struct action *a)
{
    int fd = open(a->path, a->flags, a->mode);
    int error = fd < 0 ? errno : 0;

    if (fd >= 0 && fd != a->fd) {
        error = dup2(fd, a->fd) < 0 ? errno : 0;
        close(fd);
    }
    return error;
}

/* A descriptor that is its own copy is not closed on exec. */
static int do_dup2(const struct action *a)
{
    if (a->fd != a->to)
        return dup2(a->fd, a->to) < 0 ? errno : 0;
    int flags = next.fcntl(a->fd, F_GETFD);
    return flags < 0 || next.fcntl(a->fd, F_SETFD, flags & ~FD_CLOEXEC) != 0 ? errno : 0;
}

static int do_closefrom(const struct spawn *s, int first)
{
    int error = 0;

    if (first < s->error)
        error = close_range((unsigned)first, (unsigned)s->error - 1, 0) != 0 ? errno : 0;
    if (error == 0)
        error = close_range((unsigned)(first > s->error ? first : s->error + 1), UINT_MAX, 0) != 0 ? errno : 0;
    return error;
}

static int do_action(struct spawn *s, const struct action *a)
{
    int error = make_way(s, a->kind == ACTION_DUP2 ? a->to : a->fd);

    if (error != 0)
        return error;
    switch (a->kind) {
    case ACTION_OPEN:
        return do_open(a);
    case ACTION_CLOSE:
        close(a->fd); /* it is no error if it is not open */
        return 0;
    case ACTION_DUP2:
        return do_dup2(a);
    case ACTION_CHDIR:
        return chdir(a->path) != 0 ? errno : 0;
    case ACTION_FCHDIR:
        return fchdir(a->fd) != 0 ? errno : 0;
    case ACTION_CLOSEFROM:
        return do_closefrom(s, a->fd);
    default:
        return tcsetpgrp(a->fd, getpgrp()) != 0 ? errno : 0;
    }
}

static void reset_signals(const sigset_t *set)
{
    for (int i = 1; i < NSIG; i++)
        if (sigismember(set, i) == 1)
            signal(i, SIG_DFL);
}

static int set_schedule(const posix_spawnattr_t *a, short flags)
{
    struct sched_param param;
    int policy;

    posix_spawnattr_getschedparam(a, &param);
    posix_spawnattr_getschedpolicy(a, &policy);
    if (flags & POSIX_SPAWN_SETSCHEDULER)
        return sched_setscheduler(0, policy, &param) != 0 ? errno : 0;
    return (flags & POSIX_SPAWN_SETSCHEDPARAM) && sched_setparam(0, &param) != 0 ? errno : 0;
}

static int do_attributes(struct spawn *s)
{
    const posix_spawnattr_t *a = s->attributes;
    short flags = 0;
    sigset_t set;
    pid_t group = 0;

    if (!a)
        return 0;
    posix_spawnattr_getflags(a, &flags);
    posix_spawnattr_getsigdefault(a, &set);
    posix_spawnattr_getpgroup(a, &group);
    if (flags & POSIX_SPAWN_SETSIGDEF)
        reset_signals(&set);
    if (flags & POSIX_SPAWN_SETSIGMASK)
        posix_spawnattr_getsigmask(a, &s->mask);
    int error = set_schedule(a, flags);
    if (error == 0 && (flags & POSIX_SPAWN_SETSID) && setsid() < 0)
        error = errno;
    if (error == 0 && (flags & POSIX_SPAWN_SETPGROUP) && setpgid(0, group) != 0)
        error = errno;
    if (error == 0 && (flags & POSIX_SPAWN_RESETIDS) && (setegid(getgid()) != 0 || seteuid(getuid()) != 0))
        error = errno;
    return error;
}

static void child(struct spawn *s)
{
    int error = do_attributes(s);

    for (size_t i = 0; s->actions && i < s->actions->count && error == 0; i++)
        error = do_action(s, &s->actions->action[i]);
    if (error == 0) {
        pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
        execute(&s->execution);
        error = errno;
    }
    next.write(s->error, &error, sizeof error);
    next._exit(127);
}

/* Signals are blocked meanwhile, so that no handler of the program runs in the child, or ends the wait for it. */
static int spawn(struct spawn *s, pid_t *pid)
{
    int ends[2], error = 0;
    sigset_t all;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &s->mask);
    s->error = ends[1];
    pid_t new = fork();
    if (new == 0)
        child(s);
    error = new < 0 ? errno : 0;
    next.close(ends[1]);
    if (new > 0 && next.read(ends[0], &error, sizeof error) == sizeof error)
        waitpid(new, NULL, 0);
    next.close(ends[0]);
    pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
    if (error == 0 && pid)
        *pid = new;
    return error;
}

/* ---- posix_spawn ---- */

/* Whether a program that is searched for may be one of a mount. */
static int search_is_inside(const char *name)
{
    const char *list = getenv("PATH");
    char path[PATH_MAX];

    if (strchr(name, '/'))
        return program_is_inside(name);
    for (const char *p = list ? list : "", *end; p; p = *end ? end + 1 : NULL) {
        end = strchrnul(p, ':');
        int size = snprintf(path, sizeof path, "%.*s/", (int)(end - p), p);
        if (end > p && (size_t)size < sizeof path && program_is_inside(path))
            return 1;
    }
    return 0;
}

static int needs_fork(const struct spawn *s)
{
    const struct execution *e = &s->execution;

    for (size_t i = 0; s->actions && i < s->actions->count; i++)
        if (is_of_mount(&s->actions->action[i]))
            return 1;
    return handover_has_any() || (e->is_searched ? search_is_inside(e->path) : program_is_inside(e->path));
}

static int spawn_call(pid_t *pid, const struct execution *e, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes)
{
    __typeof(posix_spawn) *plain = e->is_searched ? next.posix_spawnp : next.posix_spawn;
    struct spawn s = {.execution = *e, .actions = actions_of(actions), .attributes = attributes};
    char **environment;

    if (!mounts.is_used)
        return plain(pid, e->path, actions, attributes, e->arguments, e->environment);
    if (needs_fork(&s))
        return spawn(&s, pid);
    int error = handover_create(e->environment, &environment);
    if (error != 0)
        return error;
    trees_commit();
    error = plain(pid, e->path, actions, attributes, e->arguments, environment);
    handover_free(environment);
    return error;
}

CALL int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *restrict actions,
                     const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                     char *const environment[restrict])
{
    posix_begin();
    return spawn_call(pid, &(struct execution){AT_FDCWD, path, arguments, environment, .flags = 0}, actions,
                      attributes);
}

CALL int posix_spawnp(pid_t *pid, const char *name, const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[])
{
    posix_begin();
    return spawn_call(pid, &(struct execution){AT_FDCWD, name, arguments, environment, .is_searched = 1}, actions,
                      attributes);
}
