/* A manifest: a byte (1: its lines get right checksums), then the file. */
#include <stdlib.h>
#include <string.h>
#include "fuzz_target.h"
#include "mem_io.h"
#include "store/manifest.h"
#include "structures.h"

static void check(const struct manifest *m)
{
    deltafs_schema *schema;

    FUZZ_CHECK(m->partitions >= 1 && m->partitions <= 1 << 20);
    FUZZ_CHECK(m->value_size >= -1 && m->value_size <= 1 << 20);
    FUZZ_CHECK(strlen(m->uuid_text) == MANIFEST_UUID_TEXT - 1);
    for (uint64_t i = 1; i < m->epoch_count; i++)
        FUZZ_CHECK(m->epoch[i].label > m->epoch[i - 1].label);
    if (m->schema[0] != '\0') {
        FUZZ_CHECK(deltafs_schema_parse(m->schema, &schema) == DELTAFS_OK);
        FUZZ_CHECK((int64_t)deltafs_schema_size(schema) == m->value_size);
        deltafs_schema_destroy(schema);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static struct mem_io files;
    struct fuzz_input in = {bytes, n};
    uint64_t mode = fuzz_number(&in, 1);
    uint8_t *text = fuzz_bytes(&in, SIZE_MAX, &n);
    struct manifest m;
    struct error e = {0};

    if (mode & 1)
        structures_seal_manifest(text, n);
    mem_io_begin(&files);
    mem_put(&files, "c/MANIFEST", text, n);
    struct io io = io_default();
    if (manifest_read(&io, "c", &m, &e) == DELTAFS_OK) {
        check(&m);
        manifest_fini(&m);
    } else {
        FUZZ_CHECK(strstr(e.text, "c/MANIFEST") != NULL);
    }
    FUZZ_CHECK(mem_io_end(&files) == 0);
    free(text);
    return 0;
}
