#include <float.h>
#include <math.h>
#include <string.h>
#include "query/value_index.h"

#define SIGN 0x80000000u

uint64_t value_index_code(double value)
{
    float rounded = (float)value;
    uint32_t bits;

    if (isnan(value))
        return UINT32_MAX;
    if ((double)rounded > value)
        rounded = nextafterf(rounded, -INFINITY);
    if (fabs(value) < FLT_MIN) /* whatever the program does with denormal numbers; -0 is 0 */
        rounded = value < 0 ? -FLT_MIN : 0;
    memcpy(&bits, &rounded, sizeof bits);
    return bits & SIGN ? ~bits : bits | SIGN;
}

int value_index_fingerprint(const struct manifest *m, const deltafs_schema *schema, const struct expr *x,
                            uint64_t label, uint64_t *out, struct error *e)
{
    struct columns c = {.manifest = m, .schema = schema, .label = label, .last = UINT64_MAX};
    const struct expr_scope scope = columns_scope(&c);
    struct expr_bound *bound = NULL;
    int status = expr_bind(x, &scope, EXPR_NUMBER, &bound, e);

    if (status == DELTAFS_OK)
        *out = expr_fingerprint(bound);
    expr_bound_destroy(bound);
    return status;
}
