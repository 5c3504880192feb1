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

static const enum option_id known[] = {OPTION_INDEX,   OPTION_EPOCH,  OPTION_KEY,
                                       OPTION_PADDING, OPTION_SCHEMA, OPTION_SKIP};

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

/* The file, and the options that it sets. */
struct conf {
    deltafs_options *options;
    int is_given[sizeof known / sizeof known[0]];
    char *path;
    int folder; /* bytes of it that are the folder's, with a slash if any */
};

static int conf_set(const struct conf *c, enum option_id id, const char *value, struct error *e)
{
    char *path = NULL;

    if (id == OPTION_INDEX && *value != '\0' && !conf_is_below(value))
        return error_set(e, DELTAFS_ERR_OPTION, "option index: '%s' is not below the folder", value);
    if (id == OPTION_INDEX && *value != '\0' && asprintf(&path, "%.*s%s", c->folder, c->path, value) < 0)
        return error_no_memory(e, strlen(value), "a path");
    int status = deltafs_options_set(c->options, deltafs_option_at(id)->name, path ? path : value);
    free(path);
    return error_of_call(status, e);
}

static int conf_line(const struct conf *c, char *line, struct error *e)
{
    char *value = strchr(line, '=');

    if (*conf_trim(line) == '\0' || *conf_trim(line) == '#')
        return DELTAFS_OK;
    if (!value)
        return error_set(e, DELTAFS_ERR_OPTION, "'%s' is not NAME=VALUE", line);
    *value++ = '\0';
    const char *name = conf_trim(line);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, deltafs_option_at(known[i])->name) == 0)
            return c->is_given[i] ? DELTAFS_OK : conf_set(c, known[i], conf_trim(value), e);
    return error_set(e, DELTAFS_ERR_OPTION, "'%s' cannot be set here; epoch, index, key, padding, schema and skip can",
                     name);
}

static int conf_parse(struct conf *c, char *text, struct error *e)
{
    char *next = text;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        c->is_given[i] = deltafs_private_options_is_given(c->options, known[i]);
    for (unsigned number = 1; next; number++) {
        char *line = strsep(&next, "\n");
        if (conf_line(c, line, e) != DELTAFS_OK)
            return error_set(e, e->status, "%s: line %u: %s", c->path, number, e->text);
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
    struct error own = {0};
    struct conf c = {.options = o};
    char *text = NULL;

    if (!path || !o)
        return error_set(deltafs_private_thread_error(), DELTAFS_ERR_INVALID,
                         "deltafs_folder_options: path and options must be given");
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n > 0 && path[n - 1] != '/')
        n--;
    c.folder = (int)n;
    if (asprintf(&c.path, "%.*s" CONF_NAME, c.folder, path) < 0)
        return error_no_memory(deltafs_private_thread_error(), n, "a path");
    own.status = conf_read(c.path, &text, &own);
    if (own.status == DELTAFS_OK && text)
        own.status = conf_parse(&c, text, &own);
    free(c.path);
    free(text);
    return error_of_thread(own.status, &own);
}
