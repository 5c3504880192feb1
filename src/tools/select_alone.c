/* The rows of a select that one process reads. */
#include "tools/select_source.h"
#include "tools/text.h"

int select_read_stdin(FILE **out)
{
    *out = stdin;
    return EXIT_OK;
}

void select_divide(struct deltafs_select_options *o)
{
    (void)o;
}

int select_agree(int code)
{
    return code;
}

int select_prints(deltafs_select *rows)
{
    (void)rows;
    return 1;
}

struct select_source *select_source_open(const struct deltafs_select_options *o, deltafs_select *rows)
{
    (void)o;
    return (struct select_source *)(void *)rows;
}

int select_source_next(struct select_source *s, const struct deltafs_record **rows, size_t *n, const char **message)
{
    int status = deltafs_select_next((deltafs_select *)(void *)s, rows, n);

    if (status != DELTAFS_OK)
        *message = deltafs_errmsg(NULL);
    return status;
}

void select_source_close(struct select_source *s)
{
    (void)s;
}
