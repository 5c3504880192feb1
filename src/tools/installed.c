#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs.h>
#include "tools/installed.h"
#include "tools/text.h"

int installed_libraries(const char *command, char folder[static PATH_MAX])
{
    char path[PATH_MAX];
    Dl_info at;
    const char *slash = dladdr(deltafs_option_at(0), &at) != 0 ? strrchr(at.dli_fname, '/') : NULL;

    if (slash)
        snprintf(path, sizeof path, "%.*s/", (int)(slash - at.dli_fname), at.dli_fname);
    return slash && realpath(path, folder)
               ? EXIT_OK
               : text_fail(EXIT_TROUBLE, "%s: the folder of libdeltafs.so cannot be found", command);
}

/* Whether `file` is in a folder beside the libraries: `installed`, or in a build folder `built`. *folder gets that. */
static int find(const char *libraries, const char *installed, const char *built, const char *file,
                char folder[static PATH_MAX])
{
    const char *const below[] = {installed, built};
    char path[2 * PATH_MAX];

    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", libraries, below[i], file);
        if (realpath(path, folder)) {
            *strrchr(folder, '/') = '\0';
            return 1;
        }
    }
    return 0;
}

int installed_plugin(const char *libraries, char folder[static PATH_MAX])
{
    return find(libraries, "deltafs/hdf5", "../hdf5-vfd/.libs", INSTALLED_PLUGIN, folder);
}

int installed_overlay(const char *libraries, char folder[static PATH_MAX])
{
    return find(libraries, ".", ".", INSTALLED_OVERLAY, folder);
}

int installed_components(const char *libraries, char folder[static PATH_MAX])
{
    return find(libraries, "deltafs/openmpi", "../adio/ompio/.libs", INSTALLED_COMPONENT, folder);
}

int installed_mpi(const char *libraries, char folder[static PATH_MAX])
{
    return find(libraries, ".", ".", INSTALLED_MPI, folder);
}

int installed_posix(const char *libraries, char folder[static PATH_MAX])
{
    return find(libraries, ".", ".", INSTALLED_POSIX, folder);
}
