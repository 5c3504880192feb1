/* Tables as programs describe them: that of a stream of records, and the label in a file's name. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "base/options.h"
#include "fileindex/sources.h"

void deltafs_table_destroy(struct deltafs_table *t)
{
    if (t)
        table_fini(t);
    free(t);
}

static int table_find_key(struct deltafs_table *t, const char *key, struct error *e)
{
    for (size_t i = 0; i < t->column_count; i++) {
        if (strcmp(t->column[i].name, key) != 0)
            continue;
        if (t->column[i].kind != 'u' && t->column[i].kind != 'i')
            return error_set(e, DELTAFS_ERR_SCHEMA, "the key '%s' is no integer (u1 to u8, i1 to i8)", key);
        if (t->column_count == 1)
            return error_set(e, DELTAFS_ERR_SCHEMA, "the schema has no field besides the key '%s'", key);
        t->key = i;
        return DELTAFS_OK;
    }
    return error_set(e, DELTAFS_ERR_SCHEMA, "the key: the schema has no field '%s'", key);
}

static int table_count_rows(struct deltafs_table *t, const char *path, uint64_t skip, uint64_t size, struct error *e)
{
    uint64_t record = t->column[0].stride, rest = size < skip ? 0 : (size - skip) % record;

    if (size < skip)
        return error_set(e, DELTAFS_ERR_SIZE, "%s: has %" PRIu64 " bytes, fewer than the %" PRIu64 " to skip", path,
                         size, skip);
    if (rest != 0)
        return error_set(e, DELTAFS_ERR_SIZE,
                         "%s: the record at offset %" PRIu64 " is cut: the file ends after %" PRIu64 " of its %" PRIu64
                         " bytes (truncated, or the schema or the option skip is wrong)",
                         path, size - rest, rest, record);
    t->rows = (size - skip) / record;
    return DELTAFS_OK;
}

/* A column for each field. */
static int table_columns(struct deltafs_table *t, const deltafs_schema *s, uint64_t skip, struct error *e)
{
    size_t n = deltafs_schema_count(s);
    struct deltafs_column *column = calloc(n, sizeof *column);

    t->column = column;
    t->name = strdup("");
    if (!column || !t->name)
        return error_no_memory(e, n * sizeof *column, "a table");
    for (size_t i = 0; i < n; i++) {
        const struct deltafs_field *f = deltafs_schema_field(s, i);
        column[t->column_count++] = (struct deltafs_column){.name = strdup(f->name),
                                                            .kind = f->kind,
                                                            .size = f->size,
                                                            .stride = deltafs_schema_size(s),
                                                            .offset = skip + f->offset};
        if (!column[i].name)
            return error_no_memory(e, strlen(f->name), "a table");
    }
    return DELTAFS_OK;
}

int deltafs_table_from_schema(const char *path, const char *schema, const char *key, uint64_t skip, uint64_t size,
                              uint64_t label, struct deltafs_table **out)
{
    struct error *e = deltafs_private_thread_error();
    deltafs_schema *s;

    if (!path || !schema || !key || !out)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_table_from_schema: path, schema, key and out must be given");
    int status = deltafs_schema_parse(schema, &s);
    if (status != DELTAFS_OK)
        return status;
    if (strchr(schema, '~')) {
        deltafs_schema_destroy(s);
        return error_set(e, DELTAFS_ERR_SCHEMA, "schema: '%s' has an error bound, and files stay as they are", schema);
    }
    struct deltafs_table *t = calloc(1, sizeof *t);
    status = t ? table_columns(t, s, skip, e) : error_no_memory(e, sizeof *t, "a table");
    deltafs_schema_destroy(s);
    if (status == DELTAFS_OK)
        status = table_find_key(t, key, e);
    if (status == DELTAFS_OK)
        status = table_count_rows(t, path, skip, size, e);
    if (status != DELTAFS_OK) {
        deltafs_table_destroy(t);
        return status;
    }
    t->label = label;
    *out = t;
    return DELTAFS_OK;
}

int deltafs_label_from_name(const char *path, uint64_t *label)
{
    size_t end = strlen(path), begin, ending;
    char digits[24];

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';)
        begin--;
    /* An ending counts if it is a number. */
    for (ending = end; ending > begin && isalnum((unsigned char)path[ending - 1]);)
        ending--;
    size_t numbers = ending;
    while (numbers < end && isdigit((unsigned char)path[numbers]))
        numbers++;
    if (ending > begin + 1 && path[ending - 1] == '.' && numbers < end)
        end = ending - 1;
    while (end > begin && !isdigit((unsigned char)path[end - 1]))
        end--;
    size_t first = end;
    while (first > begin && isdigit((unsigned char)path[first - 1]))
        first--;
    if (first == end || end - first >= sizeof digits)
        return 0;
    memcpy(digits, path + first, end - first);
    digits[end - first] = '\0';
    return number_parse(digits, label) == 0;
}

int deltafs_table_from_options(const char *path, const deltafs_options *o, uint64_t size, struct deltafs_table **out)
{
    struct error *e = deltafs_private_thread_error();

    if (!path || !o || !out)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_table_from_options: path, options and out must be given");
    const char *schema = deltafs_private_options_text(o, OPTION_SCHEMA),
               *key = deltafs_private_options_text(o, OPTION_KEY);
    uint64_t label = deltafs_private_options_number(o, OPTION_EPOCH);
    if (*key == '\0')
        return error_set(e, DELTAFS_ERR_OPTION, "no option key: the field of the schema that is the key");
    if (*schema == '\0')
        return error_set(
            e, DELTAFS_ERR_OPTION,
            "option key: '%s' is given, and no option schema that has it (the path of an HDF5 dataset has a '/')", key);
    if (label == OPTION_AUTO) {
        label = 0;
        deltafs_label_from_name(path, &label);
    }
    return deltafs_table_from_schema(path, schema, key, deltafs_private_options_number(o, OPTION_SKIP), size, label,
                                     out);
}
