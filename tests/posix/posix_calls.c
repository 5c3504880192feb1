/* Calls functions of the C library that name or use files, in the folder FOLDER, and prints what they give. It knows
 * nothing of DeltaFS: what it prints in a mount must be what it prints in an ordinary folder.
 *
 *     posix_calls FOLDER PART...
 *
 * PART is folders, walks, paths, streams, maps, other, or refused; the last one is what mounts refuse. */
#include "tests/posix/posix_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *folder;

/* A pointer: whether it is there. */
void say_pointer(const char *label, const void *p)
{
    say(label, p ? 0 : -1);
}

void say_text(const char *label, const char *text)
{
    if (text && strncmp(text, folder, strlen(folder)) == 0)
        printf("%s: FOLDER%s\n", label, text + strlen(folder));
    else
        printf("%s: %s\n", label, text ? text : strerror(errno));
}

void say_bytes(const char *label, const char *path, off_t at, size_t size)
{
    char text[64] = "";
    int fd = open(path, O_RDONLY);
    ssize_t n = pread(fd, text, size, at);

    printf("%s: %zd %s\n", label, n, text);
    close(fd);
}

int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    static const struct part {
        const char *name;
        void (*check)(void);
    } parts[] = {{"folders", check_folders}, {"walks", check_walks}, {"paths", check_paths},
                 {"streams", check_streams}, {"maps", check_maps},   {"other", check_other},
                 {"refused", check_refused}};

    if (argc < 3 || chdir(argv[1]) != 0) {
        fprintf(stderr, "usage: posix_calls FOLDER PART...\n");
        return 2;
    }
    folder = argv[1];
    for (int i = 2; i < argc; i++)
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            if (strcmp(argv[i], parts[k].name) == 0) {
                printf("---- %s\n", argv[i]);
                parts[k].check();
            }
    return 0;
}
