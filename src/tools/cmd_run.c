/* deltafs run: start a program as it is, with the environment by which its files become DeltaFS's. The same works below
 * a launcher of MPI (mpirun ... deltafs run ... -- PROGRAM) and above one. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tools/cmd.h"
#include "tools/installed.h"

struct run {
    int is_hdf5;
};

/* ---- The environment ---- */

static int run_set(const char *name, const char *value)
{
    return setenv(name, value, 1) == 0 ? EXIT_OK : text_fail(EXIT_TROUBLE, "run: no memory for %s", name);
}

/* Set a variable that is a list: FIRST:SECOND, or one of them if the other is empty. */
static int run_set_list(const char *name, const char *first, const char *second)
{
    char *list;

    if (asprintf(&list, "%s%s%s", first, *first && *second ? ":" : "", second) < 0)
        return text_fail(EXIT_TROUBLE, "run: no memory for %s", name);
    int code = run_set(name, list);
    free(list);
    return code;
}

static const char *run_get(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value && *value ? value : otherwise;
}

/* HDF5 1.14 and later load the driver. */
static int run_set_hdf5(const char *libraries)
{
    char folder[PATH_MAX];

    if (!installed_plugin(libraries, folder))
        return text_fail(EXIT_TROUBLE,
                         "run: %s/deltafs/hdf5/" INSTALLED_PLUGIN
                         " is missing: this DeltaFS was built without the HDF5 driver; "
                         "configure it with --with-hdf5=DIR and install it again (scripts/build-hdf5 builds an HDF5)",
                         libraries);
    int code = run_set_list("HDF5_PLUGIN_PATH", folder, run_get("HDF5_PLUGIN_PATH", ""));
    return code == EXIT_OK ? run_set("HDF5_DRIVER", "deltafs") : code;
}

/* Open MPI's own components come first: see deltafs-mpiio(7). Open MPI 5 gives the path to PMIx too, which complains of
 * names that are not its own, unless it has a path itself: here that of the folder above, where no components are. */
static int run_set_openmpi(char *components)
{
    int code = run_set_list("OMPI_MCA_mca_base_component_path",
                            run_get("OMPI_MCA_mca_base_component_path", "SYSTEM_DEFAULT"), components);

    if (code != EXIT_OK || !HAVE_OPEN_MPI_5)
        return code;
    *strrchr(components, '/') = '\0';
    return run_set("PMIX_MCA_mca_base_component_path", run_get("PMIX_MCA_mca_base_component_path", components));
}

/* MPI-IO, on which parallel HDF5 builds: all files are logical files, whatever their names. */
static int run_set_mpi(const char *libraries)
{
    char folder[PATH_MAX], library[2 * PATH_MAX];
    int code;

    if (installed_components(libraries, folder)) {
        code = run_set_openmpi(folder);
    } else if (installed_overlay(libraries, folder)) {
        snprintf(library, sizeof library, "%s/" INSTALLED_OVERLAY, folder);
        code = run_set_list("LD_PRELOAD", run_get("LD_PRELOAD", ""), library);
    } else if (installed_mpi(libraries, folder)) {
        return text_fail(EXIT_TROUBLE,
                         "run: MPI-IO does not lead to DeltaFS: for MPICH, %s/" INSTALLED_OVERLAY " is missing, which "
                         "'scripts/build-romio-overlay --output %s' builds; for Open MPI, %s/deltafs/openmpi is "
                         "missing, and the output of configure says why",
                         libraries, libraries, libraries);
    } else {
        return EXIT_OK; /* built without MPI */
    }
    return code == EXIT_OK ? run_set("ROMIO_FSTYPE_FORCE", "deltafs:") : code;
}

/* The options that differ from what the program would find without this command. */
static int run_set_options(const deltafs_options *options)
{
    const struct deltafs_option_info *o;
    char variable[64];
    const char *value;
    int code = EXIT_OK;

    for (size_t i = 0; (o = deltafs_option_at(i)) && code == EXIT_OK; i++) {
        size_t n = (size_t)snprintf(variable, sizeof variable, "DELTAFS_%s", o->name);
        for (size_t k = 0; k < n; k++)
            variable[k] = (char)toupper((unsigned char)variable[k]);
        const char *now = getenv(variable);
        if (deltafs_options_get(options, o->name, &value) == DELTAFS_OK &&
            strcmp(value, now ? now : o->default_value) != 0)
            code = run_set(variable, value);
    }
    return code;
}

/* ---- Running ---- */

static int run_run(const struct command_call *c)
{
    const struct run *r = c->values;
    char libraries[PATH_MAX];

    if (!r->is_hdf5)
        return text_fail(EXIT_USAGE, "run: --hdf5 is missing, which says what the program writes with");
    int code = cmd_check_key(c->options, "run");
    if (code == EXIT_OK)
        code = installed_libraries("run", libraries);
    if (code == EXIT_OK)
        code = run_set_hdf5(libraries);
    if (code == EXIT_OK)
        code = run_set_mpi(libraries);
    if (code == EXIT_OK)
        code = run_set_options(c->options);
    if (code != EXIT_OK)
        return code;
    c->operand[c->count] = NULL;
    execvp(c->operand[0], c->operand);
    return text_fail(EXIT_TROUBLE, "run: %s cannot be started: %s", c->operand[0], strerror(errno));
}

static const struct command_option options[] = {{"hdf5", 0, NULL,
                                                 "the program writes with HDF5: its new files become logical files",
                                                 NULL, offsetof(struct run, is_hdf5)},
                                                {0}};

const struct command cmd_run = {
    .name = "run",
    .usage = "--hdf5 [--key PATTERN] [--index DIR] [OPTION...] -- COMMAND [ARGUMENT...]",
    .text = "Run a program as it is, with the environment by which its files become DeltaFS's. COMMAND may\n"
            "    be a launcher such as mpirun, or be started by one.\n"
            "    --key PATTERN        index the files by the IDs in these datasets, such as '/Step#*/*/q'\n"
            "    --index DIR          one index for all files (default: one in each file)\n"
            "    OPTION               any of 'deltafs help options' too",
    .missing = "COMMAND is missing, behind --",
    .least = 1,
    .size = sizeof(struct run),
    .option = options,
    .refused = cmd_takes_all,
    .run = run_run};
