/* A manifest: a byte (1: its lines get right checksums; 2: it is a file SOURCES instead), then the file. */
#include <stdlib.h>
#include <string.h>
#include "fuzz_target.h"
#include "mem_io.h"
#include "directory/format/manifest.h"
#include "fileindex/sources.h"
#include "structures.h"

static void check(const struct manifest *m)
{
    deltafs_schema *schema;

    FUZZ_CHECK(m->partitions >= 1 && m->partitions <= 1 << 20);
    FUZZ_CHECK(m->value_size >= -1 && m->value_size <= 1 << 20);
    FUZZ_CHECK(strlen(m->uuid_text) == UUID_TEXT_SIZE - 1);
    for (uint64_t i = 1; i < m->epoch_count; i++)
        FUZZ_CHECK(m->epoch[i].label > m->epoch[i - 1].label);
    for (size_t i = 0; i < m->pivots_count; i++)
        for (uint32_t k = 0; k + 1 < m->partitions; k++)
            FUZZ_CHECK(partition_of(&(struct partitioner){.partitions = m->partitions, .pivots = m->pivots[i].key},
                                    m->pivots[i].key[k]) > k);
    if (m->schema[0] != '\0') {
        FUZZ_CHECK(deltafs_schema_parse(m->schema, &schema) == DELTAFS_OK);
        FUZZ_CHECK((int64_t)deltafs_schema_size(schema) == m->value_size);
        deltafs_schema_destroy(schema);
    }
}

/* What is read of a source for any of its rows is within it. */
static void check_source(const struct source_entry *s)
{
    FUZZ_CHECK((s->table_count == 0) == (s->is_begun != 0) && s->path[0] != '\0');
    for (size_t i = 0; i < s->table_count; i++) {
        const struct deltafs_table *t = &s->table[i].table;
        FUZZ_CHECK(t->key < t->column_count && source_table_group(&s->table[i]) >= 1);
        for (size_t k = 0; k < t->column_count && t->rows > 0; k++) {
            const struct deltafs_column *c = &t->column[k];
            const uint64_t rows[] = {0, t->rows / 3, t->rows - 1};
            for (size_t r = 0; r < 3; r++) {
                uint64_t place = column_place(c, rows[r]);
                FUZZ_CHECK(place <= s->identity.size && c->size <= s->identity.size - place);
            }
        }
    }
}

static void try_sources(struct io *io)
{
    struct sources s;
    struct error e = {0};

    if (sources_read(io, "/c/SOURCES", &s, &e) != DELTAFS_OK) {
        FUZZ_CHECK(strstr(e.text, "/c/SOURCES") != NULL);
        return;
    }
    for (size_t i = 0; i < s.count; i++) {
        struct source_entry again;
        char *text;
        check_source(&s.source[i]);
        if (s.source[i].is_begun)
            continue;
        /* What is written of it says the same. */
        FUZZ_CHECK(sources_format(&s.source[i], 1, SOURCE_TABLES | SOURCE_END, &text, &e) == DELTAFS_OK);
        FUZZ_CHECK(source_parse(text, "text", &again, &e) == DELTAFS_OK);
        FUZZ_CHECK(strcmp(again.path, s.source[i].path) == 0 && again.table_count == s.source[i].table_count);
        source_fini(&again);
        free(text);
    }
    sources_fini(&s);
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
    mem_put(&files, mode & 2 ? "/c/SOURCES" : "/c/MANIFEST", text, n);
    struct io io = io_default();
    if (mode & 2) {
        try_sources(&io);
    } else if (manifest_read(&io, "/c", &m, &e) == DELTAFS_OK) {
        check(&m);
        manifest_fini(&m);
    } else {
        FUZZ_CHECK(strstr(e.text, "/c/MANIFEST") != NULL);
    }
    FUZZ_CHECK(mem_io_end(&files) == 0);
    free(text);
    return 0;
}
