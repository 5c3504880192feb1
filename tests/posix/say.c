#include "tests/posix/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void say(const char *label, long long n)
{
    if (n < 0)
        printf("%s: %lld, %s\n", label, n, strerror(errno));
    else
        printf("%s: %lld\n", label, n);
}

void check(const char *what, long long result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

void make_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ssize_t n = write(fd, text, strlen(text));

    if (fd < 0 || n != (ssize_t)strlen(text) || close(fd) != 0)
        say(path, -1);
}
