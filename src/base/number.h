/* Numbers from texts, strictly: the whole text must be the number. Return 0, or -1 and leave *out alone. */
#ifndef DELTAFS_BASE_NUMBER_H
#define DELTAFS_BASE_NUMBER_H

#include <stdint.h>

int number_parse(const char *text, uint64_t *out);      /* decimal, or hexadecimal after 0x */
int number_parse_size(const char *text, uint64_t *out); /* decimal with an optional K, M, G or T (powers of 1024) */

#endif
