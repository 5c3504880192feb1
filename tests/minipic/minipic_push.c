/* See minipic_push.h for the method and its sources. */
#include <math.h>
#include "minipic_field.h"
#include "minipic_push.h"

#define SOURCE_HALF_LENGTH (FIELD_LENGTH / 2)
#define SOURCE_RADIUS      1.0
#define SOURCE_SPREAD      0.2 /* standard deviation of each component of u */

static const double two_pi = 6.283185307179586;

/* splitmix64's finalizer: a bijection in which every bit of the input changes half of the output. */
static uint64_t mix(uint64_t v)
{
    v += UINT64_C(0x9e3779b97f4a7c15);
    v = (v ^ (v >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    v = (v ^ (v >> 27)) * UINT64_C(0x94d049bb133111eb);
    return v ^ (v >> 31);
}

/* A number in (0, 1], a function of its arguments alone. */
static double draw(uint64_t id, uint64_t life, uint64_t which)
{
    uint64_t bits = mix(mix(mix(id) + life) + which) >> 11;

    return ((double)bits + 1.0) * 0x1p-53;
}

void push_birth(uint64_t id, uint64_t life, struct particle *out)
{
    double radius = SOURCE_RADIUS * sqrt(draw(id, life, 0));
    double angle = two_pi * draw(id, life, 1);
    /* Box and Muller's transform: two pairs of draws make four normal numbers, of which three are used. */
    double size01 = SOURCE_SPREAD * sqrt(-2.0 * log(draw(id, life, 3)));
    double size2 = SOURCE_SPREAD * sqrt(-2.0 * log(draw(id, life, 5)));

    out->id = id;
    out->life = life;
    out->x[0] = radius * cos(angle);
    out->x[1] = radius * sin(angle);
    out->x[2] = SOURCE_HALF_LENGTH * (2.0 * draw(id, life, 2) - 1.0);
    out->u[0] = size01 * cos(two_pi * draw(id, life, 4));
    out->u[1] = size01 * sin(two_pi * draw(id, life, 4));
    out->u[2] = size2 * cos(two_pi * draw(id, life, 6));
}

static double square(const double v[3])
{
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
}

static void cross(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

double push_energy(const struct particle *p)
{
    double uu = square(p->u);

    return uu / (1.0 + sqrt(1.0 + uu)); /* the Lorentz factor less 1, without the cancellation */
}

double push_mu(const struct particle *p)
{
    double b[3], across[3];

    field_at(p->x, b);
    cross(p->u, b, across);
    double bb = square(b);
    return square(across) / (2.0 * bb * sqrt(bb));
}

void push_drift(struct particle *p, double half)
{
    for (int i = 0; i < 3; i++)
        p->x[i] += p->u[i] * half;
}

void push_rotate(double u[3], const double b[3], double half)
{
    double t[3] = {b[0] * half, b[1] * half, b[2] * half};
    double s = 2.0 / (1.0 + square(t));
    double turned[3], change[3];

    cross(u, t, turned);
    for (int i = 0; i < 3; i++)
        turned[i] += u[i];
    cross(turned, t, change);
    for (int i = 0; i < 3; i++)
        u[i] += s * change[i];
}

void push_step(struct particle *p, double dt)
{
    double half = 0.5 * dt / sqrt(1.0 + square(p->u));
    double b[3];

    push_drift(p, half);
    field_at(p->x, b);
    push_rotate(p->u, b, half);
    push_drift(p, half);
}

void push_all(struct particle *p, size_t n, double dt, struct push_tally *tally)
{
    for (size_t i = 0; i < n; i++) {
        push_step(&p[i], dt);
        if (fabs(p[i].x[2]) > FIELD_END) {
            tally->lost++;
            tally->energy -= push_energy(&p[i]);
            push_birth(p[i].id, p[i].life + 1, &p[i]);
            tally->energy += push_energy(&p[i]);
        }
    }
}
