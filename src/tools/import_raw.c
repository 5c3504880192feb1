/* Files of fixed-size records, described by a schema of which one field is the key. The values are the records without
 * that field. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_fileindex.h>
#include "tools/import.h"

static int raw_begin(struct import_layout *l)
{
    const struct import_options *o = &l->options;
    deltafs_options *owner;
    const char *field;
    struct deltafs_table *t;

    if (!o->schema || !o->key)
        return text_keep(EXIT_USAGE, "import: --format raw needs --schema NAME:TYPE,... and --key FIELD");
    if (deltafs_table_from_schema("", o->schema, o->key, 0, 0, 0, &t) != DELTAFS_OK)
        return text_keep(EXIT_USAGE, "import: --schema, --key: %s", deltafs_errmsg(NULL));
    int code = import_plain_schema(o->schema, &owner, &field);
    if (code != EXIT_OK) {
        deltafs_table_destroy(t);
        return code;
    }
    /* The schema's text without the key's field. */
    size_t room = strlen(field) + 1, used = 0;
    for (size_t i = 0; i < t->column_count; i++)
        room += strlen(t->column[i].name) + sizeof ",:f4294967295";
    l->schema = calloc(1, room);
    for (size_t i = 0; i < t->column_count && l->schema; i++) {
        const struct deltafs_column *c = &t->column[i];
        int n = (int)strcspn(field, ","), before = (int)strcspn(field, "~,"); /* its error bound */
        if (i != t->key)
            used += (size_t)snprintf(l->schema + used, room - used, "%s%s:%c%" PRIu32 "%.*s", used > 0 ? "," : "",
                                     c->name, c->kind, c->size, n - before, field + before);
        field += n + 1;
    }
    deltafs_options_destroy(owner);
    l->has_key = 1;
    l->is_signed = t->column[t->key].kind == 'i';
    l->key_at = t->column[t->key].offset;
    l->key_size = t->column[t->key].size;
    l->size = t->column[t->key].stride;
    deltafs_table_destroy(t);
    return l->schema ? EXIT_OK : text_keep(EXIT_TROUBLE, "import: no memory for a schema");
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
    if (deltafs_table_from_schema(in->path, o->schema, o->key, o->skip.value, in->size, label, &t) != DELTAFS_OK)
        return text_keep(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    *out = (struct import_file){
        .label = t->label, .records = t->rows, .values = o->skip.value, .has_no_label = !has_label};
    deltafs_table_destroy(t);
    return EXIT_OK;
}

const struct import_format import_raw = {.name = "raw", .begin = raw_begin, .inspect = raw_inspect};
