/* From a draft to steps that can be run: those that the result needs, in vectors that are used again as soon as nothing
 * needs them any longer. */
#include <stdlib.h>
#include "base/memory.h"
#include "query/expr_types.h"

struct finish {
    struct draft *d;
    struct expr_bound *b;
    uint32_t *last_use; /* of each step: by which step, 1 more than its number; 0: none needs it */
    uint32_t *vector;   /* of each step */
    uint32_t *spare;    /* vectors that can be used again */
    size_t spares;
};

static int has_operands(const struct step *s)
{
    return s->code >= CODE_GATHER;
}

/* From the end: what a step needs is needed. */
static void finish_uses(struct finish *f, uint32_t result)
{
    f->last_use[result] = (uint32_t)f->d->count + 1;
    for (uint32_t i = (uint32_t)f->d->count; i-- > 0;) {
        const struct step *s = &f->d->step[i];
        if (f->last_use[i] == 0 || !has_operands(s))
            continue;
        if (f->last_use[s->a] == 0)
            f->last_use[s->a] = i + 1;
        if (f->last_use[s->b] == 0)
            f->last_use[s->b] = i + 1;
    }
}

static void finish_constants(struct finish *f)
{
    for (size_t i = 0; i < f->d->count; i++)
        if (f->last_use[i] > 0 && f->d->step[i].code == CODE_CONSTANT) {
            f->vector[i] = f->b->vectors++;
            f->b->step[f->b->constants++] = f->d->step[i];
        }
    f->b->count = f->b->constants;
}

static void finish_release(struct finish *f, uint32_t operand, uint32_t user)
{
    if (f->last_use[operand] == user + 1 && f->d->step[operand].code != CODE_CONSTANT)
        f->spare[f->spares++] = f->vector[operand];
}

static void finish_step(struct finish *f, uint32_t i)
{
    struct step s = f->d->step[i];
    struct step numbers = s;

    /* Operands are released afterwards: a step does not write where it reads. */
    f->vector[i] = s.out = f->spares > 0 ? f->spare[--f->spares] : f->b->vectors++;
    if (has_operands(&s)) {
        s.a = f->vector[numbers.a];
        s.b = f->vector[numbers.b];
        finish_release(f, numbers.a, i);
        if (numbers.b != numbers.a)
            finish_release(f, numbers.b, i);
    }
    f->b->step[f->b->count++] = s;
}

static void finish_all(struct finish *f, uint32_t result)
{
    const struct value *v = &f->d->value[result];

    finish_uses(f, result);
    finish_constants(f);
    for (uint32_t i = 0; i < f->d->count; i++)
        if (f->last_use[i] > 0 && f->d->step[i].code != CODE_CONSTANT)
            finish_step(f, i);
    f->b->result = f->vector[result];
    f->b->is_condition = v->is_condition;
    f->b->is_wide = v->is_wide;
    f->b->is_signed = v->low < 0;
}

int draft_finish(struct draft *d, uint32_t result, struct expr_bound *b)
{
    struct finish f = {.d = d, .b = b};
    int status = DELTAFS_OK;

    f.last_use = calloc(d->count, sizeof *f.last_use);
    f.vector = calloc(d->count, sizeof *f.vector);
    f.spare = calloc(d->count, sizeof *f.spare);
    b->step = calloc(d->count, sizeof *b->step);
    if (f.last_use && f.vector && f.spare && b->step)
        finish_all(&f, result);
    else
        status = error_no_memory(d->e, d->count * sizeof *b->step, "an expression");
    free(f.last_use);
    free(f.vector);
    free(f.spare);
    return status;
}
