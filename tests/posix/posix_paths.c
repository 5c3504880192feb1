/* With a path: prints it without links, or why it has none. With a folder and a path: goes to the folder, renames it to
 * the path, and prints where it is then. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int resolve(const char *path)
{
    char room[PATH_MAX];
    const char *real = realpath(path, room);
    int error = errno;
    char *other = canonicalize_file_name(path);
    int is_same = real ? other && strcmp(real, other) == 0 : !other;

    puts(real ? real : strerror(error));
    free(other);
    return is_same ? 0 : 1;
}

static int rename_here(const char *folder, const char *path)
{
    char room[PATH_MAX];

    if (chdir(folder) != 0 || rename(folder, path) != 0 || !getcwd(room, sizeof room))
        return 1;
    puts(room);
    return access(".", R_OK) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return argc == 3 ? rename_here(argv[1], argv[2]) : argc == 2 ? resolve(argv[1]) : 2;
}
