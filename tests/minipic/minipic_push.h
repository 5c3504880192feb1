/* The particles of minipic: how they are born, how they move, how they are lost. Knows no MPI.
 *
 * Motion is relativistic. A step drifts half a step, turns the momentum about the field there by Boris's rotation, and
 * drifts the other half: the leapfrog with position and momentum known at the same times. A magnetic field does no
 * work and the rotation keeps |u| but for rounding, so the energy's drift is a check of the program.
 *
 * A particle that passes a throat of the mirror is lost; the source then puts a new one into the middle of the bottle,
 * which takes over the ID with its count of lives one up. So the number of particles and their IDs never change.
 *
 * Particles do not act on each other, and a birth is a function of (ID, life) alone: every trajectory is the same, bit
 * by bit, however the particles are spread over ranks.
 *
 * Sources: J. P. Boris, "Relativistic plasma simulation", Proc. 4th Conf. on Numerical Simulation of Plasmas (1970);
 * C. K. Birdsall and A. B. Langdon, "Plasma Physics via Computer Simulation" (1985), sections 4-3, 4-4 and 15-4;
 * splitmix64: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
 */
#ifndef MINIPIC_PUSH_H
#define MINIPIC_PUSH_H

#include <stddef.h>
#include <stdint.h>

/* The step in inverse gyrofrequencies: 31 steps a turn in the middle, 10 at the throats. */
#define PUSH_DT 0.2

/* Sent between ranks as it is: 64 bytes without padding. */
struct particle {
    uint64_t id;
    uint64_t life; /* how often this ID has been born again */
    double x[3];
    double u[3]; /* momentum over mass: the Lorentz factor times the velocity */
};

/* What leaves and enters through losses and births; push_all adds to it. */
struct push_tally {
    uint64_t lost;
    double energy; /* brought by the new ones, less what the lost ones took */
};

/* The particle `id` at the start of its life number `life`: evenly in the source, a cylinder in the middle of the
 * bottle; each component of u from a normal distribution. */
void push_birth(uint64_t id, uint64_t life, struct particle *out);

double push_energy(const struct particle *p); /* kinetic */
double push_mu(const struct particle *p);     /* the magnetic moment u_perp^2 / (2 B) at its place */

/* The parts of a step; `half` is half the step over the Lorentz factor. */
void push_drift(struct particle *p, double half);
void push_rotate(double u[3], const double b[3], double half);

void push_step(struct particle *p, double dt);
/* A step of each, and a new life for those that are lost in it. */
void push_all(struct particle *p, size_t n, double dt, struct push_tally *tally);

#endif
