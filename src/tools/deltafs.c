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
     "    --keys FILE    more keys, from a file (- for standard input), separated by blanks; keys of bytes\n"
     "                   one on each line\n"
     "    --hex          keys of bytes are given in hexadecimal, and separated by blanks\n"
     "    --epochs A:B   only epochs with labels from A to B; A: and :B are open, A alone is one\n"
     "    --format F     a table for people (default), csv, json, or the raw bytes of the values\n"
     "    --stats        say on standard error how many reads it took\n"},
    {"scan", cmd_scan,
     "deltafs scan DIR [--epochs A[:B]] [--format table|csv|json|raw] [--partition P]\n"
     "    Print all records: by partition, epoch, key (keys of bytes: by their hash).\n"
     "    --partition P  only those of one partition\n"},
    {"info", cmd_info,
     "deltafs info DIR|FILE [--json]\n"
     "    Say what a directory holds: schema, epochs, records, bytes. Of a logical file, what stat says;\n"
     "    of any file with an index of its keys, which files that is of.\n"},
    {"verify", cmd_verify,
     "deltafs verify DIR|FILE... [--all]\n"
     "    Read everything, check it against its checksums, and name the first damages of each file.\n"
     "    --all          name all of them\n"},
    {"repair", cmd_repair,
     "deltafs repair DIR|FILE [--apply] [--label L] [--drop-from L] [--lease S]\n"
     "    Say what a job that died left to be mended, or damage that can be; exits with 1 if there is anything.\n"
     "    --apply        mend it\n"
     "    --label L      commit under this label an epoch that is whole in the logs but was not finished\n"
     "    --drop-from L  give up the epochs from that labelled L on, the first of which the logs have not all\n"
     "    --lease S      how long after its last commit a job on another host is taken to be writing still\n"},
    {"ls", cmd_ls,
     "deltafs ls [-l] [-a] [--json] [PATH...]\n"
     "    Say what is in a folder, and which of it are directories of DeltaFS and logical files.\n"
     "    -l, --long     also how many bytes it takes on disk, and whether its writers have closed it\n"
     "    -a, --all      also names that begin with a dot\n"},
    {"stat", cmd_stat,
     "deltafs stat PATH... [--json]\n"
     "    Say of logical files, directories and others what they are and how large.\n"},
    {"cat", cmd_cat,
     "deltafs cat FILE... [--offset N] [--size N]\n"
     "    Write the bytes of logical files to standard output.\n"
     "    --offset N     from byte N of each on\n"
     "    --size N       N bytes of each at most\n"},
    {"cp", cmd_cp,
     "deltafs cp FROM TO [-f] [-q]\n"
     "    Copy a logical file to a plain one, and anything else to a logical one; deltafs:TO is a logical one always.\n"
     "    - is standard input or output.\n"
     "    -f, --force    replace a file that is there, plain by plain or logical by logical\n"
     "    -q, --quiet    no progress bar\n"},
    {"flatten", cmd_flatten,
     "deltafs flatten FILE...\n"
     "    Put the index of each closed session of logical files into one file, so that they are opened faster.\n"},
    {"rm", cmd_rm,
     "deltafs rm FILE... [-f]\n"
     "    Remove logical files.\n"
     "    -f, --force    no word about what is not there\n"},
};

#define COMMANDS      (sizeof commands / sizeof commands[0])
#define COMMAND_NAMES "get, scan, info, verify, repair, ls, stat, cat, cp, flatten, rm"

int cmd_open(const char *path, deltafs_dir **out)
{
    int status = deltafs_open(text_path(path), NULL, out);

    if (status == DELTAFS_OK)
        return EXIT_OK;
    if (target_is_logical(text_path(path)))
        return text_fail(EXIT_TROUBLE,
                         "%s: a logical file, which has no records; 'deltafs cat' and 'cp' read it, and "
                         "'deltafs-mpi index' makes the index of keys that 'get' needs",
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
         "Names may have the prefix of MPI-IO's names, deltafs:.\n"
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
