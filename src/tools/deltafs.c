/* deltafs: ask and check directories, and use logical files, without MPI. */
#include <stdio.h>
#include <unistd.h>
#include "tools/cmd.h"

#define BUFFER_SIZE (64u << 10) /* of standard output: as much as a pipe takes */

extern const struct command cmd_attr, cmd_cat, cmd_cp, cmd_doctor, cmd_export, cmd_flatten, cmd_get, cmd_info, cmd_ls,
    cmd_mv, cmd_ns, cmd_plot, cmd_pool, cmd_repair, cmd_rm, cmd_run, cmd_scan, cmd_select, cmd_snapshot, cmd_stat,
    cmd_verify;

static const struct command *const commands[] = {
    &cmd_get,    &cmd_scan,     &cmd_select, &cmd_export, &cmd_plot,   &cmd_info, &cmd_attr,    &cmd_verify,
    &cmd_repair, &cmd_ls,       &cmd_stat,   &cmd_cat,    &cmd_cp,     &cmd_mv,   &cmd_flatten, &cmd_rm,
    &cmd_ns,     &cmd_snapshot, &cmd_pool,   &cmd_run,    &cmd_doctor, NULL};

int main(int argc, char **argv)
{
    static char buffer[BUFFER_SIZE];
    static const struct program deltafs = {
        .text = "asks and checks DeltaFS directories, and reads and makes logical files.\n"
                "Names may have the prefix deltafs:, as in MPI-IO.",
        .codes = "0 done; 1 a key (the others are printed), a record or an attribute was not found, or repair finds\n"
                 "something to do; 2 usage; 3 input, output or damage",
        .command = commands};

    if (!isatty(STDOUT_FILENO))
        setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    return cmd_main(&deltafs, argc, argv);
}
