/* ns cp, of deltafs and deltafs-mpi. */
#include "tools/cmd.h"
#include "tools/ns_copy.h"

static int ns_cp_run(const struct command_call *c)
{
    return ns_copy(c->values, c->operand, c->count - 1);
}

static const struct command_option options[] = {
    {"recursive", 'r', NULL, "also folders, with what is in them; symbolic links are copied as such", NULL,
     offsetof(struct ns_copy_options, is_recursive)},
    {"preserve", 'p', NULL, "the copies get the modes and times of the originals", NULL,
     offsetof(struct ns_copy_options, is_preserving)},
    {"quiet", 'q', NULL, "no progress bar", NULL, offsetof(struct ns_copy_options, is_quiet)},
    {0}};

const struct command cmd_ns_cp = {.name = "cp",
                                  .usage = "FROM... TO [OPTION...]",
                                  .text = "Copy files to, from or within namespaces: FROM or TO is NS:/PATH.",
                                  .missing = "FROM and TO must be given",
                                  .least = 2,
                                  .size = sizeof(struct ns_copy_options),
                                  .option = options,
                                  .run = ns_cp_run};
