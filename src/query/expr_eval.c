/* Evaluation: LANES records at a time through all steps. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "query/expr_code.h"

struct expr_work {
    const struct expr_bound *bound;
    union lanes *vector;
};

int expr_work_create(const struct expr_bound *b, struct expr_work **out, struct error *e)
{
    struct expr_work *w = calloc(1, sizeof *w);

    if (w)
        w->vector = calloc(b->vectors, sizeof *w->vector);
    if (!w || !w->vector) {
        free(w);
        return error_no_memory(e, b->vectors * sizeof *w->vector, "evaluating an expression");
    }
    w->bound = b;
    for (size_t c = 0; c < b->constants; c++)
        for (size_t i = 0; i < LANES; i++)
            w->vector[c].u[i] = b->step[c].bits;
    *out = w;
    return DELTAFS_OK;
}

void expr_work_destroy(struct expr_work *w)
{
    if (!w)
        return;
    free(w->vector);
    free(w);
}

/* The records from `first` on, at most LANES. */
static const union lanes *work_run(struct expr_work *w, size_t first, size_t n, const struct expr_column *columns)
{
    const struct expr_bound *b = w->bound;

    for (size_t i = b->constants; i < b->count; i++) {
        const struct step *s = &b->step[i];
        union lanes *out = &w->vector[s->out];
        if (s->code >= CODE_LOAD_F4 && s->code <= CODE_LOAD_WIDE)
            expr_load(s->code, &columns[s->item], first, n, out);
        else
            expr_step(s, b->array, n, &w->vector[s->a], &w->vector[s->b], out);
    }
    return &w->vector[b->result];
}

static void work_copy(const struct expr_bound *b, const union lanes *from, size_t n, double *out)
{
    if (b->is_wide && b->is_signed)
        for (size_t i = 0; i < n; i++)
            out[i] = (double)(int64_t)from->u[i];
    else if (b->is_wide)
        for (size_t i = 0; i < n; i++)
            out[i] = (double)from->u[i];
    else
        memcpy(out, from->d, n * sizeof *out);
}

void expr_eval(struct expr_work *w, size_t n, const struct expr_column *columns, double *out)
{
    for (size_t first = 0; first < n; first += LANES) {
        size_t some = n - first < LANES ? n - first : LANES;
        work_copy(w->bound, work_run(w, first, some, columns), some, out + first);
    }
}

void expr_test(struct expr_work *w, size_t n, const struct expr_column *columns, uint8_t *out)
{
    for (size_t first = 0; first < n; first += LANES) {
        size_t some = n - first < LANES ? n - first : LANES;
        const union lanes *from = work_run(w, first, some, columns);
        memset(out + first, 1, some);
        expr_at_least(from->d, 0.5, some, out + first);
    }
}
