/* Files of fixed-size records, described by a schema of which one field is the key. The values are the records without
 * that field. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_fileindex.h>
#include "tools/import.h"

/* The schemas of a record, and of a value: without the key's field, with error bounds. */
static int raw_print_schemas(struct import_layout *l, const deltafs_schema *s)
{
    size_t n = deltafs_schema_count(s), room = 1, used = 0, all = 0;

    for (size_t i = 0; i < n; i++)
        room += strlen(deltafs_schema_field(s, i)->name) + IMPORT_FIELD_ROOM;
    l->schema = calloc(1, room);
    l->record = calloc(1, room);
    for (size_t i = 0; i < n && l->schema && l->record; i++) {
        struct deltafs_field f = *deltafs_schema_field(s, i);
        if (strcmp(f.name, l->options.key) != 0)
            used = import_print_field(l->schema, used, &f);
        f.bound = 0;
        all = import_print_field(l->record, all, &f);
    }
    return l->schema && l->record ? EXIT_OK : text_keep(EXIT_TROUBLE, "import: no memory for a schema");
}

static int raw_begin(struct import_layout *l)
{
    const struct import_options *o = &l->options;
    struct deltafs_table *t;
    deltafs_schema *s;

    if (!o->schema || !o->key)
        return text_keep(EXIT_USAGE, "import: --format raw needs --schema NAME:TYPE,... and --key FIELD");
    if (deltafs_schema_parse(o->schema, &s) != DELTAFS_OK)
        return text_keep(EXIT_USAGE, "import: --schema: %s", deltafs_errmsg(NULL));
    int code = raw_print_schemas(l, s);
    deltafs_schema_destroy(s);
    if (code != EXIT_OK)
        return code;
    if (deltafs_table_from_schema("", l->record, o->key, 0, 0, 0, &t) != DELTAFS_OK)
        return text_keep(EXIT_USAGE, "import: --schema, --key: %s", deltafs_errmsg(NULL));
    l->has_key = 1;
    l->is_signed = t->column[t->key].kind == 'i';
    l->key_at = t->column[t->key].offset;
    l->key_size = t->column[t->key].size;
    l->size = t->column[t->key].stride;
    deltafs_table_destroy(t);
    return EXIT_OK;
}

static int raw_inspect(const struct import_layout *l, const struct input *in, struct import_file *out)
{
    const struct import_options *o = &l->options;
    struct deltafs_table *t;
    uint64_t label = o->epoch.value;
    int has_label = o->epoch.is_given || deltafs_label_from_name(in->path, &label);

    if (!o->epoch.is_given && text_ends_in_rank(in->path))
        return text_keep(EXIT_USAGE,
                         "%s: two numbers end its name, and the last may be that of a rank; import the files of each "
                         "step by themselves, with --epoch STEP",
                         in->path);
    if (deltafs_table_from_schema(in->path, l->record, o->key, o->skip.value, in->size, label, &t) != DELTAFS_OK)
        return text_keep(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    *out = (struct import_file){
        .label = t->label, .records = t->rows, .values = o->skip.value, .has_no_label = !has_label};
    deltafs_table_destroy(t);
    return EXIT_OK;
}

const struct import_format import_raw = {.name = "raw", .begin = raw_begin, .inspect = raw_inspect};
