#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "base/coding.h"
#include "namespace/text_folder.h"

static int write_text(const struct text_folder *t, struct io *io, const char *folder, const uint8_t uuid[16], int sync,
                      struct error *e)
{
    char path[PATH_ROOM], uuid_text[UUID_TEXT_SIZE];
    struct io_file file;
    uint64_t size = 0;
    int status = io_file_open(io, io_path_in(path, folder, "%s", t->file), O_CREAT | O_EXCL | O_WRONLY, &file, e);

    if (status != DELTAFS_OK)
        return status;
    uuid_to_text(uuid, uuid_text);
    status = textlog_append_id(&file, &size, uuid_text, e);
    if (status == DELTAFS_OK)
        status = t->write(t->arg, &file, &size, e);
    if (status == DELTAFS_OK && sync)
        status = io_file_sync(&file, e);
    status = io_file_finish(&file, status, e);
    if (status == DELTAFS_OK && sync)
        status = io_sync_folder(io, folder, e);
    if (status != DELTAFS_OK)
        io_unlink(io, path, error_ignored());
    return status;
}

/* Give the folder its name. An empty folder that has it is replaced, one with a text is not. */
static int publish(const struct text_folder *t, struct io *io, const char *folder, const char *path, struct error *e)
{
    char text[PATH_ROOM];
    struct stat st;
    int status = io_rename(io, folder, path, e);

    if (status == DELTAFS_OK)
        return status;
    if (stat(io_path_in(text, path, "%s", t->file), &st) == 0)
        return error_set(e, DELTAFS_ERR_EXISTS, "%s: exists already", path);
    if (lstat(path, &st) == 0)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is something else than a %s, and not an empty folder", path,
                         t->kind);
    return status;
}

int text_folder_create(const struct text_folder *t, struct io *io, const char *path, const uint8_t uuid[16], int sync,
                       struct error *e)
{
    char folder[PATH_ROOM], text[PATH_ROOM];
    uint8_t random[16];
    int status = uuid_create(random, e);

    if (status != DELTAFS_OK)
        return status;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int n = snprintf(folder, sizeof folder, "%.*s.%s.new%016" PRIx64, (int)(name - path), path, name, get_u64(random));
    if (n < 0 || (size_t)n >= sizeof folder)
        return error_set(e, DELTAFS_ERR_NAME, "%s: the path is too long", path);
    status = io_mkdir(io, folder, e);
    if (status != DELTAFS_OK) {
        size_t own = strncmp(e->text, folder, strlen(folder)) == 0 ? strlen(folder) : 0;
        return own > 0 ? error_set(e, status, "%s%s", path, e->text + own) : status;
    }
    status = write_text(t, io, folder, uuid, sync, e);
    if (status == DELTAFS_OK) {
        status = publish(t, io, folder, path, e);
        if (status != DELTAFS_OK)
            io_unlink(io, io_path_in(text, folder, "%s", t->file), error_ignored());
    }
    if (status != DELTAFS_OK)
        io_rmdir(io, folder, error_ignored());
    return status == DELTAFS_OK && sync ? io_sync_parent(io, path, e) : status;
}

int text_folder_read(const struct text_folder *t, struct io *io, const char *path, textlog_fn fn, void *arg,
                     struct error *e)
{
    char text[PATH_ROOM];
    struct io_file file;
    struct stat st;
    uint64_t end;
    int status = io_file_open_name(io, io_path_in(text, path, "%s", t->file), O_RDONLY, &file, e);

    if (status == DELTAFS_ERR_NOT_FOUND && stat(path, &st) == 0)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is no %s; it has no file %s", path, t->kind, t->file);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? error_set(e, status, "%s: there is no such %s", path, t->kind)
                                               : status;
    return io_file_finish(&file, textlog_read(&file, NULL, fn, arg, &end, e), e);
}
