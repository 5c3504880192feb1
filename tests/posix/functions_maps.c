/* Part of posix_functions: files that are mapped into memory. */
#include "tests/posix/posix_functions.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char *map(int fd, size_t size, int protection, int flags, off_t from)
{
    char *memory = mmap(NULL, size, protection, flags, fd, from);

    show("mmap", memory == MAP_FAILED ? -1 : 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void mapping(void)
{
    make_file("mapped", "0123456789");
    int fd = open("mapped", O_RDWR), reader = open("mapped", O_RDONLY), writer = open("mapped", O_WRONLY);
    char *all = map(fd, 10, PROT_READ | PROT_WRITE, MAP_SHARED, 0),
         *copy = map(reader, 10, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);
    char byte[3] = "";

    map(reader, 10, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    map(writer, 10, PROT_READ, MAP_SHARED, 0);
    map(fd, 10, PROT_READ, MAP_SHARED, 5);
    map(fd, 0, PROT_READ, MAP_SHARED, 0);
    printf("%.10s %.10s\n", all, copy);
    copy[0] = 'x';
    SHOW(close(reader));
    all[1] = 'A';
    SHOW(pread(fd, byte, 2, 0));
    printf("%s\n", byte);
    SHOW(msync(all, 10, MS_SYNC));
    show_file("mapped");
    all[2] = 'B';
    SHOW(close(fd));
    show_file("mapped");
    all[3] = 'C';
    SHOW(munmap(all, 10));
    show_file("mapped");
    SHOW(munmap(copy, 10));
    SHOW(close(writer));

    fd = open("grown", O_RDWR | O_CREAT | O_TRUNC, 0600);
    SHOW(ftruncate(fd, 20000));
    all = map(fd, 20000, PROT_READ, MAP_SHARED, 0);
    SHOW(mprotect(all, 20000, PROT_READ | PROT_WRITE));
    memset(all, 'y', 20000);
    SHOW(ftruncate(fd, 40000));
    all = mremap(all, 20000, 40000, MREMAP_MAYMOVE);
    all[39999] = 'z';
    SHOW(munmap(all, 8192));
    all[10000] = '!';
    SHOW(close(fd));
    SHOW(munmap(all + 8192, 40000 - 8192));
    show_file("grown");
    fd = open("grown", O_RDONLY);
    SHOW(pread(fd, byte, 2, 9999));
    printf("%s\n", byte);
    SHOW(pread(fd, byte, 2, 39999));
    printf("%s\n", byte);
    SHOW(close(fd));
}

void mapping_large(void)
{
    make_large("large");
    int fd = open("large", O_RDONLY);
    unsigned *number = (void *)map(fd, LARGE, PROT_READ, MAP_SHARED, 0);
    unsigned *part = (void *)map(fd, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, 4096 * 1000);
    size_t wrong = 0;

    SHOW(close(fd));
    for (unsigned i = 0; i < LARGE / sizeof *number; i++)
        wrong += number[i] != i;
    for (unsigned i = 0; i < 2048; i++)
        wrong += part[i]++ != 1024 * 1000 + i;
    SHOW(wrong);
    SHOW(munmap(number, LARGE));
    SHOW(munmap(part, 8192));
    /* More than this library keeps of a file is written while it is mapped. */
    fd = open("large", O_RDWR | O_TRUNC);
    SHOW(ftruncate(fd, 4 * LARGE));
    number = (void *)map(fd, 4 * LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
    for (unsigned i = 0; i < LARGE / sizeof *number; i++) {
        number[i] = i;
        wrong += i % 1024 == 0 && pwrite(fd, number, 16384, LARGE + i * 4 / 4096 * 12288) != 16384;
    }
    for (unsigned i = 0; i < LARGE / sizeof *number; i++)
        wrong += number[i] != i;
    SHOW(wrong);
    SHOW(munmap(number, 4 * LARGE));
    SHOW(close(fd));
    fd = open("large", O_RDONLY);
    number = (void *)map(fd, LARGE, PROT_READ, MAP_PRIVATE, 0);
    for (unsigned i = 0; i < LARGE / sizeof *number; i++)
        wrong += number[i] != i;
    SHOW(wrong);
    SHOW(close(fd));
    SHOW(unlink("large"));
}

/* A file that is too large to have all of it in memory. */
void mapping_huge(void)
{
    const off_t size = ((off_t)1 << 30) + 4096;
    int fd = open("huge", O_RDWR | O_CREAT, 0600);
    const char *part;

    SHOW(ftruncate(fd, size));
    SHOW(pwrite(fd, "the end", 7, size - 7));
    SHOW(close(fd));
    fd = open("huge", O_RDWR);
    part = map(fd, 4096, PROT_READ, MAP_SHARED, size - 4096);
    printf("%.7s\n", part + 4089);
    map(fd, 4096, PROT_READ, MAP_PRIVATE, 5);
    SHOW(close(fd));
}
