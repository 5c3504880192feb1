/* deltafs cat: the bytes of logical files. */
#include <unistd.h>
#include "tools/cmd.h"
#include "tools/copy.h"
#include "tools/target.h"

struct cat {
    struct command_number offset, size;
    int is_target_failed;
};

static int cat_one(void *values, const char *path)
{
    struct cat *c = values;
    struct copy copy = {.to = {.fd = STDOUT_FILENO, .name = "standard output"}};

    if (c->is_target_failed)
        return EXIT_TROUBLE;
    int code = target_open_logical(path, &copy.from.logical);
    if (code == EXIT_OK)
        code = copy_bytes(&copy, c->offset.value, c->size.is_given ? c->size.value : UINT64_MAX);
    deltafs_logical_close(copy.from.logical);
    c->is_target_failed = copy.is_target_failed;
    return code;
}

static const struct command_option options[] = {
    {"offset", 0, "N", "start at byte N of each file", cmd_parse_number, offsetof(struct cat, offset)},
    {"size", 0, "N", "at most N bytes of each file", cmd_parse_number, offsetof(struct cat, size)},
    {0}};

extern const struct command cmd_ns_cat;

const struct command cmd_cat = {.name = "cat",
                                .usage = "FILE... [OPTION...]",
                                .text = "Write the bytes of logical files to standard output.",
                                .missing = "FILE is missing",
                                .least = 1,
                                .size = sizeof(struct cat),
                                .option = options,
                                .in_namespace = &cmd_ns_cat,
                                .each = cat_one};
