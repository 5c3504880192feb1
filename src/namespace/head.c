#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/coding.h"
#include "io/textlog.h"
#include "namespace/head.h"

#define ROOT_MODE 0755

/* ---- Creating ---- */

static int head_write(struct io *io, const char *folder, const uint8_t uuid[16], int sync, struct error *e)
{
    char path[PATH_ROOM], uuid_text[UUID_TEXT_SIZE];
    struct io_file file;
    struct timespec now;
    uint64_t size = 0;
    int status = io_file_open(io, io_path_in(path, folder, NAMESPACE_NAME), O_CREAT | O_EXCL | O_WRONLY, &file, e);

    if (status != DELTAFS_OK)
        return status;
    uuid_to_text(uuid, uuid_text);
    clock_gettime(CLOCK_REALTIME, &now);
    status = textlog_append_id(&file, &size, uuid_text, e);
    if (status == DELTAFS_OK)
        status = textlog_append(&file, &size, sync, e, "Namespace mode=%u uid=%u gid=%u time=%" PRIu64, ROOT_MODE,
                                geteuid(), getegid(), (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
    status = io_file_finish(&file, status, e);
    if (status == DELTAFS_OK && sync)
        status = io_sync_folder(io, folder, e);
    if (status != DELTAFS_OK)
        io_unlink(io, path, error_ignored());
    return status;
}

/* Give the folder its name. An empty folder that has it is replaced, a namespace is not. */
static int head_publish(struct io *io, const char *folder, const char *path, struct error *e)
{
    char head[PATH_ROOM];
    struct stat st;
    int status = io_rename(io, folder, path, e);

    if (status == DELTAFS_OK)
        return status;
    if (stat(io_path_in(head, path, NAMESPACE_NAME), &st) == 0)
        return error_set(e, DELTAFS_ERR_EXISTS, "%s: exists already", path);
    if (lstat(path, &st) == 0)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is something else than a namespace, and not an empty folder",
                         path);
    return status;
}

int head_create(struct io *io, const char *path, int sync, struct error *e)
{
    char folder[PATH_ROOM], head[PATH_ROOM];
    uint8_t uuid[16];
    int status = uuid_create(uuid, e);

    if (status != DELTAFS_OK)
        return status;
    int n = snprintf(folder, sizeof folder, "%s.new%016" PRIx64, path, get_u64(uuid));
    if (n < 0 || (size_t)n >= sizeof folder)
        return error_set(e, DELTAFS_ERR_NAME, "%s: the path is too long", path);
    status = io_mkdir(io, folder, e);
    if (status != DELTAFS_OK)
        return status;
    status = head_write(io, folder, uuid, sync, e);
    if (status == DELTAFS_OK) {
        status = head_publish(io, folder, path, e);
        if (status != DELTAFS_OK)
            io_unlink(io, io_path_in(head, folder, NAMESPACE_NAME), error_ignored());
    }
    if (status != DELTAFS_OK)
        io_rmdir(io, folder, error_ignored());
    return status == DELTAFS_OK && sync ? io_sync_parent(io, path, e) : status;
}

/* ---- Reading ---- */

struct head {
    struct inode *root;
    int has_root;
    uint8_t uuid[16];
    char uuid_text[UUID_TEXT_SIZE];
};

static int take_id(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct head *h = arg;

    return textlog_take_id(fields, path, offset, h->uuid, h->uuid_text, e);
}

static int take_root(void *arg, const char *fields, const char *path, uint64_t offset, struct error *e)
{
    struct head *h = arg;
    uint64_t mode, uid, gid, time;

    if (textlog_number(fields, "mode", &mode) != 0 || textlog_number(fields, "uid", &uid) != 0 ||
        textlog_number(fields, "gid", &gid) != 0 || textlog_number(fields, "time", &time) != 0 || mode > 07777 ||
        uid > UINT32_MAX || gid > UINT32_MAX || time > INT64_MAX)
        return error_damaged(e, path, offset, "the attributes of the root are malformed");
    *h->root = (struct inode){.id = {0, 1},
                              .stamp = time,
                              .mtime = (int64_t)time,
                              .atime = (int64_t)time,
                              .uid = (uint32_t)uid,
                              .gid = (uint32_t)gid,
                              .mode = (uint16_t)mode,
                              .type = ENTRY_FOLDER};
    h->has_root = 1;
    return DELTAFS_OK;
}

static int take_line(void *arg, char *line, const char *path, uint64_t offset, struct error *e)
{
    static const struct textlog_word words[] = {{"Deltafs", take_id}, {"Namespace", take_root}, {NULL, NULL}};

    return textlog_take(words, arg, line, path, offset, e);
}

int head_read(struct io *io, const char *path, struct inode *root, struct error *e)
{
    char head[PATH_ROOM];
    struct head h = {.root = root};
    struct io_file file;
    struct stat st;
    uint64_t end;
    int status = io_file_open_name(io, io_path_in(head, path, NAMESPACE_NAME), O_RDONLY, &file, e);

    if (status == DELTAFS_ERR_NOT_FOUND && stat(path, &st) == 0)
        return error_set(e, DELTAFS_ERR_NOT_DELTAFS, "%s: is no namespace; it has no file " NAMESPACE_NAME, path);
    if (status != DELTAFS_OK)
        return status == DELTAFS_ERR_NOT_FOUND ? error_set(e, status, "%s: there is no such namespace", path) : status;
    status = io_file_finish(&file, textlog_read(&file, NULL, take_line, &h, &end, e), e);
    if (status == DELTAFS_OK && !h.has_root)
        status = error_damaged(e, head, 0, "there is no line of the root");
    return status;
}
