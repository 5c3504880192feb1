/* Rows as text, as get and scan print them: csv, and an object of JSON in each line. */
#include "tools/export.h"
#include "tools/print.h"

static int text_begin_as(struct export *x, enum print_format format)
{
    return text_of_call(print_begin_in(x->state, format, x->schema, NULL, x->file));
}

static int csv_begin(struct export *x)
{
    return text_begin_as(x, PRINT_CSV);
}

static int jsonl_begin(struct export *x)
{
    return text_begin_as(x, PRINT_JSON_LINES);
}

static int text_rows(struct export *x, const struct deltafs_record *row, size_t count)
{
    print_records(x->state, row, count);
    return ferror(x->file) ? export_fail_write(x) : EXIT_OK;
}

static int text_end(struct export *x)
{
    (void)x;
    return EXIT_OK;
}

static void text_release(struct export *x)
{
    print_end(x->state);
}

const struct export_format export_csv = {.name = "csv",
                                         .is_text = 1,
                                         .state_size = sizeof(struct printer),
                                         .begin = csv_begin,
                                         .rows = text_rows,
                                         .end = text_end,
                                         .release = text_release};
const struct export_format export_jsonl = {.name = "jsonl",
                                           .is_text = 1,
                                           .state_size = sizeof(struct printer),
                                           .begin = jsonl_begin,
                                           .rows = text_rows,
                                           .end = text_end,
                                           .release = text_release};
