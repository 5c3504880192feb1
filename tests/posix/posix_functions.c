/* Calls the functions of the C library that name or use a file, in the folder that is its argument, and prints what it
 * finds: the same in a mount and in another folder. */
#include "tests/posix/posix_functions.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

void show(const char *what, long long result)
{
    int error = errno;

    printf("%s: %lld", what, result);
    if (result == -1)
        printf(" %s", strerror(error));
    printf("\n");
    errno = 0;
}

/* The bytes of a file, as far as they can be printed. */
void show_file(const char *path)
{
    unsigned char bytes[200];
    struct stat st;
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);

    printf("%s: %lld bytes, \"", path, fd >= 0 && fstat(fd, &st) == 0 ? (long long)st.st_size : -1);
    for (ssize_t i = 0; i < got; i++)
        printf(bytes[i] >= ' ' && bytes[i] < 127 ? "%c" : "\\%o", bytes[i]);
    printf("\"\n");
    if (fd >= 0)
        close(fd);
    errno = 0;
}

void show_stat(const char *what, int result, const struct stat *st)
{
    show(what, result);
    if (result == 0)
        printf("  mode %o links %d size %lld mtime %lld\n", (unsigned)st->st_mode,
               S_ISDIR(st->st_mode) ? 0 : (int)st->st_nlink, S_ISDIR(st->st_mode) ? 0 : (long long)st->st_size,
               st->st_mtime < 1000000 ? (long long)st->st_mtime : -1);
}

/* A file of LARGE bytes; each number in it is its own place. */
void make_large(const char *path)
{
    static unsigned number[LARGE / sizeof(unsigned)];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    for (unsigned i = 0; i < LARGE / sizeof *number; i++)
        number[i] = i;
    if (fd < 0 || write(fd, number, LARGE) != LARGE || close(fd) != 0)
        show(path, -1);
}

/* Names that programs have that were built long ago. */
int __open(const char *path, int flags, ...);
int __open64(const char *path, int flags, ...);
int __close(int fd);
int __dup2(int from, int to);
int __fcntl(int fd, int command, ...);
ssize_t __read(int fd, void *bytes, size_t size);
ssize_t __write(int fd, const void *bytes, size_t size);
ssize_t __pread64(int fd, void *bytes, size_t size, off_t at);
ssize_t __pwrite64(int fd, const void *bytes, size_t size, off_t at);
off_t __lseek(int fd, off_t offset, int whence);
int __xmknod(int version, const char *path, mode_t mode, const dev_t *device);

static void other_names(void)
{
    char bytes[4] = "";
    const dev_t none = 0;
    int fd;

    SHOW(__xmknod(0, "node", S_IFREG | 0600, &none));
    fd = __open("node", O_RDWR);
    SHOW(__write(fd, "abc", 3));
    SHOW(__pwrite64(fd, "B", 1, 1));
    SHOW(__lseek(fd, 0, SEEK_SET));
    SHOW(__read(fd, bytes, 2));
    SHOW(__pread64(fd, bytes + 2, 1, 2));
    printf("%s\n", bytes);
    SHOW(__dup2(fd, 77));
    SHOW(__fcntl(77, F_GETFL) & O_ACCMODE);
    SHOW(__close(fd));
    SHOW(__write(77, "x", 1));
    SHOW(__close(77));
    SHOW(__close(fd = __open64("node", O_RDONLY)));
    show_file("node");
}

static void others(void)
{
    struct iovec piece = {"x", 1};
    char *(*name_in)(const char *folder, const char *prefix) = NULL;
    char *name;
    int fd = open("node", O_RDWR);

    *(void **)&name_in = dlsym(RTLD_DEFAULT, "tempnam"); /* linkers warn of it */

    SHOW(preadv(fd, &piece, 0, -1));
    SHOW(pwritev(fd, &piece, 1, -1));
    SHOW(fpathconf(fd, _PC_NAME_MAX));
    SHOW(fpathconf(fd, _PC_PIPE_BUF));
    SHOW(fpathconf(fd, -1));
    SHOW(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
    SHOW(readahead(fd, 0, 1));
    SHOW(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
    SHOW(close(fd));
    unsetenv("TMPDIR");
    name = name_in(".", "prefix");
    printf("%.7s %d\n", name, (int)strlen(name) > 7);
    free(name);
    setenv("TMPDIR", "absent", 1);
    name = name_in(".", NULL);
    printf("%.6s\n", name);
    free(name);
}

/* What a mount refuses. */
static void refused(void)
{
    SHOW(open(".", O_TMPFILE | O_RDWR, 0600));
    map(open("huge", O_RDWR), 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
}

/* What is not closed is written at the end of the program. */
static void not_closed(void)
{
    static FILE *f;

    f = fopen("not_closed", "w");
    SHOW(fputs("written at the end\n", f) >= 0);
    f = freopen("standard_error", "a", stderr);
    SHOW(fprintf(f, "an error\n"));
}

/* posix_functions FOLDER [refused] */
int main(int argc, char **argv)
{
    static void (*const parts[])(void) = {opening,       copies,       bytes_of_one,  appending,    large_file,
                                          attributes,    names,        stream_modes,  stream_calls, large_stream,
                                          opening_again, mapping,      mapping_large, mapping_huge, other_names,
                                          others,        kernel_calls, kernel_maps,   not_closed};

    setvbuf(stdout, NULL, _IOLBF, 0);
    umask(022);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (argc < 2 || *argv[1] != '/' || chdir(argv[1]) != 0) {
            perror(argc < 2 ? "the path of a folder is missing" : argv[1]);
            return 2;
        }
        if (argc > 2)
            return refused(), 0;
        parts[i]();
    }
    return 0;
}
