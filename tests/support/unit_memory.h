/* Allocations that fail. A program that is linked with this has a malloc of its own, for which the C library does the
 * work; sanitizers have theirs, and nothing fails. */
#ifndef DELTAFS_UNIT_MEMORY_H
#define DELTAFS_UNIT_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define UNIT_MEMORY_FAILS 1
#else
#define UNIT_MEMORY_FAILS 0
#endif

/* From here on allocation number `k` fails, counted from 0; or all of so many bytes. */
void unit_memory_fail_at(uint64_t k);
void unit_memory_fail_large(size_t least);
/* Nothing fails any more. Returns whether something did. */
int unit_memory_end(void);

#endif
