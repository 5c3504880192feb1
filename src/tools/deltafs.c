/* deltafs: ask and check directories, and use logical files, without MPI. */
#include <inttypes.h>
#include <string.h>
#include "tools/cmd.h"
#include "tools/target.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage;
} commands[] = {
    {"get", cmd_get,
     "deltafs get DIR KEY... [--keys FILE] [--hex] [--epochs A[:B]] [--format table|csv|json|raw] [--stats]\n"
     "    Print the records of keys, epoch by epoch.\n"
     "    --keys FILE    read more keys from a file (- is standard input): separated by blanks, or one key of\n"
     "                   bytes on each line\n"
     "    --hex          take keys of bytes in hexadecimal, separated by blanks\n"
     "    --epochs A:B   only epochs with labels from A to B; A: and :B have one end, A is one epoch\n"
     "    --format F     a table for people (default), csv, json, or the raw bytes of the values\n"
     "    --stats        print the number of reads on standard error\n"},
    {"scan", cmd_scan,
     "deltafs scan DIR [--epochs A[:B]] [--format table|csv|json|raw] [--partition P]\n"
     "    Print all records: by partition, epoch, key (keys of bytes: by their hash).\n"
     "    --partition P  only the records of one partition\n"},
    {"info", cmd_info,
     "deltafs info DIR|FILE [--json]\n"
     "    Print a directory's schema, epochs, records and bytes; of a logical file, what stat prints;\n"
     "    of an index, its files.\n"},
    {"verify", cmd_verify,
     "deltafs verify DIR|FILE... [--all]\n"
     "    Read everything, check the checksums, and list the first damages of each file.\n"
     "    --all          list all damages\n"},
    {"repair", cmd_repair,
     "deltafs repair DIR|FILE [--apply] [--label L] [--drop-from L] [--lease S]\n"
     "    List what can be repaired: data of a job that died, and damage; exits with 1 if there is any.\n"
     "    --apply        repair it\n"
     "    --label L      commit an epoch that is complete in the logs, but whose job did not finish it\n"
     "    --drop-from L  discard the epoch labelled L, the first that is incomplete, and all later ones\n"
     "    --lease S      seconds after its last commit that a job on another host counts as alive\n"},
    {"ls", cmd_ls,
     "deltafs ls [-l] [-a] [--json] [PATH...]\n"
     "    List a folder, and mark directories of DeltaFS and logical files.\n"
     "    -l, --long     also the bytes on disk, and whether all writers have closed it\n"
     "    -a, --all      also names that begin with a dot\n"},
    {"stat", cmd_stat,
     "deltafs stat PATH... [--json]\n"
     "    Print the kind and size of logical files, directories and others.\n"},
    {"cat", cmd_cat,
     "deltafs cat FILE... [--offset N] [--size N]\n"
     "    Write the bytes of logical files to standard output.\n"
     "    --offset N     start at byte N of each file\n"
     "    --size N       at most N bytes of each file\n"},
    {"cp", cmd_cp,
     "deltafs cp FROM TO [-f] [-q]\n"
     "    Copy a logical file to a plain file, or a plain file to a logical file; deltafs:TO is always logical.\n"
     "    - is standard input or output.\n"
     "    -f, --force    replace an existing file of the same kind\n"
     "    -q, --quiet    no progress bar\n"},
    {"flatten", cmd_flatten,
     "deltafs flatten FILE...\n"
     "    Merge the indexes of each closed session of logical files into one file, to open them faster.\n"},
    {"rm", cmd_rm,
     "deltafs rm FILE... [-f]\n"
     "    Remove logical files.\n"
     "    -f, --force    ignore files that do not exist\n"},
};

#define COMMANDS      (sizeof commands / sizeof commands[0])
#define COMMAND_NAMES "get, scan, info, verify, repair, ls, stat, cat, cp, flatten, rm"

int cmd_open(const char *path, deltafs_dir **out)
{
    int status = deltafs_open(text_path(path), NULL, out);

    if (status == DELTAFS_OK)
        return EXIT_OK;
    if (status != DELTAFS_ERR_NOT_FOUND && target_is_logical(text_path(path)))
        return text_fail(EXIT_TROUBLE,
                         "%s: a logical file, which has no records; read it by 'deltafs cat' or 'cp', or make an "
                         "index for 'get' by 'deltafs-mpi index'",
                         text_path(path));
    return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
}

int cmd_range(const char *text, struct deltafs_range *range)
{
    char first[32];
    const char *colon = strchr(text, ':'), *last = colon ? colon + 1 : text;
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    int wrong = n >= sizeof first || *text == '\0' || strcmp(text, ":") == 0;

    *range = (struct deltafs_range){0, UINT64_MAX};
    if (!wrong) {
        memcpy(first, text, n);
        first[n] = '\0';
        wrong = (n > 0 && text_number(first, &range->first) != 0) ||
                (*last != '\0' && text_number(last, &range->last) != 0);
    }
    if (wrong || range->first > range->last)
        return text_fail(EXIT_USAGE, "--epochs '%s' is no range of labels; give A, A:B, A: or :B, with A <= B", text);
    return EXIT_OK;
}

int cmd_finish(int code)
{
    int finished = text_finish();

    return finished != EXIT_OK ? finished : code;
}

int cmd_usage(const char *name)
{
    fprintf(stderr, "Try 'deltafs help %s'.\n", name);
    return EXIT_USAGE;
}

static void help_options(void)
{
    const struct deltafs_option_info *o;

    puts("Options, for deltafs_options_set, MPI_Info (deltafs_NAME), the environment (DELTAFS_NAME)\n"
         "and deltafs-mpi (--NAME):\n");
    for (size_t i = 0; (o = deltafs_option_at(i)); i++)
        printf("  %-12s %s\n               takes %s; default '%s'\n", o->name, o->text, o->takes, o->default_value);
}

static int help(const char *topic)
{
    if (topic && strcmp(topic, "options") == 0) {
        help_options();
        return cmd_finish(EXIT_OK);
    }
    for (size_t i = 0; topic && i < COMMANDS; i++)
        if (strcmp(topic, commands[i].name) == 0) {
            fputs(commands[i].usage, stdout);
            return cmd_finish(EXIT_OK);
        }
    if (topic)
        return text_fail(EXIT_USAGE, "no help on '%s'; there is help on " COMMAND_NAMES ", options", topic);
    puts("deltafs asks and checks DeltaFS directories, and reads and makes logical files.\n");
    for (size_t i = 0; i < COMMANDS; i++)
        fputs(commands[i].usage, stdout);
    puts("deltafs help [COMMAND | options]\ndeltafs --version\n\n"
         "Names may have the prefix deltafs:, as in MPI-IO.\n"
         "Exit codes: 0 done; 1 a key was not found (the others are printed), or repair finds something to do; 2 "
         "usage; 3 input, output or damage.");
    return cmd_finish(EXIT_OK);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    char full_name[32];

    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0))
            return help(name);
        /* What getopt's messages begin with. */
        snprintf(full_name, sizeof full_name, "deltafs: %s", name);
        argv[1] = full_name;
        return commands[i].run(argc - 1, argv + 1);
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(name, "--version") == 0) {
        printf("deltafs %s\n", deltafs_version());
        return cmd_finish(EXIT_OK);
    }
    if (argc > 1)
        text_fail(0, "no command '%s'; there are " COMMAND_NAMES ", help", name);
    else
        text_fail(0, "a command is missing; there are " COMMAND_NAMES ", help");
    fputs("Try 'deltafs help'.\n", stderr);
    return EXIT_USAGE;
}
