/* The file that an export makes. Nothing incomplete is ever seen under its name. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/copy.h"
#include "tools/export.h"
#include "tools/target.h"

#define BUFFER_SIZE ((size_t)1 << 20)

int export_fail_write(const struct export *x)
{
    return text_fail(EXIT_TROUBLE, "cannot write to %s: %s", x->name, strerror(errno));
}

int export_write(struct export *x, const void *bytes, size_t n)
{
    return fwrite(bytes, 1, n, x->file) == n ? EXIT_OK : export_fail_write(x);
}

/* Whether what is at the name may be replaced. */
static int export_file_check_old(struct export_file *f, const struct stat *st)
{
    char real[PATH_MAX];

    if (!S_ISREG(st->st_mode))
        return text_fail(EXIT_TROUBLE, "%s: not a plain file, so it is not replaced", f->to);
    if (!f->is_forced)
        return text_fail(EXIT_TROUBLE, "%s: there is a file of this name; --force replaces it", f->to);
    f->mode = st->st_mode & 07777;
    /* A symbolic link stays, and what it points to is replaced. */
    if (!realpath(f->to, real))
        return text_fail(EXIT_TROUBLE, "%s: %s", f->to, strerror(errno));
    memcpy(f->to, real, strlen(real) + 1);
    return EXIT_OK;
}

static int export_file_look(struct export_file *f, const char *name)
{
    struct stat st;

    if (*name == '\0')
        return target_refuse_empty();
    if (text_path(name) != name)
        return text_fail(EXIT_USAGE, "export: %s: the file is a plain one; give a name without deltafs:", name);
    if (strlen(name) >= sizeof f->to)
        return text_fail(EXIT_TROUBLE, "%s: %s", name, strerror(ENAMETOOLONG));
    memcpy(f->to, name, strlen(name) + 1);
    f->has_old = stat(f->to, &st) == 0;
    if (!f->has_old && errno != ENOENT)
        return text_fail(EXIT_TROUBLE, "%s: %s", f->to, strerror(errno));
    if (!f->has_old && lstat(f->to, &st) == 0)
        return text_fail(EXIT_TROUBLE, "%s: a symbolic link to what is not there", f->to);
    return f->has_old ? export_file_check_old(f, &st) : EXIT_OK;
}

int export_file_make(struct export_file *f, const char *name, struct export *x)
{
    if (strcmp(name, "-") == 0) {
        x->name = "standard output";
        x->file = stdout;
        return EXIT_OK;
    }
    int code = export_file_look(f, name);
    if (code != EXIT_OK)
        return code;
    copy_hold_signals();
    aside_name(x->command, f->to, f->folder, f->aside);
    int fd = open(f->aside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    x->file = fd >= 0 ? fdopen(fd, "r+") : NULL;
    if (!x->file) {
        code = text_fail(EXIT_TROUBLE, "%s: cannot be made in %s: %s", f->to, f->folder, strerror(errno));
        if (fd >= 0) {
            close(fd);
            unlink(f->aside);
        }
        return code;
    }
    setvbuf(x->file, NULL, _IOFBF, BUFFER_SIZE);
    x->name = f->to;
    x->path = f->aside;
    return EXIT_OK;
}

/* Make sure that the file is on storage. */
static int export_file_close(const struct export_file *f, struct export *x)
{
    int code = EXIT_OK, fd = fileno(x->file);

    if (fflush(x->file) != 0 || (f->has_old && fchmod(fd, f->mode) != 0) || fsync(fd) != 0)
        code = export_fail_write(x);
    if (fclose(x->file) != 0 && code == EXIT_OK)
        code = export_fail_write(x);
    return code;
}

int export_file_finish(struct export_file *f, struct export *x, int is_complete)
{
    int code = EXIT_OK;

    if (!x->path)
        return EXIT_OK;
    if (is_complete)
        code = export_file_close(f, x);
    else
        fclose(x->file);
    is_complete = is_complete && code == EXIT_OK && !copy_is_interrupted();
    if (is_complete && (f->has_old ? rename(f->aside, f->to) : aside_put_new(f->aside, f->to, 0)) != 0) {
        code = text_fail(EXIT_TROUBLE, "%s: cannot be renamed: %s", f->to, strerror(errno));
        is_complete = 0;
    }
    if (is_complete && aside_sync(f->folder) != 0)
        code = text_fail(EXIT_TROUBLE, "%s: cannot be synced: %s", f->folder, strerror(errno));
    if (!is_complete && unlink(f->aside) != 0)
        text_fail(0, "%s: cannot be removed: %s", f->aside, strerror(errno));
    return code;
}
