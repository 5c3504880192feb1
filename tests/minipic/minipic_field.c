/* See minipic_field.h for the formula. */
#include "minipic_field.h"

void field_at(const double x[3], double b[3])
{
    const double per_area = FIELD_B0 / (FIELD_LENGTH * FIELD_LENGTH);

    b[0] = -per_area * x[0] * x[2];
    b[1] = -per_area * x[1] * x[2];
    b[2] = FIELD_B0 + per_area * (x[2] * x[2] - 0.5 * (x[0] * x[0] + x[1] * x[1]));
}
