/* Where DeltaFS's libraries are installed, or built. */
#ifndef DELTAFS_TOOLS_INSTALLED_H
#define DELTAFS_TOOLS_INSTALLED_H

#include <limits.h>

#define INSTALLED_PLUGIN    "libh5fd_deltafs.so"
#define INSTALLED_OVERLAY   "libdeltafs_romio.so"
#define INSTALLED_COMPONENT "mca_fs_deltafs.so"
#define INSTALLED_MPI       "libdeltafs_mpi.so.0"
#define INSTALLED_POSIX     "libdeltafs_posix.so"

/* The folder that libdeltafs is in. Returns the exit code; `command` is for its message. */
int installed_libraries(const char *command, char folder[static PATH_MAX]);

/* Each returns whether the file is there; `folder` gets its folder. */
int installed_plugin(const char *libraries, char folder[static PATH_MAX]);
int installed_overlay(const char *libraries, char folder[static PATH_MAX]);
int installed_components(const char *libraries, char folder[static PATH_MAX]);
int installed_mpi(const char *libraries, char folder[static PATH_MAX]);
int installed_posix(const char *libraries, char folder[static PATH_MAX]);

#endif
