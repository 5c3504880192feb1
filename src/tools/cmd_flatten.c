/* deltafs flatten: logical files that are opened by reading one file for each session. */
#include <inttypes.h>
#include "tools/cmd.h"
#include "tools/target.h"

static int flatten_one(void *values, const char *path)
{
    struct target t;
    int code = target_look(path, &t);

    (void)values;
    if (code != EXIT_OK)
        return code;
    if (t.kind != TARGET_LOGICAL)
        return target_refuse(path, t.kind);
    code = text_of_call(deltafs_logical_flatten(path));
    if (code == EXIT_OK)
        code = target_open(path, &t);
    if (code != EXIT_OK)
        return code;
    text_say("%s: %" PRIu64 " of %" PRIu64 " session%s with the index in one file%s", path, t.of_file.flat_sessions,
             t.of_file.sessions, text_plural(t.of_file.sessions),
             t.of_file.is_closed ? "" : "; the others are not closed");
    target_close(&t);
    return EXIT_OK;
}

const struct command cmd_flatten = {
    .name = "flatten",
    .usage = "FILE...",
    .text = "Merge the indexes of each closed session of logical files into one file, to open them faster.",
    .missing = "FILE is missing",
    .least = 1,
    .each = flatten_one};
