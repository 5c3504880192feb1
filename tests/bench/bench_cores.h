/* How far two processors are from one another. */
#ifndef BENCH_CORES_H
#define BENCH_CORES_H

/* Nanoseconds in which two of this process' processors pass a cache line to and fro; 0 if it has but one. Some 40 to
 * 130 where they share a cache, several times that where they are on different dies: virtual machines are moved about.
 */
double bench_cores(void);

#endif
