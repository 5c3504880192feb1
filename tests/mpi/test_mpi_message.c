#include "mpi/shuffle/plan.h"
#include "test_mpi_message.h"

int __real_plan_make(struct plan *p, const struct layout *l, const struct plan_options *options, struct error *e);
int __wrap_plan_make(struct plan *p, const struct layout *l, const struct plan_options *options, struct error *e);

static uint64_t limit;

void limit_message(uint64_t bytes)
{
    limit = bytes;
}

int __wrap_plan_make(struct plan *p, const struct layout *l, const struct plan_options *options, struct error *e)
{
    struct plan_options limited = *options;

    limited.message = limit;
    return __real_plan_make(p, l, &limited, e);
}
