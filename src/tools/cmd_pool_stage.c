/* pool load and pool drain, of deltafs and deltafs-mpi. */
#include "tools/cmd.h"
#include "tools/ns_copy.h"

static int stage(const struct command_call *c, enum ns_copy_stage stage)
{
    const int *is_quiet = c->values;
    const struct ns_copy_options o = {.is_recursive = 1, .is_preserving = 1, .is_quiet = *is_quiet, .stage = stage};

    return ns_copy(&o, c->operand, 1);
}

static int load_run(const struct command_call *c)
{
    return stage(c, NS_COPY_INTO_POOL);
}

static int drain_run(const struct command_call *c)
{
    return stage(c, NS_COPY_FROM_POOL);
}

static const struct command_option options[] = {{"quiet", 'q', NULL, "no progress bar", NULL, 0}, {0}};

const struct command cmd_pool_load = {
    .name = "load",
    .usage = "FROM POINT/TO [OPTION...]",
    .text = "Copy a file or a folder into a pool. FROM may be NS:/PATH or REG@NAME:/PATH. Files that are there with\n"
            "    the same size and time are not copied again.",
    .missing = "FROM and POINT/TO must be given, and no more",
    .least = 2,
    .most = 2,
    .size = sizeof(int),
    .option = options,
    .run = load_run};

const struct command cmd_pool_drain = {
    .name = "drain",
    .usage = "POINT/FROM TO [OPTION...]",
    .text = "Copy a file or a folder of a pool out of it; TO may be NS:/PATH. Files that are there with the same size\n"
            "    and time are not copied again.",
    .missing = "POINT/FROM and TO must be given, and no more",
    .least = 2,
    .most = 2,
    .size = sizeof(int),
    .option = options,
    .run = drain_run};
