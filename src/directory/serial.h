/* Writing a directory from one process: what deltafs_create and deltafs_reopen do, and repair at its end. */
#ifndef DELTAFS_DIRECTORY_SERIAL_H
#define DELTAFS_DIRECTORY_SERIAL_H

#include "base/options.h"

#define SERIAL_MEMORY_DEFAULT (64u << 20) /* bytes of the process, if the option memory is auto */

/* Create a directory, or reopen it, which with `may_drop` truncates epochs whose lines the manifest has lost. */
int serial_open_directory(const char *path, const deltafs_options *o, int is_reopening, int may_drop, deltafs_dir **out,
                          struct error *e);

#endif
