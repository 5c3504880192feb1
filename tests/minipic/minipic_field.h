/* The magnetic field of minipic: a simple mirror (a magnetic bottle) around the z axis, given by a formula.
 *
 *     Bz = B0 (1 + (z^2 - r^2 / 2) / L^2)        Br = -B0 r z / L^2
 *
 * It is the vacuum field (no divergence and no curl) whose strength on the axis is B0 (1 + (z / L)^2). The bottle ends
 * at its throats, z = +-FIELD_END, where the strength on the axis is FIELD_RATIO * B0: a particle whose pitch angle a
 * at the middle has sin^2 a > 1 / FIELD_RATIO is trapped, the others are in the loss cone.
 *
 * Units (all of minipic): the speed of light, the particles' charge over mass, their mass and B0 are 1. So times are in
 * inverse gyrofrequencies at the middle, and lengths in light's way in one of those.
 *
 * Source: the lowest terms of the usual expansion near the axis, as in R. F. Post, "The magnetic mirror approach to
 * fusion", Nuclear Fusion 27 (1987) 1579.
 */
#ifndef MINIPIC_FIELD_H
#define MINIPIC_FIELD_H

#define FIELD_B0     1.0
#define FIELD_LENGTH 6.0 /* L: about 20 gyroradii of a typical particle, so that its magnetic moment keeps */
#define FIELD_END    9.0
#define FIELD_RATIO  (1.0 + FIELD_END * FIELD_END / (FIELD_LENGTH * FIELD_LENGTH))

void field_at(const double x[3], double b[3]);

#endif
