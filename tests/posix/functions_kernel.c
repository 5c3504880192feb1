/* Part of posix_functions: the same calls by syscall(), as some programs and libraries do them. */
#include "tests/posix/posix_functions.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void copying(int from)
{
    int fd = open("kernel_copy", O_RDWR | O_CREAT | O_TRUNC, 0644);
    off_t at = 2;

    SHOW(syscall(SYS_copy_file_range, from, &at, fd, NULL, 3, 0));
    SHOW(syscall(SYS_sendfile, fd, from, &at, 2));
    printf("%lld\n", (long long)at);
    SHOW(close(fd));
    show_file("kernel_copy");
}

void kernel_calls(void)
{
    char bytes[8] = "";
    struct iovec piece = {"vector", 6}, room = {bytes, 4};
    struct stat st;
    int fd = open("kernel", O_RDWR | O_CREAT | O_TRUNC, 0644), other;

    SHOW(syscall(SYS_write, fd, "0123456789", 10));
    SHOW(syscall(SYS_pwrite64, fd, "AB", 2, 3));
    SHOW(syscall(SYS_writev, fd, &piece, 1));
    SHOW(syscall(SYS_pwritev, fd, &piece, 1, 20, 0));
    SHOW(syscall(SYS_ftruncate, fd, 24));
    SHOW(syscall(SYS_lseek, fd, 1, SEEK_SET));
    SHOW(syscall(SYS_read, fd, bytes, 4));
    SHOW(syscall(SYS_pread64, fd, bytes + 4, 2, 10));
    SHOW(syscall(SYS_preadv, fd, &room, 1, 20, 0));
    printf("%s\n", bytes);
    SHOW(syscall(SYS_fstat, fd, &st));
    printf("%lld\n", (long long)st.st_size);
    SHOW(syscall(SYS_newfstatat, AT_FDCWD, "kernel", &st, 0));
    printf("%o\n", (unsigned)st.st_mode);
    SHOW(syscall(SYS_fsync, fd));
    SHOW(syscall(SYS_fchmod, fd, 0600));
    SHOW(syscall(SYS_fstat, fd, &st));
    printf("%o\n", (unsigned)st.st_mode);
    SHOW(syscall(SYS_flock, fd, LOCK_EX));
    other = open("kernel", O_RDONLY);
    SHOW(flock(other, LOCK_SH | LOCK_NB));
    SHOW(close(other));
    other = (int)syscall(SYS_dup, fd);
    SHOW(close(fd));
    SHOW(syscall(SYS_write, other, "dup", 3));
    SHOW(syscall(SYS_fcntl, other, F_GETFL) & O_ACCMODE);
    copying(other);
    SHOW(close(other));
    show_file("kernel");
}

void kernel_maps(void)
{
    make_file("kernel_map", "0123456789");
    int fd = open("kernel_map", O_RDWR);
    char *all = (char *)syscall(SYS_mmap, NULL, 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    SHOW(close(fd));
    all[0] = 'A';
    SHOW(syscall(SYS_msync, all, 10, MS_SYNC));
    show_file("kernel_map");
    all[1] = 'B';
    SHOW(syscall(SYS_munmap, all, 10));
    show_file("kernel_map");
}
