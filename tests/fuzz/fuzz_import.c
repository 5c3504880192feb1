/* The importers: a byte (1: raw), for raw a schema, a key and the bytes to skip, each in a line; then the file. Built
 * with deltafs_append_many replaced by fuzz_append_many, which only looks at what it is given. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz_target.h"
#include "tools/import.h"

int fuzz_append_many(deltafs_dir *d, size_t n, const void *keys, size_t key_stride, const void *values,
                     size_t value_stride, size_t size)
{
    (void)d;
    for (size_t i = 0; i < n; i++) {
        fuzz_touch((const uint8_t *)keys + i * key_stride, 8);
        fuzz_touch((const uint8_t *)values + i * value_stride, size);
    }
    return DELTAFS_OK;
}

static void import_file(const struct import_format *format, const struct import_options *o, const struct input *in)
{
    struct import_layout layout = {.options = *o};
    struct import_file file = {0};
    deltafs_schema *schema;
    struct progress bar = {0};

    if (format->begin(&layout) == EXIT_OK) {
        FUZZ_CHECK(layout.size > 0 && deltafs_schema_parse(layout.schema, &schema) == DELTAFS_OK);
        size_t added = layout.has_part ? sizeof(uint32_t) : 0, taken = layout.has_key ? layout.key_size : 0;
        FUZZ_CHECK(deltafs_schema_size(schema) == layout.size + added - taken);
        deltafs_schema_destroy(schema);
        int code = format->inspect(&layout, in, &file);
        if (code == EXIT_OK)
            code = import_records(&layout, &file, in, 0, file.records, NULL, &bar);
        FUZZ_CHECK(code == EXIT_OK ? bar.done == file.records : strstr(text_kept(), in->path) != NULL);
    } else {
        FUZZ_CHECK(text_kept()[0] != '\0');
    }
    free(layout.schema);
    free(layout.record);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static int fd = -1;
    struct fuzz_input in = {bytes, n};
    struct import_options o = {0};
    int is_raw = fuzz_number(&in, 1) & 1;
    char *schema = is_raw ? fuzz_line(&in) : NULL, *key = is_raw ? fuzz_line(&in) : NULL;
    char *skip = is_raw ? fuzz_line(&in) : NULL;

    if (fd < 0)
        fd = memfd_create("fuzz", 0);
    FUZZ_CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, in.bytes, in.n, 0) == (ssize_t)in.n);
    if (is_raw)
        o = (struct import_options){.schema = schema, .key = key, .skip = {1, strtoull(skip, NULL, 0)}};
    import_file(is_raw ? &import_raw : &import_vpic, &o, &(struct input){.path = "dump", .fd = fd, .size = in.n});
    free(schema);
    free(key);
    free(skip);
    return 0;
}
