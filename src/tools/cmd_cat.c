/* deltafs cat: the bytes of logical files. */
#include <getopt.h>
#include <unistd.h>
#include "tools/cmd.h"
#include "tools/copy.h"
#include "tools/target.h"

static int cat_number(const char *name, uint64_t *out)
{
    if (text_number(optarg, out) == 0)
        return EXIT_OK;
    return text_fail(EXIT_USAGE, "cat: --%s: '%s' is no number of bytes (decimal, or hexadecimal after 0x)", name,
                     optarg);
}

int cmd_cat(int argc, char **argv)
{
    static const struct option options[] = {
        {"offset", required_argument, NULL, 'o'}, {"size", required_argument, NULL, 's'}, {NULL, 0, NULL, 0}};
    struct copy copy = {.to = {.fd = STDOUT_FILENO, .name = "standard output"}};
    uint64_t offset = 0, size = UINT64_MAX;
    int c, code = EXIT_OK;

    while (code == EXIT_OK && (c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'o')
            code = cat_number("offset", &offset);
        else if (c == 's')
            code = cat_number("size", &size);
        else
            return cmd_usage("cat");
    }
    if (code != EXIT_OK)
        return code;
    if (argc == optind) {
        text_fail(EXIT_USAGE, "cat: FILE is missing");
        return cmd_usage("cat");
    }
    for (int i = optind; i < argc && !copy.is_target_failed; i++) {
        int one = target_open_whole(text_path(argv[i]), &copy.from.logical);
        if (one == EXIT_OK) {
            one = copy_bytes(&copy, offset, size);
            deltafs_logical_close(copy.from.logical);
        }
        code = one != EXIT_OK ? one : code;
    }
    return code;
}
