#include <float.h>
#include <math.h>
#include <string.h>
#include "query/value_index.h"

#define SIGN       0x80000000u
#define BELOW_ZERO 0x7f7fffffu /* of -FLT_MIN */

/* The code of a value below FLT_MIN is that of 0, or of -FLT_MIN, whatever the program does with denormal numbers. -0
 * is 0. The code below that of a float is that of the float below it. */
static inline uint64_t code_of(double value)
{
    float rounded = (float)value;
    uint32_t bits;

    memcpy(&bits, &rounded, sizeof bits);
    uint32_t code = (bits & SIGN ? ~bits : bits | SIGN) - ((double)rounded > value);
    code = fabs(value) < FLT_MIN ? (value < 0 ? BELOW_ZERO : SIGN) : code;
    return isnan(value) ? UINT32_MAX : code;
}

uint64_t value_index_code(double value)
{
    return code_of(value);
}

void value_index_codes(const double *value, size_t n, uint64_t *code)
{
    for (size_t i = 0; i < n; i++)
        code[i] = code_of(value[i]);
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
