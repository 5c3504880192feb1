/* Part of posix_functions: opening files, and the bytes in them. */
#include "tests/posix/posix_functions.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- Opening ---- */

void opening(void)
{
    struct stat st;
    int fd;

    SHOW(open("absent", O_RDONLY));
    SHOW(open("absent/below", O_RDWR | O_CREAT, 0600));
    SHOW(close(fd = open("file", O_RDWR | O_CREAT | O_EXCL, 0640)));
    SHOW(open("file", O_RDWR | O_CREAT | O_EXCL, 0640));
    show_stat("stat", stat("file", &st), &st);
    SHOW(open("file", O_RDONLY | O_DIRECTORY));
    SHOW(open("file/below", O_RDONLY));
    SHOW(open("file/", O_RDONLY));
    SHOW(open(".", O_WRONLY));
    SHOW(open("", O_RDONLY));
    SHOW(close(fd = creat("created", 0600)));
    SHOW(close(fd = openat(AT_FDCWD, "file", O_RDONLY)));
    int folder = open(".", O_RDONLY | O_DIRECTORY);
    SHOW(close(fd = openat(folder, "file", O_RDONLY)));
    SHOW(openat(folder, "absent", O_RDONLY));
    fd = open("file", O_RDONLY);
    SHOW(openat(fd, "x", O_RDONLY));
    SHOW(write(fd, "x", 1));
    SHOW(ftruncate(fd, 1));
    SHOW(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    SHOW(fcntl(fd, F_GETFD));
    SHOW(close(fd));
    SHOW(close(fd));
    SHOW(read(fd, &st, 1));
    SHOW(close(folder));
    fd = open("file", O_WRONLY | O_CLOEXEC);
    SHOW(fcntl(fd, F_GETFD));
    SHOW(read(fd, &st, 1));
    SHOW(close(fd));
    SHOW(fcntl(fd, F_GETFL));
    SHOW(symlink("file", "link"));
    SHOW(open("link", O_RDONLY | O_NOFOLLOW));
    SHOW(close(open("link", O_RDONLY)));
    SHOW(close(open("link", O_RDWR | O_CREAT, 0600)));
    SHOW(symlink("loop", "loop"));
    SHOW(open("loop", O_RDONLY));
}

void copies(void)
{
    char bytes[8] = "";
    int fd = open("copied", O_RDWR | O_CREAT | O_TRUNC, 0600), other = dup(fd), third = fcntl(fd, F_DUPFD, 100);

    SHOW(third >= 100);
    SHOW(write(fd, "one", 3));
    SHOW(write(other, "two", 3));
    SHOW(write(third, "three", 5));
    SHOW(lseek(fd, 1, SEEK_SET));
    SHOW(read(third, bytes, 5));
    printf("%s\n", bytes);
    SHOW(dup2(fd, other) == other);
    SHOW(dup3(fd, fd, 0));
    SHOW(dup2(fd, fd) == fd);
    SHOW(dup2(-1, fd));
    SHOW(dup3(fd, other, O_CLOEXEC) == other);
    SHOW(fcntl(other, F_GETFD));
    SHOW(close(fd));
    SHOW(write(other, "X", 1));
    SHOW(close(other));
    SHOW(close_range((unsigned)third, (unsigned)third, 0));
    SHOW(write(third, "X", 1));
    show_file("copied");
}

/* ---- Bytes ---- */

void bytes_of_one(void)
{
    struct iovec piece[2] = {{"ab", 2}, {"cde", 3}};
    char one[4] = "", two[16] = "";
    struct iovec room[2] = {{one, 3}, {two, 15}};
    int fd = open("bytes", O_RDWR | O_CREAT | O_TRUNC, 0600);

    SHOW(writev(fd, piece, 2));
    SHOW(pwrite(fd, "ZZ", 2, 10));
    SHOW(pwrite(fd, "ZZ", 2, -1));
    SHOW(pwritev(fd, piece, 2, 20));
    SHOW(lseek(fd, 0, SEEK_CUR));
    SHOW(preadv(fd, room, 2, 0));
    printf("%s %s\n", one, two);
    SHOW(readv(fd, room, 2));
    SHOW(pread(fd, two, 5, 20));
    SHOW(pread(fd, two, 5, 100));
    SHOW(lseek(fd, -30, SEEK_CUR));
    SHOW(lseek(fd, -5, SEEK_END));
    SHOW(read(fd, two, 15));
    SHOW(read(fd, two, 15));
    SHOW(lseek(fd, 100, SEEK_SET));
    SHOW(write(fd, "end", 3));
    SHOW(ftruncate(fd, 12));
    show_file("bytes");
    SHOW(ftruncate(fd, 14));
    SHOW(ftruncate(fd, -1));
    SHOW(lseek(fd, 0, SEEK_END));
    SHOW(fsync(fd));
    SHOW(fdatasync(fd));
    SHOW(close(fd));
    show_file("bytes");
    SHOW(truncate("bytes", 3));
    SHOW(truncate("absent", 3));
    SHOW(truncate(".", 3));
    show_file("bytes");
}

void appending(void)
{
    int fd;

    make_file("added", "0123");
    fd = open("added", O_RDWR | O_APPEND);
    SHOW(write(fd, "45", 2));
    SHOW(lseek(fd, 0, SEEK_SET));
    SHOW(write(fd, "67", 2));
    SHOW(pwrite(fd, "89", 2, 0));
    SHOW(fcntl(fd, F_GETFL) & O_APPEND);
    SHOW(fcntl(fd, F_SETFL, 0));
    SHOW(pwrite(fd, "X", 1, 0));
    SHOW(fcntl(fd, F_SETFL, O_APPEND));
    SHOW(write(fd, "Y", 1));
    SHOW(close(fd));
    show_file("added");
    fd = open("added", O_WRONLY);
    SHOW(fcntl(fd, F_SETFL, O_APPEND));
    SHOW(write(fd, "Z", 1));
    SHOW(close(fd));
    show_file("added");
}

void large_file(void)
{
    unsigned number[3] = {0};
    int fd;

    make_large("large");
    fd = open("large", O_RDWR);
    SHOW(pread(fd, number, sizeof number, 5000000));
    printf("%u %u %u\n", number[0], number[1], number[2]);
    SHOW(pwrite(fd, "changed", 7, 5000000));
    SHOW(pread(fd, number, sizeof number, 5000000));
    printf("%.7s %u\n", (char *)number, number[2]);
    SHOW(lseek(fd, -4, SEEK_END));
    SHOW(read(fd, number, sizeof number));
    printf("%u\n", number[0]);
    SHOW(lseek(fd, 10, SEEK_DATA));
    SHOW(lseek(fd, 10, SEEK_HOLE));
    SHOW(lseek(fd, LARGE, SEEK_DATA));
    SHOW(ftruncate(fd, 5500000));
    SHOW(ftruncate(fd, LARGE));
    SHOW(pread(fd, number, sizeof number, 5600000));
    printf("%u\n", number[0]);
    SHOW(close(fd));
    fd = open("large", O_RDONLY);
    SHOW(pread(fd, number, sizeof number, 5000000));
    printf("%.7s %u\n", (char *)number, number[2]);
    SHOW(unlink("large"));
    SHOW(pread(fd, number, sizeof number, 4000000));
    printf("%u\n", number[0]);
    SHOW(close(fd));
}
