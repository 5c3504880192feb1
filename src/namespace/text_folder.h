/* Folders with a text log, which says what they are: namespaces, registries, and snapshots in them. Such a folder
 * appears with its text complete: it is created under another name, which begins with '.', and gets its own by
 * rename(2), which succeeds for one of several processes only. */
#ifndef DELTAFS_NAMESPACE_TEXT_FOLDER_H
#define DELTAFS_NAMESPACE_TEXT_FOLDER_H

#include "io/textlog.h"

struct text_folder {
    const char *file; /* the name of the text log */
    const char *kind; /* of folder, for messages */
    /* Append the lines behind the first, which is that of the UUID. */
    int (*write)(void *arg, struct io_file *file, uint64_t *size, struct error *e);
    void *arg;
};

/* Create it. An empty folder at `path` is replaced. DELTAFS_ERR_EXISTS if there is such a folder by now,
 * DELTAFS_ERR_NOT_DELTAFS if something else is in the way. */
int text_folder_create(const struct text_folder *t, struct io *io, const char *path, const uint8_t uuid[16], int sync,
                       struct error *e);
/* Read its text. DELTAFS_ERR_NOT_FOUND: nothing is at `path`; DELTAFS_ERR_NOT_DELTAFS: it has no such file. */
int text_folder_read(const struct text_folder *t, struct io *io, const char *path, textlog_fn fn, void *arg,
                     struct error *e);

#endif
