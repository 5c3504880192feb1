/* The index of a file that was written, made when the file is closed. If the option key names HDF5 datasets, the HDF5
 * that is closing the file opens it once more, through this driver, to find where the datasets are.
 *
 * A file in which the pattern matches nothing gets no index: the option may be set in the environment, for all files of
 * a program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "h5fd.h"
#include "hdf5/h5rows.h"

static int alone_any(void *group, int value)
{
    (void)group;
    return value;
}

static int alone_share(void *group, int value, char *message, size_t size)
{
    (void)group;
    (void)message;
    (void)size;
    return value;
}

static int alone_open(void *group, const char *index, const char *path, const deltafs_options *options,
                      deltafs_indexer **out)
{
    (void)group;
    return deltafs_indexer_open(index, path, options, out);
}

static const struct vfd_indexing vfd_alone = {
    .is_first = 1, .any = alone_any, .share = alone_share, .open = alone_open};

void vfd_keys_free(struct vfd_keys *keys)
{
    if (!keys)
        return;
    deltafs_options_destroy(keys->options);
    free(keys->path);
    free(keys);
}

static const char *keys_option(const deltafs_options *options, const char *name)
{
    const char *value = "";

    deltafs_options_get(options, name, &value);
    return value;
}

static int keys_copy(const deltafs_options *from, deltafs_options *to)
{
    const struct deltafs_option_info *row;
    int status = DELTAFS_OK;

    for (size_t i = 0; (row = deltafs_option_at(i)) && status == DELTAFS_OK; i++) {
        const char *value = keys_option(from, row->name), *is = keys_option(to, row->name);
        if (strcmp(value, is) != 0)
            status = deltafs_options_set(to, row->name, value);
    }
    return status;
}

int vfd_keys_begin(struct vfd_file *f, const char *path, const struct vfd_config *config, int is_wanted)
{
    struct vfd_keys *keys = calloc(1, sizeof *keys);
    int rc = 0;

    if (!keys || !(keys->path = strdup(path)))
        rc = vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s: no memory", path);
    else if (deltafs_options_create(&keys->options) != DELTAFS_OK ||
             keys_copy(config->options, keys->options) != DELTAFS_OK ||
             deltafs_folder_options(path, keys->options) != DELTAFS_OK)
        rc = vfd_fail(f->calls, VFD_CANNOT_OPEN, "deltafs: %s", deltafs_errmsg(NULL));
    else if (*keys_option(keys->options, "key") && !*keys_option(keys->options, "schema") &&
             !h5rows_is_pattern(keys_option(keys->options, "key")))
        rc = vfd_fail(f->calls, VFD_CANNOT_OPEN,
                      "deltafs: %s: option key: '%s' is no path of datasets of IDs, such as /Step#*/id: it has no '/'",
                      path, keys_option(keys->options, "key"));
    else if (is_wanted || h5rows_is_pattern(keys_option(keys->options, "key")))
        f->keys = keys;
    if (f->keys)
        keys->how = &vfd_alone;
    else
        vfd_keys_free(keys);
    return rc;
}

/* The file's tables, by the HDF5 that has called the driver. */
static int keys_read(const struct vfd_file *f, struct h5rows *rows, char message[H5LIB_MESSAGE_MAX])
{
    const struct vfd_calls *calls = f->calls;
    const char *pattern = keys_option(f->keys->options, "key"), *epoch = keys_option(f->keys->options, "epoch");
    uint64_t label = strtoull(epoch, NULL, 10);
    struct h5lib lib;

    if (h5lib_find(&lib, calls->object, message) != 0)
        return DELTAFS_ERR_VERSION;
    snprintf(message, H5LIB_MESSAGE_MAX, "%s: HDF5 does not take the driver once more", f->keys->path);
    h5_id fapl = lib.plist_create(*lib.file_access);
    hid_t driver = calls->enroll ? calls->enroll(&vfd_class) : -1;
    int status = DELTAFS_ERR_IO;
    if (fapl >= 0 && driver >= 0 && calls->set_driver && calls->set_driver(fapl, driver, NULL) >= 0)
        status = h5rows_of_file(&lib, f->keys->path, fapl, f->keys->path, pattern, *epoch == 'a' ? NULL : &label, rows,
                                message);
    if (fapl >= 0)
        lib.plist_close(fapl);
    if (driver >= 0 && calls->dismiss)
        calls->dismiss(driver);
    return status;
}

static int keys_add(const struct vfd_keys *keys, const struct h5rows *rows, char message[H5LIB_MESSAGE_MAX])
{
    const char *index = keys_option(keys->options, "index");
    deltafs_indexer *indexer = NULL;
    int status = keys->how->open(keys->group, *index ? index : NULL, keys->path, keys->options, &indexer);

    if (status == DELTAFS_OK)
        status =
            deltafs_indexer_add(indexer, keys->path, rows->count, (const struct deltafs_table *const *)rows->table);
    if (status != DELTAFS_OK)
        snprintf(message, H5LIB_MESSAGE_MAX, "%s", deltafs_errmsg(NULL));
    int closed = indexer ? deltafs_indexer_close(indexer) : DELTAFS_OK;
    if (status == DELTAFS_OK && closed != DELTAFS_OK)
        snprintf(message, H5LIB_MESSAGE_MAX, "%s", deltafs_errmsg(NULL));
    return status != DELTAFS_OK ? status : closed;
}

int vfd_keys_end(struct vfd_file *f)
{
    enum { NOTHING, SOME, FAILED } found = NOTHING;
    const struct vfd_keys *keys = f->keys;
    char message[H5LIB_MESSAGE_MAX] = "";
    struct h5rows rows = {0};

    if (keys->how->any(keys->group, f->is_changed) == 0)
        return 0;
    /* The lock, which would keep it from being opened once more. */
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    if (keys->how->is_first) {
        int status = keys_read(f, &rows, message);
        if (status != DELTAFS_OK && status != DELTAFS_ERR_NOT_FOUND)
            found = FAILED;
        else if (status == DELTAFS_OK && rows.count > 0)
            found = SOME;
    }
    int shared = keys->how->share(keys->group, (int)found, message, sizeof message);
    if (shared == SOME && keys_add(keys, &rows, message) != DELTAFS_OK)
        shared = FAILED;
    h5rows_fini(&rows);
    if (shared == NOTHING || shared == SOME)
        return 0;
    return vfd_fail(
        f->calls, VFD_CANNOT_CLOSE,
        "deltafs: %s; the file is written and closed, but its keys are not indexed ('deltafs-mpi index' can "
        "do that later)",
        message);
}
