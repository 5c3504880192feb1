/* Memory while writing, against the budget: the library's own account, and what the system says the process grew by.
 * An epoch is larger than the largest budget, so that all of it is wanted. The system counts a process's pages in lots
 * of up to 64 a processor, so its figure can be off by some hundred KiB. */
#include <stdio.h>
#include "bench_contest.h"
#include "bench_help.h"
#include "bench_sections.h"

#define EPOCHS 2

void section_memory(const struct bench *b, struct table *t)
{
    static const unsigned budgets[] = {8, 32, 128}; /* MiB */
    enum { BUDGETS = sizeof budgets / sizeof budgets[0] };
    const struct target never_above = {BY_WORST, 1};
    double outside[BUDGETS][RUNS_MAX], inside[BUDGETS][RUNS_MAX];
    char path[256], label[256];
    struct dataset data;

    data_make(&data, ID_DENSE, EPOCHS, b->is_quick ? 3000000 : 6000000, 40);
    bench_say("memory: %s", data.name);
    for (unsigned run = 0; run < b->runs; run++) {
        for (int i = 0; i < BUDGETS; i++) {
            struct job job = {.bench = b, .data = &data, .memory = (uint64_t)budgets[i] << 20};
            struct outcome out;
            job.path = bench_text(path, "%s/memory", b->scratch);
            write_once(&engine_ours, &job, &out);
            tree_remove(path);
            outside[i][run] = out.memory / (1 << 20);
            inside[i][run] = out.library_peak / (1 << 20);
        }
    }
    table_begin(t, "memory while writing, against the budget", "MiB", LESS);
    for (int i = 0; i < BUDGETS; i++) {
        table_row(t, bench_text(label, "memory=%uM, process's growth", budgets[i]), spread_of(outside[i], b->runs),
                  "budget", spread_exact(budgets[i]), never_above);
        table_row(t, bench_text(label, "memory=%uM, library's account", budgets[i]), spread_of(inside[i], b->runs),
                  "budget", spread_exact(budgets[i]), never_above);
    }
    data_free(&data);
}
