/* deltafs stat: what there is to know about a name, in short. */
#include "tools/cmd.h"
#include "tools/target.h"

/* Facts about one path; `count` have been printed before. */
static int stat_one(const char *path, int is_json, int count)
{
    struct report r = {.is_json = is_json};
    struct target t;
    int code = target_open(path, &t);

    if (code != EXIT_OK)
        return code;
    printf("%s%s", count > 0 ? is_json ? ",\n" : "\n" : "", is_json ? "{" : "");
    report_text(&r, "path", "path", path);
    target_report(&r, &t);
    if (t.kind == TARGET_DIRECTORY && (is_json || !t.is_index))
        report_number(&r, "epochs", "epochs", t.of_dir.epochs);
    fputs(is_json ? "\n}" : "", stdout);
    target_close(&t);
    return EXIT_OK;
}

static int stat_run(const struct command_call *c)
{
    int is_json = *(int *)c->values, code = EXIT_OK, count = 0;

    fputs(is_json ? "[" : "", stdout);
    for (int i = 0; i < c->count; i++) {
        int one = stat_one(text_path(c->operand[i]), is_json, count);
        count += one == EXIT_OK;
        code = one != EXIT_OK ? one : code;
    }
    fputs(is_json ? "]\n" : "", stdout);
    return code;
}

static const struct command_option options[] = {{"json", 0, NULL, "for programs", NULL, 0}, {0}};

extern const struct command cmd_ns_stat;

const struct command cmd_stat = {.name = "stat",
                                 .usage = "PATH... [OPTION...]",
                                 .text = "Print the kind and size of logical files, directories and others.",
                                 .missing = "PATH is missing",
                                 .least = 1,
                                 .size = sizeof(int),
                                 .option = options,
                                 .in_namespace = &cmd_ns_stat,
                                 .run = stat_run};
