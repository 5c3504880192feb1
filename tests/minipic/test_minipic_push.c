/* The physics of minipic against formulas: each test says its tolerance and where the rest of the error comes from.
 * Lengths, times and masses are those of minipic_field.h. No MPI. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "minipic_field.h"
#include "minipic_push.h"

static const double pi = 3.14159265358979323846;

static double norm(const double v[3])
{
    return sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
}

static void check_near(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%s: got %.17g, want %.17g within %g", what, got, want, tolerance);
}

/* d B_row / d x_column by a central difference, which is exact but for rounding, as the field is quadratic. */
static double slope(const double x[3], int row, int column)
{
    const double h = 1e-3;
    double low[3], high[3], b_low[3], b_high[3];

    memcpy(low, x, sizeof low);
    memcpy(high, x, sizeof high);
    low[column] -= h;
    high[column] += h;
    field_at(low, b_low);
    field_at(high, b_high);
    return (b_high[row] - b_low[row]) / (2.0 * h);
}

static void test_field_is_a_vacuum_field(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        const double x[3] = {2.0 * sin(i), 2.0 * cos(3.0 * i), FIELD_END * sin(7.0 * i)};
        check_near(slope(x, 0, 0) + slope(x, 1, 1) + slope(x, 2, 2), 0.0, 1e-11, "div B");
        check_near(slope(x, 2, 1) - slope(x, 1, 2), 0.0, 1e-11, "curl B, x");
        check_near(slope(x, 0, 2) - slope(x, 2, 0), 0.0, 1e-11, "curl B, y");
        check_near(slope(x, 1, 0) - slope(x, 0, 1), 0.0, 1e-11, "curl B, z");
    }
}

static void test_field_on_the_axis(void **state)
{
    const double middle[3] = {0.0, 0.0, 0.0}, throat[3] = {0.0, 0.0, -FIELD_END};
    double b[3];

    (void)state;
    field_at(middle, b);
    check_near(norm(b), FIELD_B0, 0.0, "B in the middle");
    field_at(throat, b);
    check_near(norm(b), FIELD_B0 * FIELD_RATIO, 1e-15, "B at the throat");
}

/* The rotation keeps |u| but for rounding: about 1e-16 a step, mostly cancelling over 200,000 of them. */
static void test_rotation_keeps_momentum(void **state)
{
    double u[3] = {0.3, -0.2, 0.5};
    const double before = norm(u);

    (void)state;
    for (int i = 0; i < 200000; i++) {
        const double b[3] = {sin(i), cos(2.0 * i), 3.0 * sin(5.0 * i)};
        push_rotate(u, b, 0.1);
    }
    check_near(norm(u) / before, 1.0, 1e-12, "|u|");
}

/* In a uniform field along z: `steps` steps about the centre. Returns the angle turned; the greatest deviation of the
 * distance from the centre goes to *off. */
static double gyrate(double b_z, double dt, int steps, double *off)
{
    const double b[3] = {0.0, 0.0, b_z};
    struct particle p = {.x = {1.0, 2.0, 3.0}, .u = {0.4, 0.3, 0.2}};
    const double gamma = sqrt(1.0 + 0.25 + 0.04), radius = 0.5 / b_z;
    const double centre[2] = {p.x[0] + p.u[1] / b_z, p.x[1] - p.u[0] / b_z};
    double turned = 0.0;

    *off = 0.0;
    for (int i = 0; i < steps; i++) {
        const double before = atan2(p.x[1] - centre[1], p.x[0] - centre[0]);
        push_drift(&p, 0.5 * dt / gamma);
        push_rotate(p.u, b, 0.5 * dt / gamma);
        push_drift(&p, 0.5 * dt / gamma);
        /* A positive charge turns clockwise. */
        const double angle = before - atan2(p.x[1] - centre[1], p.x[0] - centre[0]);
        turned += angle < 0.0 ? angle + 2.0 * pi : angle;
        *off = fmax(*off, fabs(hypot(p.x[0] - centre[0], p.x[1] - centre[1]) - radius));
    }
    check_near(p.x[2], 3.0 + 0.2 / gamma * dt * steps, 1e-10, "the way along the field");
    return turned;
}

/* With the half drifts before and after, the positions lie on the very circle of radius u_perp / B, and the frequency
 * B / gamma is low by the factor atan(h) / h = 1 - h^2 / 3 + ..., h = B dt / (2 gamma) (Birdsall & Langdon, 4-4). */
static void test_gyration(void **state)
{
    const double gamma = sqrt(1.29), steps = 1000;
    double off;

    (void)state;
    for (double b_z = 0.5; b_z < 4.0; b_z *= 2.0) {
        const double omega = b_z / gamma, h = 0.5 * omega * PUSH_DT;
        const double got = gyrate(b_z, PUSH_DT, (int)steps, &off) / (steps * PUSH_DT);
        check_near(off, 0.0, 1e-11, "the gyroradius");
        check_near(got / omega, atan(h) / h, 1e-11, "the gyrofrequency of Boris's rotation");
        check_near(got / omega, 1.0, h * h / 3.0, "the gyrofrequency");

        const double halved = gyrate(b_z, 0.5 * PUSH_DT, (int)steps, &off) / (steps * 0.5 * PUSH_DT);
        check_near((1.0 - got / omega) / (1.0 - halved / omega), 4.0, 0.1, "the order of convergence");
    }
}

/* In the middle of the bottle, gyrating about a line `off` the axis, with sin^2 of the pitch angle as given. */
static struct particle launch(double u, double sin2, double off)
{
    const double across = u * sqrt(sin2);

    return (struct particle){.x = {off + across / FIELD_B0, 0.0, 0.0}, .u = {0.0, -across, u * sqrt(1.0 - sin2)}};
}

/* Along a bounce of a trapped particle (gyroradius over L: 1/23): it turns where B = B0 / sin^2 a, comes back after the
 * period 2 pi L gamma / u_perp of the harmonic motion along the axis, and keeps mu. Tolerances are relative: mu at each
 * moment, mu averaged over each turn of the gyration, and turning point and period. */
static void check_bounce(double off, double tol_mu, double tol_average, double tol_orbit)
{
    const double u = 0.3, sin2 = 0.75, gamma = sqrt(1.0 + u * u);
    struct particle p = launch(u, sin2, off);
    const double mu = push_mu(&p), period = 2.0 * pi * FIELD_LENGTH * gamma / (u * sqrt(sin2));
    double time = 0.0, top = 0.0, sum = 0.0, turn = 0.0, b[3];
    int crossings = 0, turns = 0, samples = 0;

    while (crossings < 2) {
        const double before = p.x[2];
        push_step(&p, PUSH_DT);
        time += PUSH_DT;
        top = fmax(top, p.x[2]);
        crossings += before != 0.0 && (before > 0.0) != (p.x[2] > 0.0);
        check_near(push_mu(&p) / mu, 1.0, tol_mu, "mu");
        field_at(p.x, b);
        turn += norm(b) / gamma * PUSH_DT;
        sum += push_mu(&p);
        samples++;
        if (turn >= 2.0 * pi) {
            check_near(sum / samples / mu, 1.0, tol_average, "mu over a gyration");
            turn -= 2.0 * pi;
            sum = 0.0;
            samples = 0;
            turns++;
        }
        assert_true(time < 2.0 * period);
    }
    assert_true(turns > 20);
    check_near(top / (FIELD_LENGTH * sqrt(1.0 / sin2 - 1.0)), 1.0, tol_orbit, "the turning point");
    check_near(time / period, 1.0, tol_orbit, "the bounce's period");
    check_near(norm(p.u) / u, 1.0, 1e-13, "|u|");
}

/* About the axis the gyration sees one strength of the field all around, and the theory is met closely. */
static void test_bounce_about_the_axis(void **state)
{
    (void)state;
    check_bounce(0.0, 0.0005, 0.0005, 0.002);
}

/* Off the axis mu wavers within each gyration, to first order in the gyroradius over L; its average does much less. */
static void test_bounce_off_the_axis(void **state)
{
    (void)state;
    check_bounce(1.0, 0.05, 0.02, 0.02);
}

/* Whether a particle is still in the bottle after five bounces. */
static int is_trapped(double u, double sin2)
{
    struct particle p = launch(u, sin2, 0.0);
    const double end = 5.0 * 2.0 * pi * FIELD_LENGTH * sqrt(1.0 + u * u) / (u * sqrt(sin2));

    for (double time = 0.0; time < end; time += PUSH_DT) {
        push_step(&p, PUSH_DT);
        if (fabs(p.x[2]) > FIELD_END)
            return 0;
    }
    return 1;
}

/* The edge of the loss cone, found by bisection for particles about the axis, is where sin^2 a = B0 / Bm, within 0.2%
 * (mu keeps to 0.05%, see above; the smaller the gyroradius the better). */
static void test_loss_cone(void **state)
{
    (void)state;
    for (double u = 0.05; u < 0.3; u *= 2.0) {
        double lost = 0.1, trapped = 0.9;
        assert_false(is_trapped(u, lost));
        assert_true(is_trapped(u, trapped));
        while (trapped - lost > 1e-4) {
            const double middle = 0.5 * (lost + trapped);
            if (is_trapped(u, middle))
                trapped = middle;
            else
                lost = middle;
        }
        check_near(trapped * FIELD_RATIO, 1.0, 0.002, "the edge of the loss cone");
    }
}

/* A birth is a function of ID and life alone, in the source, and isotropic: the means over 20,000 births have standard
 * errors of 0.4% to 1%, so 4% is outside chance. */
static void test_births(void **state)
{
    enum { N = 20000 };
    double sum[3] = {0.0}, square[3] = {0.0}, z = 0.0;
    struct particle p, again, reborn;

    (void)state;
    for (uint64_t id = 0; id < N; id++) {
        push_birth(id, 0, &p);
        push_birth(id, 0, &again);
        push_birth(id, 1, &reborn);
        assert_memory_equal(&p, &again, sizeof p);
        assert_true(memcmp(p.x, reborn.x, sizeof p.x) != 0 && memcmp(p.u, reborn.u, sizeof p.u) != 0);
        assert_true(reborn.id == id && reborn.life == 1);
        assert_true(fabs(p.x[2]) <= FIELD_LENGTH / 2 && hypot(p.x[0], p.x[1]) <= 1.0);
        z += p.x[2] / (FIELD_LENGTH / 2);
        for (int i = 0; i < 3; i++) {
            sum[i] += p.u[i] / 0.2;
            square[i] += p.u[i] * p.u[i] / 0.04;
        }
    }
    check_near(z / N, 0.0, 0.04, "mean z");
    for (int i = 0; i < 3; i++) {
        check_near(sum[i] / N, 0.0, 0.04, "mean u");
        check_near(square[i] / N, 1.0, 0.04, "mean square of u");
    }
}

/* Losses: the ID stays, the life goes up by one, nobody is left outside, the energy is accounted for to rounding, and
 * particles of this source that were clearly in the loss cone have all been lost once. */
static void test_losses(void **state)
{
    enum { N = 2000, STEPS = 1000 };
    struct particle *p = calloc(N, sizeof *p);
    struct push_tally tally = {0};
    double before = 0.0, after = 0.0;
    uint64_t lives = 0;

    (void)state;
    assert_non_null(p);
    for (uint64_t id = 0; id < N; id++) {
        push_birth(id, 0, &p[id]);
        before += push_energy(&p[id]);
    }
    for (int step = 0; step < STEPS; step++)
        push_all(p, N, PUSH_DT, &tally);
    for (uint64_t id = 0; id < N; id++) {
        struct particle birth;
        double b[3];
        push_birth(id, 0, &birth);
        field_at(birth.x, b);
        const double edge = norm(b) / (FIELD_B0 * FIELD_RATIO); /* sin^2 of the pitch angle at its place */
        const double sin2 = push_mu(&birth) * 2.0 * norm(b) / (norm(birth.u) * norm(birth.u));
        if (sin2 < 0.5 * edge && norm(birth.u) > 0.2 && norm(birth.u) < 0.5)
            assert_true(p[id].life > 0);
        if (sin2 > 1.5 * edge && norm(birth.u) < 0.5)
            assert_true(p[id].life == 0);
        assert_true(p[id].id == id);
        assert_true(fabs(p[id].x[2]) <= FIELD_END);
        lives += p[id].life;
        after += push_energy(&p[id]);
    }
    assert_true(lives == tally.lost && tally.lost > 0);
    check_near((after - tally.energy) / before, 1.0, 1e-12, "energy");
    free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_field_is_a_vacuum_field),
        cmocka_unit_test(test_field_on_the_axis),
        cmocka_unit_test(test_rotation_keeps_momentum),
        cmocka_unit_test(test_gyration),
        cmocka_unit_test(test_bounce_about_the_axis),
        cmocka_unit_test(test_bounce_off_the_axis),
        cmocka_unit_test(test_loss_cone),
        cmocka_unit_test(test_births),
        cmocka_unit_test(test_losses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
