/* The command line of `deltafs`: an argument a line. The directories n and b are there, in memory: one with keys that
 * are numbers, and one with keys of bytes. Built with the command's main as deltafs_main. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fuzz_target.h"
#include "mem_io.h"
#include "tools/text.h"
#include <deltafs/deltafs.h>

#define ARGUMENTS_MAX 16

int deltafs_main(int argc, char **argv);

static void make(const char *path, const char *const *options, int is_bytes)
{
    deltafs_options *o;
    deltafs_dir *d;

    FUZZ_CHECK(deltafs_options_create(&o) == DELTAFS_OK);
    for (; *options; options += 2)
        FUZZ_CHECK(deltafs_options_set(o, options[0], options[1]) == DELTAFS_OK);
    FUZZ_CHECK(deltafs_create(path, o, &d) == DELTAFS_OK);
    deltafs_options_destroy(o);
    for (uint64_t i = 0; i < 20; i++) {
        const uint8_t value[24] = {(uint8_t)i, 'a', '"', '\n', 0x7f, 0xff, [15] = 0x7f, [20] = (uint8_t)i};
        FUZZ_CHECK((is_bytes ? deltafs_append_bytes(d, value, 1 + i % 6, value, i)
                             : deltafs_append(d, i, value, sizeof value)) == DELTAFS_OK);
        FUZZ_CHECK(i % 10 != 9 || deltafs_epoch_end(d, i) == DELTAFS_OK);
    }
    FUZZ_CHECK(deltafs_close(d) == DELTAFS_OK);
}

static void begin(void)
{
    static struct mem_io files;
    static const char *const n[] = {"schema", "t:S4,x:f4,y:f8,i:i2,v:V6", "memory", "8M", NULL};
    static const char *const b[] = {"keys", "bytes", "memory", "8M", NULL};

    mem_io_begin(&files);
    make("n", n, 0);
    make("b", b, 1);
    int nothing = open("/dev/null", O_RDONLY);
    FUZZ_CHECK(nothing >= 0 && dup2(nothing, 0) == 0 && freopen("/dev/null", "w", stdout));
    stderr = fopen("/dev/null", "w");
    FUZZ_CHECK(stderr != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static int has_begun;
    struct fuzz_input in = {bytes, n};
    char *argument[ARGUMENTS_MAX + 1] = {NULL}, *argv[ARGUMENTS_MAX + 2] = {(char *)(uintptr_t) "deltafs"};
    int argc = 1, code;

    if (!has_begun++)
        begin();
    for (; argc <= ARGUMENTS_MAX && in.n > 0; argc++)
        argv[argc] = argument[argc - 1] = fuzz_line(&in);
    /* What stands on the machine's disk is not part of the input. */
    for (int i = 1; i < argc; i++)
        if (strchr(argv[i], '/'))
            argv[i] = (char *)(uintptr_t) "-";
    code = deltafs_main(argc, argv);
    FUZZ_CHECK(code >= EXIT_OK && code <= EXIT_TROUBLE);
    for (int i = 0; i < ARGUMENTS_MAX; i++)
        free(argument[i]);
    return 0;
}
