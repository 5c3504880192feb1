/* Part of posix_calls: entries of folders, and folders that change while they are read. */
#include "tests/posix/posix_calls.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Print the rest of a stream, sorted. */
static void say_entries(const char *label, DIR *d)
{
    char *line[100];
    int n = 0;

    for (const struct dirent *e; n < 100 && (errno = 0, e = readdir(d));)
        if (asprintf(&line[n], "%s %d", e->d_name, e->d_type) > 0)
            n++;
    say(label, errno == 0 ? n : -1);
    qsort(line, (size_t)n, sizeof *line, compare_names);
    for (int i = 0; i < n; i++) {
        puts(line[i]);
        free(line[i]);
    }
}

static void check_inodes(const char *path)
{
    DIR *d = opendir(path);
    struct stat st;
    int differ = 0;

    for (const struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, "..") != 0)
            differ += fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != e->d_ino;
    say("inodes that differ", differ);
    say("closedir", d ? closedir(d) : -1);
}

static void seek_entries(void)
{
    DIR *d = opendir("d");
    struct dirent *e = readdir(d);
    char first[NAME_MAX + 1], second[NAME_MAX + 1];

    strcpy(first, e->d_name);
    long at = telldir(d);
    strcpy(second, readdir(d)->d_name);
    while (readdir(d))
        ;
    seekdir(d, at);
    say("seekdir", strcmp(readdir(d)->d_name, second) == 0);
    rewinddir(d);
    say("rewinddir", strcmp(readdir(d)->d_name, first) == 0);
    make_file("d/later", "");
    rewinddir(d);
    say_entries("with a new one", d);
    unlink("d/later");
    closedir(d);
}

/* What is at places that no entry has is not defined, but there is an end. */
static void seek_wildly(void)
{
    char bytes[4096];
    int fd = open("d", O_RDONLY | O_DIRECTORY), entries = 0;
    DIR *d = opendir("d");

    readdir(d);
    for (long at = 1; at < 200; at++) {
        seekdir(d, at);
        while (entries < 100000 && readdir(d))
            entries++;
        lseek(fd, at, SEEK_SET);
        while (entries < 100000 && getdents64(fd, bytes, sizeof bytes) > 0)
            entries++;
    }
    say("entries at wild places", entries < 100000);
    close(fd);
    closedir(d);
}

/* Remove all that is listed. */
static void remove_entries(void)
{
    char path[PATH_MAX];
    int removed = 0;

    mkdir("full", 0755);
    for (int i = 0; i < 300; i++) {
        snprintf(path, sizeof path, "full/%d", i);
        make_file(path, "x");
    }
    DIR *d = opendir("full");
    for (const struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "full/%s", e->d_name);
        removed += *e->d_name != '.' && unlink(path) == 0;
    }
    say("removed", removed);
    say("closedir", closedir(d));
    say("rmdir", rmdir("full"));
}

static void read_removed(void)
{
    mkdir("gone", 0755);
    DIR *d = opendir("gone");
    rmdir("gone");
    say("readdir of a removed folder", readdir(d) != NULL && readdir(d) != NULL);
    rewinddir(d);
    mkdir("gone", 0755);
    make_file("gone/x", "");
    say("readdir when there is another of that name", readdir(d) != NULL && readdir(d) != NULL);
    closedir(d);
}

static int no_dots(const struct dirent *e)
{
    return *e->d_name != '.';
}

static void say_scan(const char *label, int n, struct dirent ***found)
{
    struct dirent **e = n < 0 ? NULL : *found;

    say(label, n);
    for (int i = 0; i < n; i++) {
        puts(e[i]->d_name);
        free(e[i]);
    }
    free(e);
}

static void scan_folders(void)
{
    struct dirent **e;
    int fd = open(".", O_RDONLY | O_DIRECTORY);

    say_scan("scandir", scandir("d", &e, no_dots, alphasort), &e);
    say_scan("scandirat", scandirat(fd, "d", &e, NULL, alphasort), &e);
    say_scan("scandir of none", scandir("none", &e, NULL, alphasort), &e);
    say_scan("scandir of a file", scandir("d/a", &e, NULL, alphasort), &e);
    close(fd);
}

static void read_entries(void)
{
    char bytes[1024];
    int fd = open("d", O_RDONLY | O_DIRECTORY), entries = 0;
    ssize_t n, small = getdents64(fd, bytes, 4);

    say("getdents64 without room", small);
    while ((n = getdents64(fd, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < n; entries++)
            at += ((struct dirent *)(void *)(bytes + at))->d_reclen;
    say("getdents64", entries);
    lseek(fd, 0, SEEK_SET);
    say("getdents64 again", getdents64(fd, bytes, sizeof bytes) > 0);
    close(fd);
    fd = open("d/a", O_RDONLY);
    say("getdents64 of a file", getdents64(fd, bytes, sizeof bytes));
    say_pointer("fdopendir of a file", fdopendir(fd));
    close(fd);
}

void check_folders(void)
{
    mkdir("d", 0755);
    mkdir("d/sub", 0755);
    make_file("d/a", "1");
    make_file("d/b", "22");
    say("symlink", symlink("a", "d/link"));
    DIR *d = opendir("d");
    say_entries("opendir", d);
    say("closedir", closedir(d));
    int fd = open("d", O_RDONLY | O_DIRECTORY);
    d = fdopendir(fd);
    say("dirfd", dirfd(d) == fd);
    say_entries("fdopendir", d);
    say("closedir", closedir(d));
    say("the descriptor", fcntl(fd, F_GETFD));
    say_pointer("opendir of none", opendir("none"));
    say_pointer("opendir of a file", opendir("d/a"));
    say_pointer("opendir of nothing", opendir(""));
    say_pointer("fdopendir of none", fdopendir(-1));
    check_inodes("d");
    seek_entries();
    seek_wildly();
    remove_entries();
    read_removed();
    scan_folders();
    read_entries();
}
