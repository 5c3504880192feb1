/* Opening a directory for writing from one process, with the indexes by value that the options ask for. */
#include <stdlib.h>
#include <string.h>
#include "base/path.h"
#include "base/thread.h"
#include "directory/dir.h"
#include "directory/serial.h"
#include "query/value_index.h"

static int open_index(void *ctx, int is_made, const char *path, const deltafs_options *options, deltafs_dir **out)
{
    (void)ctx;
    return is_made ? deltafs_reopen(path, options, out) : deltafs_create(path, options, out);
}

static int open_all(const char *path, const deltafs_options *o, int is_reopening, deltafs_dir **out, struct error *e)
{
    static const struct collective alone = COLLECTIVE_ALONE;
    static const struct value_index_ranks ranks = {.group = &alone, .open = open_index};
    const char *text = deltafs_private_options_text(o, OPTION_INDEX_BY);
    deltafs_options *shared = NULL;
    deltafs_dir *d;
    int status = is_reopening ? deltafs_private_value_index_prune(path, o, e) : DELTAFS_OK;

    if (status == DELTAFS_OK)
        status = deltafs_private_value_index_share(o, &shared, e);

    if (status == DELTAFS_OK)
        status = serial_open_directory(path, shared ? shared : o, is_reopening, 0, &d, e);
    deltafs_options_destroy(shared);
    if (status == DELTAFS_OK && *text != '\0') {
        status = deltafs_private_value_index_follow(d, path, text, &ranks, o, e);
        if (status != DELTAFS_OK) {
            struct error why = *e;
            deltafs_close(d);
            if (!is_reopening)
                deltafs_remove(path);
            *e = why;
        }
    }
    if (status == DELTAFS_OK)
        *out = d;
    return status;
}

/* `call` is the public function, for messages. */
static int open_to_write(const char *call, const char *path, const deltafs_options *options, int is_reopening,
                         deltafs_dir **out)
{
    struct error *e = deltafs_private_thread_error(), own = {.status = DELTAFS_OK};
    deltafs_options *defaults = NULL;
    int status = DELTAFS_OK;

    if (!path || !*path || !out)
        return error_set(e, DELTAFS_ERR_INVALID, "%s: path and out must be given", call);
    char *whole = path_absolute(path);
    if (!whole)
        status = error_no_memory(&own, strlen(path), "a path");
    else if (!options)
        status = error_of_call(deltafs_options_create(&defaults), &own);
    if (status == DELTAFS_OK)
        status = open_all(whole, options ? options : defaults, is_reopening, out, &own);
    deltafs_options_destroy(defaults);
    free(whole);
    return error_of_thread(status, &own);
}

int deltafs_create(const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return open_to_write("deltafs_create", path, options, 0, out);
}

int deltafs_reopen(const char *path, const deltafs_options *options, deltafs_dir **out)
{
    return open_to_write("deltafs_reopen", path, options, 1, out);
}
