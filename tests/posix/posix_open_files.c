/* Has files open that are changed by their paths, or by other processes, in the folder FOLDER, and prints what it sees.
 *
 *     posix_open_files FOLDER PART
 *
 * PART is paths, links, threads, locks, names, replaced, removed, lost or full. In a mount, all but the last two print
 * what they print in an ordinary folder. */
#include "tests/posix/say.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RENAMES 100

/* The bytes of a descriptor; zeros are dots. */
static void say_bytes(const char *label, int fd)
{
    char bytes[100] = "";
    struct stat st;
    ssize_t n = pread(fd, bytes, sizeof bytes - 1, 0);

    for (ssize_t i = 0; i < n; i++)
        bytes[i] = (char)(bytes[i] ? bytes[i] : '.');
    if (n < 0 || fstat(fd, &st) != 0)
        say(label, -1);
    else
        printf("%s: '%s', size %lld, mode %o\n", label, bytes, (long long)st.st_size, (unsigned)st.st_mode & 07777);
}

static void say_file(const char *path)
{
    int fd = open(path, O_RDONLY);

    say_bytes(path, fd);
    close(fd);
}

/* ---- By paths ---- */

static void change_size(void)
{
    int fd = open("size", O_RDWR | O_CREAT, 0644), add = open("size", O_WRONLY | O_APPEND), read_only;

    say("write", write(fd, "0123456789", 10));
    read_only = open("size", O_RDONLY);
    say("truncate", truncate("size", 4));
    say_bytes("shorter", fd);
    say_bytes("shorter, read only", read_only);
    say("append", write(add, "++", 2));
    close(add);
    say("write", write(fd, "ab", 2));
    say("truncate", truncate("size", 20));
    say_bytes("longer", fd);
    add = open("size", O_WRONLY | O_TRUNC);
    say_bytes("opened with O_TRUNC", fd);
    say("write", write(add, "new", 3));
    close(add);
    close(fd);
    close(read_only);
    say_file("size");
}

static void change_attributes(void)
{
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000000}};
    int fd = open("attributes", O_RDWR | O_CREAT, 0644), only_path = open("attributes", O_PATH);
    int above = open("folder", O_RDONLY | O_DIRECTORY);
    struct stat st;

    say("write", write(fd, "text", 4));
    say("chmod", chmod("attributes", 0600) | chmod("folder", 0700));
    say_bytes("mode", fd);
    say("mode of O_PATH", fstat(only_path, &st) == 0 ? (long long)st.st_mode : -1);
    say("mode of a folder", fstat(above, &st) == 0 ? (long long)st.st_mode : -1);
    say("write", write(fd, "more", 4));
    say("utimensat", utimensat(AT_FDCWD, "attributes", times, 0));
    say("time of the descriptor", fstat(fd, &st) == 0 ? st.st_mtime : -1);
    close(fd);
    close(only_path);
    close(above);
    say("time", stat("attributes", &st) == 0 ? st.st_mtime : -1);
}

static void paths(void)
{
    mkdir("folder", 0755);
    change_size();
    change_attributes();
}

/* ---- Links and names ---- */

/* Open a file by one path, change a name, and add to it. */
static void add_renamed(const char *path, const char *from, const char *to)
{
    int fd = open(path, O_RDWR | O_APPEND);

    say(path, write(fd, "1", 1));
    say(from, to ? rename(from, to) : unlink(from));
    say("write", write(fd, "2", 1));
    say("close", close(fd));
}

static void links(void)
{
    mkdir("real", 0755);
    close(open("real/file", O_WRONLY | O_CREAT, 0644));
    close(open("new", O_WRONLY | O_CREAT, 0644));
    say("symlink", symlink("real", "to_folder") | symlink("real/file", "to_file"));
    add_renamed("to_file", "real/file", "real/second");
    add_renamed("to_folder/second", "real", "other");
    say("symlink", symlink("other", "way") | symlink("way/second", "short") | symlink("way/second", "long"));
    add_renamed("short", "short", NULL);
    add_renamed("long", "new", "long");
    add_renamed("other/../other/second", "other/second", "third");
    say("rename", rename("third", "other/fourth"));
    add_renamed("way/fourth", "way/fourth", "fifth");
    say_file("fifth");
}

/* One thread writes to a file, and another one renames it. */
static atomic_int is_writing = 1;

static void *rename_often(void *arg)
{
    static const char *const path[] = {"one/file", "two/file"};
    int i = 0;

    (void)arg;
    for (; atomic_load(&is_writing); i = !i)
        if (rename(path[i], path[!i]) != 0)
            say("rename", -1);
    if (i == 1)
        rename(path[1], path[0]);
    return NULL;
}

static void threads(void)
{
    pthread_t thread;
    int failed = 0;

    mkdir("one", 0755);
    mkdir("two", 0755);
    int fd = open("one/file", O_RDWR | O_CREAT, 0644);
    pthread_create(&thread, NULL, rename_often, NULL);
    for (int i = 0; i < 500; i++)
        failed += write(fd, "0123456789" + i % 10, 1) != 1 || fchmod(fd, 0644) != 0;
    atomic_store(&is_writing, 0);
    pthread_join(thread, NULL);
    say("failed", failed);
    say("close", close(fd));
    struct stat st;
    say("size", stat("one/file", &st) == 0 ? st.st_size : -1);
}

/* ---- Locks ---- */

#define TIMES 200

/* Add 1 to the number in a file, many times. */
static int count_up(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT, 0644);

    for (int i = 0; i < TIMES; i++) {
        char text[20] = "";
        if (flock(fd, LOCK_EX) != 0 || pread(fd, text, sizeof text - 1, 0) < 0)
            return 1;
        int n = snprintf(text, sizeof text, "%d", atoi(text) + 1);
        if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n || flock(fd, LOCK_UN) != 0)
            return 1;
    }
    return close(fd);
}

static void wait_for(pid_t child, const char *label)
{
    int status = -1;

    if (waitpid(child, &status, 0) < 0 || status != 0)
        printf("%s: status %d\n", label, status);
}

/* Add lines, each with the number of those before it. The file is shared with a process that does nothing. */
static int add_lines(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND, 0644);
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    wait_for(child, path);
    for (int i = 0; i < TIMES / 10; i++) {
        char line[20];
        if (flock(fd, LOCK_EX) != 0)
            return 1;
        int n = snprintf(line, sizeof line, "%03d\n", (int)lseek(fd, 0, SEEK_END) / 4);
        if (write(fd, line, (size_t)n) != n || flock(fd, LOCK_UN) != 0)
            return 1;
    }
    return close(fd);
}

static void in_two_processes(int (*fn)(const char *path), const char *path)
{
    pid_t child[2];

    for (int i = 0; i < 2; i++) {
        child[i] = fork();
        if (child[i] == 0)
            exit(fn(path));
    }
    for (int i = 0; i < 2; i++)
        wait_for(child[i], path);
}

static void locks(void)
{
    char line[20];
    int number, lines = 0, wrong = 0;

    in_two_processes(count_up, "count");
    say_file("count");
    in_two_processes(add_lines, "lines");
    FILE *f = fopen("lines", "r");
    for (; f && fgets(line, sizeof line, f); lines++)
        wrong += sscanf(line, "%d", &number) != 1 || number != lines;
    if (f)
        fclose(f);
    say("lines", lines);
    say("wrong lines", wrong);
}

/* Two children, and this process, write by different copies of one descriptor, which was used before. */
static void copies(void)
{
    int fd = open("copies", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644), of[3] = {fd, dup(fd), dup(fd)};
    pid_t child[2];

    say("before", write(of[2], "123", 3));
    for (int i = 0; i < 2; i++) {
        child[i] = fork();
        for (int n = 0; child[i] == 0 && n < TIMES; n++)
            if (write(of[i], "child\n", 6) != 6)
                _exit(1);
        if (child[i] == 0)
            _exit(0);
    }
    for (int n = 0; n < TIMES; n++)
        if (write(of[2], "parent", 6) != 6)
            say("parent", -1);
    for (int i = 0; i < 2; i++)
        wait_for(child[i], "copies");
    for (int i = 0; i < 3; i++) {
        say("offset", lseek(of[i], 0, SEEK_CUR));
        say("flags", fcntl(of[i], F_GETFD));
        close(of[i]);
    }
    struct stat st;
    say("size", stat("copies", &st) == 0 ? st.st_size : -1);
}

/* ---- Replaced by other processes ---- */

#define LARGE ((size_t)5 << 20)

static void make_large(const char *path, char byte)
{
    char *bytes = malloc(LARGE);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    memset(bytes, byte, LARGE);
    say(path, write(fd, bytes, LARGE));
    close(fd);
    free(bytes);
}

/* How many bytes of a file from an offset on are this one. */
static void say_large(const char *label, int fd, off_t from, char byte)
{
    char *bytes = malloc(LARGE);
    ssize_t n = pread(fd, bytes, LARGE, from), same = 0;

    for (ssize_t i = 0; i < n; i++)
        same += bytes[i] == byte;
    say(label, n < 0 ? -1 : same);
    free(bytes);
}

static void rename_elsewhere(const char *from, const char *to)
{
    pid_t child = fork();

    if (child == 0)
        _exit(rename(from, to) != 0);
    wait_for(child, to);
}

static void replaced(void)
{
    struct stat st;

    make_large("large", 'a');
    make_large("b", 'b');
    make_large("c", 'c');
    int fd = open("large", O_RDONLY);
    say("one", pread(fd, &(char){0}, 1, 0));
    rename_elsewhere("b", "large");
    say("stat", stat("large", &st));
    say_large("the old one", fd, 0, 'a');
    close(fd);
    fd = open("large", O_RDONLY);
    rename_elsewhere("c", "large");
    say("stat", stat("b", &st));
    say_large("one that was not read before", fd, 0, 'b');
    close(fd);
    fd = open("large", O_RDONLY);
    say_large("the new one", fd, 0, 'c');
    close(fd);
}

/* Two processes write to one file. The other one began before the file was opened: no descriptor is shared. */
static void changed(void)
{
    int begin[2], fd = -1;
    char bytes[3] = "";

    make_large("changed", 'a');
    if (pipe(begin) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        if (read(begin[0], bytes, 1) == 1)
            fd = open("changed", O_WRONLY);
        _exit(pwrite(fd, "y", 1, 1) != 1 || close(fd) != 0);
    }
    fd = open("changed", O_RDWR);
    say("one", pread(fd, bytes, 1, 0));
    say("go on", write(begin[1], "", 1));
    wait_for(child, "changed");
    say("write", pwrite(fd, "x", 1, 0));
    say("fsync", fsync(fd));
    say("read", pread(fd, bytes, 2, 0));
    printf("%s\n", bytes);
    close(fd);
}

/* This process has not written to the namespace when it opens the file. */
static void lost(void)
{
    int fd = open("large", O_RDONLY);

    rename_elsewhere("b", "large");
    close(open("new", O_WRONLY | O_CREAT, 0644));
    say_large("large", fd, 0, 'c');
    close(fd);
}

/* Two processes rename files to the same names, which must not be there: each name is got by one of them. */
static void rename_both(void)
{
    char from[32], to[32];
    int got = 0;

    for (int i = 0; i < 2 * RENAMES; i++) {
        snprintf(from, sizeof from, "from%d", i);
        close(open(from, O_WRONLY | O_CREAT, 0644));
    }
    pid_t child = fork();
    for (int i = 0; i < RENAMES; i++) {
        snprintf(from, sizeof from, "from%d", child == 0 ? RENAMES + i : i);
        snprintf(to, sizeof to, "to%d", i);
        got += renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0;
    }
    if (child == 0)
        exit(got);
    int status = 0;
    waitpid(child, &status, 0);
    say("names", got + WEXITSTATUS(status));
}

/* A child ends when its parent has written to a file and removed it, or moved it to another folder. */
static void end_behind(const char *path, const char *to)
{
    int fd = open(path, O_RDWR | O_CREAT, 0644), ends[2] = {-1, -1};

    say("pipe", pipe(ends));
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &(char){0}, 1) != 0);
    }
    say("write", write(fd, "text", 4));
    say(path, to ? rename(path, to) : unlink(path));
    close(ends[1]);
    say("waitpid", waitpid(child, NULL, 0) == child);
    say_bytes(path, fd);
    say("close", close(fd));
}

static void removed(void)
{
    mkdir("folder", 0755);
    end_behind("removed", NULL);
    end_behind("moved", "folder/moved");
    say_file("folder/moved");
}

/* Bytes at the end of a file that has no room for all of them. */
static void full(void)
{
    const off_t most = (off_t)1 << 40, room = 300 << 10;
    const size_t size = 400 << 10;
    char *bytes = calloc(1, size);
    struct stat st;

    close(open("full", O_WRONLY | O_CREAT, 0644));
    say("truncate", truncate("full", most - room));
    int fd = open("full", O_WRONLY | O_APPEND);
    say("write", write(fd, bytes, size));
    say("close", close(fd));
    say("room", stat("full", &st) == 0 ? most - st.st_size : -1);
    free(bytes);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3 || chdir(argv[1]) != 0)
        return 99;
    if (strcmp(argv[2], "paths") == 0)
        paths();
    else if (strcmp(argv[2], "links") == 0)
        links();
    else if (strcmp(argv[2], "threads") == 0)
        threads();
    else if (strcmp(argv[2], "locks") == 0)
        locks();
    else if (strcmp(argv[2], "copies") == 0)
        copies();
    else if (strcmp(argv[2], "replaced") == 0)
        replaced(), changed();
    else if (strcmp(argv[2], "lost") == 0)
        lost();
    else if (strcmp(argv[2], "names") == 0)
        rename_both();
    else if (strcmp(argv[2], "removed") == 0)
        removed();
    else if (strcmp(argv[2], "full") == 0)
        full();
    return 0;
}
