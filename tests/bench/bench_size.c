/* Size: what is on disk after the close, all files together, against the bytes of keys and values. It is the same in
 * each run, so one is enough. */
#include "bench_contest.h"
#include "bench_help.h"
#include "bench_sections.h"

#define EPOCHS    2
#define MAIN_SIZE 48

static void add_row(const struct bench *b, struct table *t, const struct dataset *d, double most)
{
    char path[256];
    struct job job = {.bench = b, .data = d, .memory = b->memory};
    struct outcome out;
    struct target target = {most > 0 ? BY_MEDIAN : NO_TARGET, most};

    job.path = bench_text(path, "%s/size", b->scratch);
    write_once(&engine_ours, &job, &out);
    tree_remove(path);
    table_row(t, d->name, spread_exact(out.stored / 1e6), "raw bytes", spread_exact((double)data_raw(d) / 1e6), target);
}

static size_t records(const struct bench *b, enum id_kind kind, size_t record)
{
    size_t bytes = b->is_quick ? 24000000 : 96000000;

    /* The main one is as large as the main ingest, so that an epoch has as many sorted runs. */
    if (kind == ID_DENSE && record == MAIN_SIZE)
        return b->is_quick ? 1000000 : 8000000;
    /* For each of these IDs 4,096 are looked at. */
    if (kind == ID_GAPS)
        return b->is_quick ? 50000 : 300000;
    return bytes / record;
}

void section_size(const struct bench *b, struct table *t)
{
    static const size_t sizes[] = {16, 40, MAIN_SIZE, 256};
    static const struct {
        enum id_kind kind;
        double most; /* of raw, at the main size */
    } kinds[] = {{ID_DENSE, 0.88}, {ID_GAPS, 0.92}, {ID_VPIC, 0}};
    struct dataset data;

    bench_say("size");
    table_begin(t, "size", "MB", LESS);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            data_make(&data, kinds[k].kind, EPOCHS, records(b, kinds[k].kind, sizes[i]), sizes[i] - 8);
            add_row(b, t, &data, sizes[i] == MAIN_SIZE ? kinds[k].most : 0);
            data_free(&data);
        }
    }
    if (b->vpic && data_load_vpic(&data, b->vpic)) {
        add_row(b, t, &data, 0.66);
        data_free(&data);
    }
}
