/* CRC-32C (Castagnoli), by the processor's instruction where it has one. */
#ifndef DELTAFS_BASE_CRC32C_H
#define DELTAFS_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of `n` more bytes behind those whose CRC is `crc` (0 to begin). crc32c(0, "123456789", 9) is 0xe3069283. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t n);

/* The same from a table alone; for tests and other processors. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t n);

#endif
