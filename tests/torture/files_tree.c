#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "files.h"

#define PIECE 65536

void files_die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs("\n", stderr);
    _exit(99);
}

char *files_join(char path[PATH_MAX], const char *folder, const char *name)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
        files_die("%s: a name is too long", folder);
    return path;
}

/* The names in a folder, sorted; *n of them, to be freed. */
static struct dirent **names(const char *folder, int *n)
{
    struct dirent **entry;

    *n = scandir(folder, &entry, NULL, alphasort);
    if (*n < 0)
        files_die("%s: %m", folder);
    return entry;
}

static int is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void list_below(const char *root, const char *below, struct files_entries *out)
{
    char folder[PATH_MAX];
    int n;

    struct dirent **entry = names(files_join(folder, root, below), &n);
    for (int i = 0; i < n; i++) {
        struct stat st;
        struct files_entry *e = &out->entry[out->count];
        char path[PATH_MAX];
        if (!is_dots(entry[i]->d_name) && out->count < sizeof out->entry / sizeof out->entry[0]) {
            if (*below)
                files_join(e->path, below, entry[i]->d_name);
            else
                snprintf(e->path, sizeof e->path, "%s", entry[i]->d_name);
            if (lstat(files_join(path, root, e->path), &st) != 0)
                files_die("%s: %m", path);
            e->kind = S_ISDIR(st.st_mode) ? 'd' : S_ISLNK(st.st_mode) ? 'l' : 'f';
            out->count++;
            if (e->kind == 'd')
                list_below(root, e->path, out);
        }
        free(entry[i]);
    }
    free(entry);
}

void files_list(const char *root, struct files_entries *out)
{
    out->count = 0;
    list_below(root, "", out);
}

/* Call `fn` for the file's bytes, but for its holes. */
static void each_piece(const char *path, uint64_t size, void (*fn)(void *arg, const uint8_t *bytes, size_t n, off_t at),
                       void *arg)
{
    static uint8_t bytes[PIECE];
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        files_die("%s: %m", path);
    for (off_t at = 0, end; (at = lseek(fd, at, SEEK_DATA)) >= 0 && (uint64_t)at < size;) {
        end = lseek(fd, at, SEEK_HOLE);
        while (at < end) {
            ssize_t n = pread(fd, bytes, end - at < PIECE ? (size_t)(end - at) : PIECE, at);
            if (n <= 0)
                files_die("%s: %m", path);
            fn(arg, bytes, (size_t)n, at);
            at += n;
        }
    }
    close(fd);
}

static void copy_piece(void *arg, const uint8_t *bytes, size_t n, off_t at)
{
    if (pwrite(*(int *)arg, bytes, n, at) != (ssize_t)n)
        files_die("a copy: %m");
}

static void copy_file(const char *from, const char *to, const struct stat *st)
{
    const struct timespec times[2] = {st->st_atim, st->st_mtim};
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL, 0666);

    if (fd < 0)
        files_die("%s: %m", to);
    each_piece(from, (uint64_t)st->st_size, copy_piece, &fd);
    if (ftruncate(fd, st->st_size) != 0 || futimens(fd, times) != 0)
        files_die("%s: %m", to);
    close(fd);
}

void files_copy(const char *from, const char *to)
{
    char target[PATH_MAX], a[PATH_MAX], b[PATH_MAX];
    struct stat st;
    int n;

    if (lstat(from, &st) != 0)
        files_die("%s: %m", from);
    if (S_ISLNK(st.st_mode)) {
        ssize_t length = readlink(from, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        if (symlink(target, to) != 0)
            files_die("%s: %m", to);
        return;
    }
    if (!S_ISDIR(st.st_mode)) {
        copy_file(from, to, &st);
        return;
    }
    if (mkdir(to, 0777) != 0)
        files_die("%s: %m", to);
    struct dirent **entry = names(from, &n);
    for (int i = 0; i < n; i++) {
        if (!is_dots(entry[i]->d_name))
            files_copy(files_join(a, from, entry[i]->d_name), files_join(b, to, entry[i]->d_name));
        free(entry[i]);
    }
    free(entry);
}

/* The first bytes of a file, which is small; -1 if it cannot be read. */
static ssize_t read_small(const char *path, uint8_t bytes[PIECE])
{
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, bytes, PIECE) : -1;

    if (fd >= 0)
        close(fd);
    return n;
}

int files_same(const char *a, const char *b)
{
    static uint8_t bytes[2][PIECE];
    ssize_t n = read_small(a, bytes[0]), m = read_small(b, bytes[1]);

    return n == m && (n <= 0 || memcmp(bytes[0], bytes[1], (size_t)n) == 0);
}

static void sum_piece(void *arg, const uint8_t *bytes, size_t n, off_t at)
{
    uint64_t *sum = arg;

    /* A hole and zeros are the same. */
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            *sum += ((uint64_t)at + i + 1) * 0x9e3779b97f4a7c15u * bytes[i] ^ *sum >> 31;
}

uint64_t files_sum(const char *root)
{
    struct files_entries *all = malloc(sizeof *all);
    uint64_t sum = 1;
    struct stat st;

    if (!all)
        files_die("no memory");
    files_list(root, all);
    for (size_t i = 0; i < all->count; i++) {
        char path[PATH_MAX], target[PATH_MAX] = "";
        if (lstat(files_join(path, root, all->entry[i].path), &st) != 0 ||
            (S_ISLNK(st.st_mode) && readlink(path, target, sizeof target - 1) < 0))
            files_die("%s: %m", path);
        sum_piece(&sum, (const uint8_t *)all->entry[i].path, strlen(all->entry[i].path), (off_t)i);
        sum_piece(&sum, (const uint8_t *)target, strlen(target), (off_t)i);
        sum = sum * 31 + (S_ISREG(st.st_mode) ? (uint64_t)st.st_size : st.st_mode & S_IFMT);
        if (S_ISREG(st.st_mode))
            each_piece(path, (uint64_t)st.st_size, sum_piece, &sum);
    }
    free(all);
    return sum;
}
