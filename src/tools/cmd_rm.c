/* deltafs rm: remove directories and logical files, also what they have on other volumes. */
#include <errno.h>
#include "tools/cmd.h"
#include "tools/target.h"

/* What else removes it. */
static int rm_refuse(const char *path, enum target_kind kind)
{
    const char *what = kind == TARGET_FOLDER
                           ? "a folder, neither a DeltaFS directory nor a logical file; it stays as it is"
                           : "a plain file, not a logical file; 'rm' removes it";

    return text_fail(EXIT_TROUBLE, "%s: %s", path, what);
}

static int rm_one(void *values, const char *path)
{
    const int *is_forced = values;
    struct target t;

    int is_missing = lstat(path, &t.stat) != 0;
    if (is_missing && *is_forced && errno == ENOENT)
        return EXIT_OK;
    if (!is_missing && S_ISLNK(t.stat.st_mode))
        return text_fail(EXIT_TROUBLE, "%s: a symbolic link, not a logical file; 'rm' removes it", path);
    /* The file is not opened: a damaged one can be removed, too, unless it is not clear what it is. */
    int code = target_look(path, &t);
    if (code != EXIT_OK)
        return is_missing ? code : text_fail(code, "%s: is not removed; 'rm -r' removes whatever it is", path);
    if (t.kind == TARGET_DIRECTORY)
        return text_of_call(deltafs_remove(path));
    if (t.kind != TARGET_LOGICAL)
        return rm_refuse(path, t.kind);
    return text_of_call(deltafs_logical_remove(path));
}

static int rm_run(const struct command_call *c)
{
    const int *is_forced = c->values;

    if (c->count == 0 && !*is_forced)
        return text_fail(EXIT_USAGE, "rm: DIR or FILE is missing");
    return cmd_each(c, rm_one);
}

static const struct command_option options[] = {{"force", 'f', NULL, "ignore what does not exist", NULL, 0}, {0}};

const struct command cmd_rm = {.name = "rm",
                               .usage = "DIR|FILE... [OPTION...]",
                               .text = "Remove directories and logical files, with what they have on volumes.",
                               .size = sizeof(int),
                               .option = options,
                               .run = rm_run};
