/* The subcommands of deltafs and deltafs-mpi. Each is a file cmd_NAME.c that defines a `const struct command cmd_NAME`,
 * and a row of the table in deltafs.c or deltafs_mpi.c. cmd.c does what all have in common: options, help, and the
 * check that standard output was written. */
#ifndef DELTAFS_TOOLS_CMD_H
#define DELTAFS_TOOLS_CMD_H

#include <stddef.h>
#include <deltafs/deltafs.h>
#include "tools/text.h"

/* Parse the text of an option into *out. Returns NULL, or what is wrong with it, such as "is no number". */
typedef const char *command_parse(const char *text, void *out);

struct command_option {
    const char *name;
    char letter;          /* of its short form, or 0 */
    const char *takes;    /* a word for its value; NULL if it takes none */
    const char *text;     /* what it does */
    command_parse *parse; /* NULL: an option that takes no value, and sets an int to 1 */
    size_t at;            /* where the value is put: offset in the command's values */
};

struct command_call {
    void *values;
    char **operand;
    int count;                /* of operands */
    deltafs_options *options; /* NULL if the command does not take the library's options */
    uint64_t given;           /* bit i: the library's option number i was given */
};

/* Does the work for one operand, which is without the prefix deltafs:, and returns the exit code. */
typedef int command_each(void *values, const char *path);
/* Do so for each operand; returns the last error. */
int cmd_each(const struct command_call *c, command_each *each);

struct command {
    const char *name;
    const char *usage;                   /* what follows the name on the command line */
    const char *text;                    /* what the command does */
    const char *missing;                 /* the message if there are fewer operands than `least`, or more than `most` */
    int least, most;                     /* `most` 0: any number */
    size_t size;                         /* bytes of the command's values, which begin as zeros */
    const struct command_option *option; /* the last has no name; NULL if there are none */
    /* The library's options that the command does not take, up to NULL. If this is NULL, it takes none. */
    const char *const *refused;
    /* One of these does the work. */
    int (*run)(const struct command_call *c); /* returns the exit code */
    command_each *each;
    const struct command *in_namespace; /* not NULL: it does the work if an operand is NS:/PATH, with its own options */
    const struct command *const *sub; /* up to NULL: its first operand is the name of one of these, which does the work.
                                         If it does no work of its own, all of these take `option`, too, which may come
                                         before the name */
};

struct program {
    const char *text;                     /* what the program does */
    const char *codes;                    /* its exit codes */
    const struct command *const *command; /* up to NULL */
    int (*agree)(int code);               /* NULL, or makes all ranks return the same code */
};

/* Parsers. A number is given if its option was. */
struct command_number {
    int is_given;
    uint64_t value;
};
struct command_range {
    int is_given;
    struct deltafs_range range;
};
command_parse cmd_parse_text;   /* const char * */
command_parse cmd_parse_path;   /* const char *, without the prefix deltafs: */
command_parse cmd_parse_number; /* struct command_number */
command_parse cmd_parse_range;  /* struct command_range, of labels; "A", "A:B", "A:" or ":B" */
command_parse cmd_parse_keys;   /* the same, of keys */
command_parse cmd_parse_policy; /* int: enum deltafs_snapshot_policy; of deltafs alone (cmd_snapshot.c) */

/* The library's options. `cmd_takes_all` is for commands that refuse none. */
extern const char *const cmd_takes_all[];
/* The value of an option that exists. */
const char *cmd_option(const deltafs_options *o, const char *name);
/* Whether an option of the library was given on the command line. */
int cmd_is_given(const struct command_call *c, const char *name);
/* Check that option key is a path of HDF5 datasets, or that there is a schema; `command` is for the message. */
int cmd_check_key(const deltafs_options *o, const char *command);

/* Run a program: its subcommand, help or version. Returns the exit code. */
int cmd_main(const struct program *p, int argc, char **argv);

#endif
