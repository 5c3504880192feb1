/* Prints the path without links of its argument, or why there is none. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    char room[PATH_MAX];
    int is_same = 0;

    if (argc != 2)
        return 2;
    errno = 0;
    const char *path = realpath(argv[1], room);
    int error = errno;
    char *other = canonicalize_file_name(argv[1]);
    is_same = path ? other && strcmp(path, other) == 0 : !other;
    puts(path ? path : strerror(error));
    free(other);
    return is_same ? 0 : 1;
}
