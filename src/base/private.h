/* Marks what libdeltafs exports for libdeltafs_mpi of the same build: declared in headers that are not installed. */
#ifndef DELTAFS_BASE_PRIVATE_H
#define DELTAFS_BASE_PRIVATE_H

#define DELTAFS_PRIVATE __attribute__((visibility("default")))

#endif
