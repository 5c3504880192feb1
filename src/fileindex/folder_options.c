/* deltafs.conf: what a folder says of the rows in its files, for programs that are not to be changed. It comes with the
 * folder, and may be anybody's: so it can say nothing but what is in the rows, and name an index in that folder. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_fileindex.h>
#include "base/options.h"
#include "io/textlog.h"

#define CONF_NAME "deltafs.conf"
#define CONF_MAX  (64u << 10) /* bytes */

static const struct {
    const char *name;
    enum option_id id;
} known[] = {{"index", OPTION_INDEX},
             {"epoch", OPTION_EPOCH},
             {"key", OPTION_KEY},
             {"schema", OPTION_SCHEMA},
             {"skip", OPTION_SKIP}};

/* Without blanks around it. */
static char *conf_trim(char *text)
{
    text += strspn(text, " \t");
    for (size_t n = strlen(text); n > 0 && strchr(" \t\r", text[n - 1]);)
        text[--n] = '\0';
    return text;
}

static int conf_is_below(const char *path)
{
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || p[2] == '\0'))
            return 0;
    }
    return path[0] != '/';
}

/* `folder` has its slash, or is "". */
static int conf_set(deltafs_options *o, enum option_id id, const char *value, const char *folder, struct error *e)
{
    const char *name = deltafs_option_at(id)->name;
    size_t room = strlen(folder) + strlen(value) + 1;

    if (id != OPTION_INDEX || *value == '\0')
        return deltafs_options_set(o, name, value) == DELTAFS_OK ? DELTAFS_OK
                                                                 : (*e = *deltafs_private_thread_error()).status;
    if (!conf_is_below(value))
        return error_set(e, DELTAFS_ERR_OPTION, "option index: '%s' is not below the folder", value);
    char *path = malloc(room);
    if (!path)
        return error_no_memory(e, room, "a path");
    snprintf(path, room, "%s%s", folder, value);
    int status = deltafs_options_set(o, name, path);
    free(path);
    if (status != DELTAFS_OK)
        *e = *deltafs_private_thread_error();
    return status;
}

static int conf_line(deltafs_options *o, const int *is_given, char *line, const char *folder, struct error *e)
{
    char *value = strchr(line, '=');

    if (*conf_trim(line) == '\0' || *conf_trim(line) == '#')
        return DELTAFS_OK;
    if (!value)
        return error_set(e, DELTAFS_ERR_OPTION, "'%s' is not NAME=VALUE", line);
    *value++ = '\0';
    const char *name = conf_trim(line);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0)
            return is_given[i] ? DELTAFS_OK : conf_set(o, known[i].id, conf_trim(value), folder, e);
    return error_set(e, DELTAFS_ERR_OPTION, "'%s' cannot be set here; epoch, index, key, schema and skip can", name);
}

static int conf_parse(deltafs_options *o, char *text, const char *path, const char *folder, struct error *e)
{
    int is_given[sizeof known / sizeof known[0]];
    char *next = text;
    struct error why;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        is_given[i] = deltafs_private_options_is_given(o, known[i].id);
    for (unsigned number = 1; next; number++) {
        char *line = next;
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (conf_line(o, is_given, line, folder, &why) != DELTAFS_OK)
            return error_set(e, why.status, "%s: line %u: %s", path, number, why.text);
    }
    return DELTAFS_OK;
}

static int conf_read(const char *path, char **text, struct error *e)
{
    struct io io = io_default();
    struct io_file file;
    uint64_t size, mtime;
    int status = io_file_open(&io, path, O_RDONLY, &file, e);

    *text = NULL;
    if (status == DELTAFS_ERR_NOT_FOUND)
        return DELTAFS_OK;
    if (status != DELTAFS_OK)
        return status;
    status = io_file_mtime(&file, &mtime, e); /* a regular file? */
    if (status == DELTAFS_OK)
        status = io_file_size(&file, &size, e);
    if (status == DELTAFS_OK && size > CONF_MAX)
        status = error_set(e, DELTAFS_ERR_OPTION, "%s: has more than %u bytes", path, CONF_MAX);
    if (status == DELTAFS_OK)
        status = textlog_load(&file, text, &size, e);
    if (status == DELTAFS_OK)
        (*text)[size] = 0;
    return io_file_finish(&file, status, e);
}

int deltafs_folder_options(const char *path, deltafs_options *o)
{
    struct error *e = deltafs_private_thread_error(), own = {0};
    char *text = NULL;

    if (!path || !o)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_folder_options: path and options must be given");
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    char *folder = strndup(path, n), *conf = malloc(n + sizeof CONF_NAME);
    if (folder && conf) {
        snprintf(conf, n + sizeof CONF_NAME, "%s" CONF_NAME, folder);
        own.status = conf_read(conf, &text, &own);
        if (own.status == DELTAFS_OK && text)
            own.status = conf_parse(o, text, conf, folder, &own);
    } else {
        error_no_memory(&own, n, "a path");
    }
    free(folder);
    free(conf);
    free(text);
    if (own.status != DELTAFS_OK)
        *e = own;
    return own.status;
}
