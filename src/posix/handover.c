#include "posix/handover.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include "posix/file_lock.h"
#include "posix/locks.h"
#include "posix/mark.h"
#include "posix/next.h"
#include "posix/particles.h"
#include "posix/posix_tree.h"
#include "posix/route.h"

#define OWN     "DELTAFS_POSIX"    /* how the names of all variables of this library begin */
#define POOLS   "DELTAFS_POOL_DIR" /* where libdeltafs finds pools */
#define FD      OWN "_FD"
#define FOLDER  OWN "_FOLDER"
#define PRELOAD "LD_PRELOAD"

static struct {
    char library[PATH_MAX]; /* this one */
    char **own;             /* the variables of "deltafs run", which the next program needs too; NULL ends them */
    size_t own_count;
} kept;

/* Whether a text of the environment is the variable whose name it begins with. */
static int is_variable(const char *text, const char *name)
{
    size_t n = strlen(name);

    return strncmp(text, name, n) == 0 && text[n] == '=';
}

static int is_handed(const char *text)
{
    return is_variable(text, FOLDER) || (strncmp(text, FD, strlen(FD)) == 0 && strchr(text, '='));
}

/* ---- Open files ---- */

/* An open file, in hexadecimal digits. All of a run use one library. */
struct handed {
    uint32_t mount;
    uint32_t kind;
    int32_t flags;
    uint8_t has_all, is_removed, is_shared;
    pid_t owner; /* of a particle */
    struct stat st;
    dev_t device; /* of the memfd, so that a descriptor that is something else by now is not taken for it */
    ino_t inode;
    struct handed_lock lock;
};

static void to_hex(const void *bytes, size_t size, char *out)
{
    for (size_t i = 0; i < size; i++)
        snprintf(out + 2 * i, 3, "%02x", ((const uint8_t *)bytes)[i]);
}

static int of_hex(const char *text, void *out, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (sscanf(text + 2 * i, "%2hhx", (uint8_t *)out + i) != 1)
            return 0;
    return 1;
}

static int is_inherited(const struct file *f, int fd)
{
    int is_ours = f->mount->kind != MOUNT_PARTICLES || (f->kind == FILE_PARTICLE && particles_owner(f) != 0);
    int flags = is_ours ? next.fcntl(fd, F_GETFD) : FD_CLOEXEC;

    return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* Whether another process that has the descriptor has loaded all: there are no holes. */
static int is_loaded(int fd, off_t size)
{
    int own = file_reopen(fd, O_RDONLY), is = own >= 0 && next.lseek(own, 0, SEEK_HOLE) >= size;
    if (own >= 0)
        next.close(own);
    return is;
}

int handover_load_input(struct file *f, int fd, off_t size)
{
    struct sysinfo system;

    if (fd != STDIN_FILENO || f->kind != FILE_TREE || f->has_all || (f->flags & (O_ACCMODE | O_PATH)) != O_RDONLY ||
        is_loaded(fd, size))
        return 0;
    if (sysinfo(&system) == 0 && (uint64_t)size / system.mem_unit > system.totalram / 4) {
        posix_say("%s%s has %lld bytes: too many to be standard input, which is held in memory; give the program the "
                  "path instead",
                  f->mount->point, f->path, (long long)size);
        return ENOMEM;
    }
    return file_load(f, fd);
}

struct handing {
    char **environment;
    size_t count, room;
};

static int hand_text(struct handing *h, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int hand_text(struct handing *h, const char *format, ...)
{
    va_list list;

    if (h->count + 1 >= h->room)
        return EAGAIN; /* another thread has opened files meanwhile */
    va_start(list, format);
    int size = vasprintf(&h->environment[h->count], format, list);
    va_end(list);
    h->count += size >= 0;
    return size < 0 ? ENOMEM : 0;
}

/* With its lock. */
static int hand_held(struct file *f, int fd, const struct stat *now, struct handing *handing)
{
    char hex[2 * sizeof(struct handed) + 1];
    struct handed h;

    int error = f->kind == FILE_PARTICLE ? 0 : mark_begin(f, fd);
    if (error == 0)
        error = handover_load_input(f, fd, now->st_size);
    file_lock_share(f, fd);
    if (error != 0)
        return error;
    memset(&h, 0, sizeof h);
    file_lock_give(f, &h.lock);
    h.owner = f->kind == FILE_PARTICLE ? particles_owner(f) : 0;
    h.mount = (uint32_t)(f->mount - mounts.mount);
    h.kind = f->kind;
    h.flags = f->flags;
    h.has_all = f->has_all != 0;
    h.is_removed = f->is_removed != 0;
    h.is_shared = f->is_shared != 0;
    h.st = f->st;
    h.device = now->st_dev;
    h.inode = now->st_ino;
    to_hex(&h, sizeof h, hex);
    return hand_text(handing, FD "%d=%s%s", fd, hex, f->path);
}

static int hand_file(struct file *f, int fd, void *handing)
{
    struct stat now;

    if (!is_inherited(f, fd) || !file_take(f, fd))
        return 0;
    int error = next.fstat(fd, &now) != 0 ? errno : hand_held(f, fd, &now, handing);
    lock_give(&f->lock);
    return error;
}

static int count_file(struct file *f, int fd, void *count)
{
    *(size_t *)count += is_inherited(f, fd) != 0;
    return 0;
}

int handover_has_any(void)
{
    const char *within;
    size_t count = 0;

    file_each(count_file, &count);
    return count > 0 || working_folder(&within) != NULL;
}

struct found {
    const struct stat *now;
    struct file *same;
};

/* Descriptors of one memfd are copies of one descriptor. */
static int find_same(struct file *f, int fd, void *found)
{
    struct found *o = found;
    struct stat st;

    if (next.fstat(fd, &st) == 0 && st.st_ino == o->now->st_ino && st.st_dev == o->now->st_dev)
        o->same = f;
    return 0;
}

static int take_new(const struct handed *h, const char *path, int fd)
{
    struct file *f;

    if (h->kind == FILE_PARTICLE)
        return particles_take_over(&mounts.mount[h->mount], path, h->flags, h->owner, fd);
    int error = file_create((enum file_kind)h->kind, &mounts.mount[h->mount], strdup(path), h->flags, &f);

    if (error != 0)
        return error;
    f->st = h->st;
    f->has_all = h->has_all;
    f->is_removed = h->is_removed;
    f->is_shared = h->is_shared;
    f->is_inherited = 1;
    file_lock_take(f, &h->lock);
    tree_take_over(f);
    error = file_set(f, fd);
    file_put(f);
    return error;
}

/* Take a descriptor: `text` is behind DELTAFS_POSIX_FD. */
static void take_file(const char *text)
{
    char *value;
    int fd = (int)strtol(text, &value, 10);
    struct handed h;
    struct stat now;
    struct found found = {.now = &now};

    if (*value != '=' || strlen(value + 1) < 2 * sizeof h || !of_hex(value + 1, &h, sizeof h) ||
        (h.mount >= mounts.count && (h.mount != MOUNTS_MAX || !mounts.has_logical)) || h.kind > FILE_PARTICLE ||
        next.fstat(fd, &now) != 0 || now.st_dev != h.device || now.st_ino != h.inode)
        return;
    file_each(find_same, &found);
    int error = found.same ? file_set(found.same, fd) : take_new(&h, value + 1 + 2 * sizeof h, fd);
    if (error != 0)
        posix_say("descriptor %d: %s", fd, strerror(error));
}

/* ---- The working directory ---- */

static int hand_folder(struct handing *h)
{
    const char *within;
    const struct mount *m = working_folder(&within);

    return m ? hand_text(h, FOLDER "=%zu:%s", (size_t)(m - mounts.mount), within) : 0;
}

static void take_folder(const char *value)
{
    char *path;
    size_t i = strtoul(value, &path, 10);

    if (i < mounts.count && *path == ':')
        working_folder_set(&mounts.mount[i], path + 1);
}

/* ---- This library ---- */

static void find_library(void)
{
    char folder[PATH_MAX] = "";
    Dl_info here = {.dli_fname = ""};

    dladdr((void *)&kept, &here);
    int is_whole = *here.dli_fname == '/' || !next.getcwd(folder, sizeof folder);
    int n = snprintf(kept.library, sizeof kept.library, "%s%s%s", folder, is_whole ? "" : "/", here.dli_fname);
    if (n < 0 || (size_t)n >= sizeof kept.library)
        *kept.library = '\0';
}

/* Whether LD_PRELOAD has this library. */
static int has_library(const char *list)
{
    const char *name = strrchr(kept.library, '/');

    return !name || strstr(list, name) != NULL;
}

static int hand_preload(struct handing *h, const char *given)
{
    const char *list = given ? given + strlen(PRELOAD "=") : "";

    return has_library(list) ? 0 : hand_text(h, PRELOAD "=%s%s%s", list, *list ? ":" : "", kept.library);
}

/* ---- All ---- */

/* Take what is of this library out of the environment, and keep what "deltafs run" has put there. */
static int keep_variables(void)
{
    size_t n = 0, count = 0;

    while (environ[n])
        n++;
    kept.own = calloc(n + 1, sizeof *kept.own);
    if (!kept.own)
        return ENOMEM;
    for (size_t i = 0; i < n; i++) {
        if ((strncmp(environ[i], OWN, strlen(OWN)) == 0 && !is_handed(environ[i])) || is_variable(environ[i], POOLS))
            kept.own[kept.own_count++] = strdup(environ[i]);
        if (!is_handed(environ[i]))
            environ[count++] = environ[i];
    }
    environ[count] = NULL;
    return 0;
}

void handover_take(void)
{
    find_library();
    for (char **e = environ; e && *e; e++)
        if (is_variable(*e, FOLDER))
            take_folder(strchr(*e, '=') + 1);
        else if (is_handed(*e))
            take_file(*e + strlen(FD));
    if (environ && keep_variables() != 0)
        posix_say("no memory");
}

static const char *find_variable(char *const environment[], const char *name)
{
    for (; environment && *environment; environment++)
        if (is_variable(*environment, name))
            return *environment;
    return NULL;
}

/* Whether the environment is to have no mounts. */
static int is_without_mounts(char *const environment[])
{
    const char *given = find_variable(environment, OWN);

    return given && !given[strlen(OWN "=")];
}

/* The variables of "deltafs run" that are missing. */
static int hand_own(struct handing *h, char *const environment[])
{
    int error = 0;

    for (size_t i = 0; i < kept.own_count && error == 0; i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(kept.own[i], "="), kept.own[i]);
        if (!find_variable(environment, name))
            error = hand_text(h, "%s", kept.own[i]);
    }
    return error;
}

static int hand_all(struct handing *h, char *const environment[])
{
    const char *preload = find_variable(environment, PRELOAD);
    int error = 0, is_whole = !preload || has_library(preload) || is_without_mounts(environment);

    for (; environment && *environment && error == 0; environment++)
        if (!is_handed(*environment) && (is_whole || !is_variable(*environment, PRELOAD)))
            error = hand_text(h, "%s", *environment);
    return error;
}

int handover_create(char *const environment[], char ***out)
{
    struct handing h = {.room = 3 + kept.own_count};
    int error;

    file_each(count_file, &h.room);
    for (size_t i = 0; environment && environment[i]; i++)
        h.room++;
    h.environment = calloc(h.room, sizeof *h.environment);
    if (!h.environment)
        return ENOMEM;
    error = hand_all(&h, environment);
    if (error == 0 && !is_without_mounts(environment)) {
        error = hand_preload(&h, find_variable(environment, PRELOAD));
        error = error == 0 ? hand_own(&h, environment) : error;
        error = error == 0 ? hand_folder(&h) : error;
        error = error == 0 ? file_each(hand_file, &h) : error;
    }
    if (error != 0)
        handover_free(h.environment);
    *out = error == 0 ? h.environment : NULL;
    return error;
}

void handover_free(char **environment)
{
    for (char **e = environment; e && *e; e++)
        free(*e);
    free(environment);
}
