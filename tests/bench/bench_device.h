/* A slow storage device in place of the operating system's: the library's table of file operations, with writes and
 * syncs that take the time that a device of a given speed would. The files are written, but what counts is the
 * device's own clock: it has no noise, and it is the same for both sides.
 *
 * The device works on what has been written in the order of the calls. A write returns at once as long as less than
 * DEVICE_CACHE bytes are waiting (the page cache, as it is limited on a busy node), else it waits until that is so. A
 * sync waits until the device is done, and a little longer. */
#ifndef BENCH_DEVICE_H
#define BENCH_DEVICE_H

#define DEVICE_CACHE (4u << 20)
#define DEVICE_SYNC  1e-3 /* seconds */

/* For all directories opened from now on in this process. */
void device_install(double bytes_per_second);
/* How many bytes it has been given. */
double device_bytes(void);

#endif
