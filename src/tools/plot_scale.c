/* Ticks at round numbers. */
#include <math.h>
#include <stdio.h>
#include "tools/plot.h"

#define LARGEST  1e300 /* so that differences are numbers */
#define SAME     1e-12 /* a relative difference that is none */
#define SLACK    1e-9  /* of a step, for rounding */
#define TICK_MAX 50

int scale_can(double v)
{
    return fabs(v) < LARGEST; /* not NaN */
}

/* The smallest of 1, 2, 5, 10, 20, ... that is not below. */
static double scale_round(double step)
{
    double power = pow(10, floor(log10(step))), digit = step / power;

    return power * (digit <= 1 + SLACK ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static int scale_digits(double v)
{
    return (int)floor(log10(v) + SLACK);
}

void scale_make(struct scale *s, double low, double high, int most, int is_integer)
{
    double largest = fmax(fabs(low), fabs(high));

    if (!(high - low > SAME * largest)) {
        double half = fmax(fabs(low) / 20, largest > 0 ? 0 : 0.5);
        low -= half;
        high += half;
    }
    s->low = low;
    s->high = high;
    s->step = scale_round((high - low) / most);
    if (is_integer && s->step < 1)
        s->step = 1;
    s->first = ceil(low / s->step - SLACK) * s->step;
    s->ticks = 0;
    while (s->ticks < TICK_MAX && scale_tick(s, s->ticks) <= high + SLACK * s->step)
        s->ticks++;
    largest = fmax(fabs(low), fabs(high));
    s->power = largest >= (is_integer ? 1e9 : 1e5) || largest < 1e-2 ? scale_digits(largest) : 0;
    s->decimals = s->power - scale_digits(s->step);
    if (s->decimals < 0)
        s->decimals = 0;
}

double scale_place(const struct scale *s, double v)
{
    return s->from + (v - s->low) / (s->high - s->low) * (s->to - s->from);
}

double scale_tick(const struct scale *s, int i)
{
    double v = s->first + i * s->step;

    return fabs(v) < s->step / 2 ? 0 : v;
}

void scale_label(const struct scale *s, int i, char out[SCALE_LABEL_ROOM])
{
    double v = scale_tick(s, i) / pow(10, s->power);
    const char *minus = v < 0 ? "\xe2\x88\x92" : "";

    snprintf(out, SCALE_LABEL_ROOM, "%s%.*f", minus, s->decimals, fabs(v));
}
