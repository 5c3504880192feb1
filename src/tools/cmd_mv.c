/* deltafs mv: give a directory or a logical file another name. */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "tools/aside.h"
#include "tools/cmd.h"
#include "tools/target.h"

/* A logical file that is being written would lose what its writers publish. */
static int mv_logical(const char *from, const char *to)
{
    struct target t;
    int code = target_open(from, &t);

    if (code != EXIT_OK)
        return code;
    int is_closed = t.of_file.is_closed;
    target_close(&t);
    if (!is_closed)
        return text_fail(
            EXIT_TROUBLE,
            "%s: is being written, or its writer died; it stays; 'deltafs cp' copies what was written to it", from);
    return aside_put_new(from, to, 1) == 0 ? EXIT_OK : text_fail(EXIT_TROUBLE, "%s: %s", to, strerror(errno));
}

static int mv_run(const struct command_call *c)
{
    const char *from = text_path(c->operand[0]), *to = text_path(c->operand[1]);
    char copy[PATH_MAX], name[PATH_MAX];
    struct target t;
    struct stat st;
    int code = *from && *to ? target_look(from, &t) : target_refuse_empty();

    if (code != EXIT_OK)
        return code;
    if (t.kind != TARGET_DIRECTORY && t.kind != TARGET_LOGICAL)
        return text_fail(EXIT_TROUBLE, "%s: neither a DeltaFS directory nor a logical file; 'mv' renames it", from);
    enum target_kind kind = t.kind;
    int n = snprintf(name, sizeof name, "%s", to);
    if (stat(to, &st) == 0 && target_look(to, &t) == EXIT_OK && t.kind == TARGET_FOLDER) {
        snprintf(copy, sizeof copy, "%s", from);
        n = snprintf(name, sizeof name, "%s/%s", to, basename(copy));
    }
    if (n < 0 || (size_t)n >= sizeof name)
        return text_fail(EXIT_TROUBLE, "%s: %s", to, strerror(ENAMETOOLONG));
    if (lstat(name, &st) == 0)
        return text_fail(EXIT_TROUBLE, "%s: exists already; remove it, or give another name", name);
    code = target_check_new(name);
    if (code != EXIT_OK)
        return code;
    code = kind == TARGET_LOGICAL ? mv_logical(from, name) : text_of_call(deltafs_rename(from, name));
    return code;
}

const struct command cmd_mv = {
    .name = "mv",
    .usage = "FROM TO",
    .text = "Rename a directory or a logical file, within a file system. What is on volumes stays there.",
    .missing = "FROM and TO must be given, and no more",
    .least = 2,
    .most = 2,
    .run = mv_run};
