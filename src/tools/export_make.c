/* From what the command line says to the file. */
#include <string.h>
#include "tools/copy.h"
#include "tools/export.h"
#include "tools/target.h"

/* The directory's properties, and how many rows are expected if no keys are given. */
static int export_look(const struct export_request *r, struct export *x)
{
    struct deltafs_stat stat = {.struct_size = sizeof stat};
    struct deltafs_epoch_stat e = {.struct_size = sizeof e};
    int status = deltafs_stat(x->dir, &stat);

    x->value_size = status == DELTAFS_OK && stat.value_size > 0 ? (uint32_t)stat.value_size : 0;
    x->has_bytes_keys = status == DELTAFS_OK && strcmp(stat.keys, "bytes") == 0;
    for (uint64_t i = 0; i < stat.epochs && status == DELTAFS_OK; i++) {
        status = deltafs_epoch_stat(x->dir, i, &e);
        if (!r->epochs.is_given || (e.label >= r->epochs.range.first && e.label <= r->epochs.range.last))
            x->expected += e.records;
    }
    return text_of_call(status);
}

static int export_collect_keys(const struct export_request *r, const struct command_call *c, struct key_list *keys)
{
    int code = key_list_check_hex(keys);

    for (int i = 1; i < c->count && code == EXIT_OK; i++)
        code = key_list_add(keys, c->operand[i], strlen(c->operand[i]));
    return code == EXIT_OK && r->keys_file ? key_list_read(keys, r->keys_file) : code;
}

int export_open(struct export *x, const struct export_request *r, const struct command_call *c, struct key_list *keys)
{
    int code = target_open_records(text_path(c->operand[0]), &x->dir);

    if (code == EXIT_OK)
        code = export_look(r, x);
    *keys = (struct key_list){.command = x->command, .is_hex = r->is_hex, .is_bytes = x->has_bytes_keys};
    x->has_keys = c->count > 1 || r->keys_file;
    return code == EXIT_OK ? export_collect_keys(r, c, keys) : code;
}

int export_make(struct export *x, const struct export_request *r, struct key_list *keys)
{
    struct export_source s = {
        .fields = r->fields, .range = r->epochs.is_given ? &r->epochs.range : NULL, .keys = x->has_keys ? keys : NULL};
    struct export_file file = {.is_forced = r->is_forced};
    int code = export_file_make(&file, r->to, x);

    if (code != EXIT_OK)
        return code;
    code = export_read(&s, x, r->format);
    if (code == EXIT_OK && s.rows == 0 && !s.is_not_found)
        code = text_fail(s.is_damaged ? EXIT_TROUBLE : EXIT_NOT_FOUND, "%s: no records", x->command);
    int finished = export_file_finish(&file, x, code == EXIT_OK && s.rows > 0);
    code = code == EXIT_OK ? finished : code;
    if (code == EXIT_OK && s.is_damaged)
        return text_fail(EXIT_TROUBLE, "%s: %s has the rows that can be read, but not all", x->command, x->name);
    return code == EXIT_OK && s.is_not_found ? EXIT_NOT_FOUND : code;
}

void export_close(struct export *x, struct key_list *keys)
{
    export_columns_free(x);
    key_list_fini(keys);
    deltafs_close(x->dir);
    copy_release_signals();
}
