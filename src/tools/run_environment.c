/* The environment by which the files of a program become DeltaFS's. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd.h"
#include "tools/installed.h"
#include "tools/run_parts.h"

static int set(const char *name, const char *value)
{
    return setenv(name, value, 1) == 0 ? EXIT_OK : text_fail(EXIT_TROUBLE, "run: no memory for %s", name);
}

/* Set a variable that is a list: FIRST:SECOND, or one of them if the other is empty. */
static int set_list(const char *name, const char *first, const char *second)
{
    char *list;

    if (asprintf(&list, "%s%s%s", first, *first && *second ? ":" : "", second) < 0)
        return text_fail(EXIT_TROUBLE, "run: no memory for %s", name);
    int code = set(name, list);
    free(list);
    return code;
}

static const char *get(const char *name, const char *otherwise)
{
    const char *value = getenv(name);

    return value && *value ? value : otherwise;
}

/* Whether the text has this part between separators. */
static int list_has(const char *list, const char *part, const char *separators)
{
    for (size_t n; *list != '\0'; list += n + (list[n] != '\0')) {
        n = strcspn(list, separators);
        if (n == strlen(part) && memcmp(list, part, n) == 0)
            return 1;
    }
    return 0;
}

/* Have the loader load a library first, behind those that it loads already. */
static int set_preload(const char *folder, const char *name)
{
    char library[2 * PATH_MAX];
    const char *now = get("LD_PRELOAD", "");

    snprintf(library, sizeof library, "%s/%s", folder, name);
    if (strpbrk(library, ": "))
        return text_fail(EXIT_TROUBLE,
                         "run: %s cannot be preloaded: its path has a blank or a ':'; install DeltaFS elsewhere",
                         library);
    return list_has(now, library, ": ") ? EXIT_OK : set_list("LD_PRELOAD", now, library);
}

/* ---- HDF5 and MPI-IO ---- */

/* HDF5 1.14 and later load the driver. */
static int set_hdf5(const char *libraries)
{
    char folder[PATH_MAX];

    if (!installed_plugin(libraries, folder))
        return text_fail(EXIT_TROUBLE,
                         "run: %s/deltafs/hdf5/" INSTALLED_PLUGIN
                         " is missing: this DeltaFS was built without the HDF5 driver; "
                         "configure it with --with-hdf5=DIR and install it again (scripts/build-hdf5 builds an HDF5)",
                         libraries);
    int code = set_list("HDF5_PLUGIN_PATH", folder, get("HDF5_PLUGIN_PATH", ""));
    return code == EXIT_OK ? set("HDF5_DRIVER", "deltafs") : code;
}

/* Open MPI's own components come first: see deltafs-mpiio(7). Open MPI 5 gives the path to PMIx too, which complains of
 * names that are not its own, unless it has a path itself: here that of the folder above, where no components are. */
static int set_openmpi(char *components)
{
    int code = set_list("OMPI_MCA_mca_base_component_path", get("OMPI_MCA_mca_base_component_path", "SYSTEM_DEFAULT"),
                        components);

    if (code != EXIT_OK || !HAVE_OPEN_MPI_5)
        return code;
    *strrchr(components, '/') = '\0';
    return set("PMIX_MCA_mca_base_component_path", get("PMIX_MCA_mca_base_component_path", components));
}

/* MPI-IO, on which parallel HDF5 builds: all files are logical files, whatever their names. A DeltaFS without MPI is
 * enough for HDF5 unless the MPI-IO driver is `needed`. */
static int set_mpi(const char *libraries, int needed)
{
    char folder[PATH_MAX];
    int code;

    if (installed_components(libraries, folder))
        code = set_openmpi(folder);
    else if (installed_overlay(libraries, folder))
        code = set_preload(folder, INSTALLED_OVERLAY);
    else if (installed_mpi(libraries, folder))
        return text_fail(EXIT_TROUBLE,
                         "run: MPI-IO does not lead to DeltaFS: for MPICH, %s/" INSTALLED_OVERLAY " is missing, which "
                         "'scripts/build-romio-overlay --output %s' builds; for Open MPI, %s/deltafs/openmpi is "
                         "missing, and the output of configure says why",
                         libraries, libraries, libraries);
    else if (needed)
        return text_fail(EXIT_TROUBLE,
                         "run: --mpiio: this DeltaFS was built without MPI (%s has no " INSTALLED_MPI
                         "); configure it with the compiler of your MPI, MPICC=mpicc, and install it again",
                         libraries);
    else
        return EXIT_OK;
    return code == EXIT_OK ? set("ROMIO_FSTYPE_FORCE", "deltafs:") : code;
}

/* ---- The preloaded library ---- */

/* DELTAFS_POSIX gets one more KIND=POINT=TARGET; these are joined by '|'. */
static int add_mount(const char *kind, const char *point, const char *target)
{
    const char *now = get("DELTAFS_POSIX", "");
    char *list;

    if (asprintf(&list, "%s%s%s=%s=%s", now, *now ? "|" : "", kind, point, target) < 0)
        return text_fail(EXIT_TROUBLE, "run: no memory for DELTAFS_POSIX");
    int code = set("DELTAFS_POSIX", list);
    free(list);
    return code;
}

static int set_posix(const struct run *r, const char *libraries)
{
    char folder[PATH_MAX];
    int code = EXIT_OK;

    if (!installed_posix(libraries, folder) && r->count == 0)
        return EXIT_OK; /* what looks at logical files without MPI-IO and HDF5 finds folders */
    if (!installed_posix(libraries, folder))
        return text_fail(EXIT_TROUBLE,
                         "run: %s/" INSTALLED_POSIX
                         " is missing, which --mount, --pool and --particles need; install DeltaFS "
                         "again, with shared libraries",
                         libraries);
    for (size_t i = 0; i < r->count && code == EXIT_OK; i++)
        code = add_mount(r->mount[i].is_pool        ? "pool"
                         : r->mount[i].is_particles ? "particles"
                                                    : "namespace",
                         r->mount[i].point, r->mount[i].target);
    if (code == EXIT_OK && (r->is_hdf5 || r->is_mpiio) && !list_has(get("DELTAFS_POSIX", ""), RUN_LOGICAL_FILES, "|"))
        code = add_mount("logical", "/", "/");
    if (code == EXIT_OK && r->is_sync)
        code = set("DELTAFS_POSIX_SYNC", "1");
    if (code == EXIT_OK && r->label)
        code = set("DELTAFS_POSIX_LABEL", r->label);
    return code == EXIT_OK ? set_preload(folder, INSTALLED_POSIX) : code;
}

/* ---- Options ---- */

/* The options that differ from what the program would find without this command. */
static int set_options(const deltafs_options *options)
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
            code = set(variable, value);
    }
    return code;
}

int run_set_environment(const struct run *r, const deltafs_options *options)
{
    char libraries[PATH_MAX];
    int code = installed_libraries("run", libraries);

    if (code == EXIT_OK && r->is_hdf5)
        code = set_hdf5(libraries);
    if (code == EXIT_OK && (r->is_hdf5 || r->is_mpiio))
        code = set_mpi(libraries, r->is_mpiio);
    if (code == EXIT_OK)
        code = set_posix(r, libraries);
    if (code == EXIT_OK)
        code = set_options(options);
    if (code == EXIT_OK && r->is_sync && (r->is_hdf5 || r->is_mpiio))
        code = set("DELTAFS_SYNC", "close");
    return code;
}
