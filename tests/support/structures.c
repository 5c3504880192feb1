#include <stdio.h>
#include <string.h>
#include "base/coding.h"
#include "base/crc32c.h"
#include "directory/format/block.h"
#include "directory/format/directory_format.h"
#include "io/log.h"
#include "logical/format/logical_format.h"
#include "structures.h"

#define LINE_SUFFIX 10 /* " ~" and eight digits */

size_t structure_length(const uint8_t *bytes, size_t n, size_t at)
{
    static const size_t least[] = {LOG_HEADER_SIZE,   BLOCK_HEADER_SIZE, LEAF_HEADER_SIZE,
                                   FENCE_HEADER_SIZE, FOOTER_SIZE,       TAIL_TRAILER_SIZE};
    const uint8_t *p = bytes + at;
    size_t left = n - at, length;

    if (left >= BLOCK_HEADER_SIZE && p[4] == FORMAT_VALUES) {
        length = block_values_length(p);
        return length <= left ? length : 0;
    }
    if (left < LOG_HEADER_SIZE || p[4] < FORMAT_LOG_HEADER || p[4] > FORMAT_TAIL)
        return 0;
    size_t header = least[p[4] - FORMAT_LOG_HEADER];
    if (p[4] == FORMAT_BLOCK)
        length = header + get_u32(p + 8);
    else if (p[4] == FORMAT_LEAF || p[4] == FORMAT_FENCE)
        length = get_u32(p + 8);
    else
        length = header;
    return length >= header && length <= left ? length : 0;
}

static void seal_trailer(uint32_t seed, uint8_t *bytes, size_t at)
{
    uint8_t *t = bytes + at;
    uint64_t length = get_u64(t + 16);

    if (length < TAIL_TRAILER_SIZE || length > at + TAIL_TRAILER_SIZE)
        return;
    size_t before = (size_t)length - TAIL_TRAILER_SIZE;
    put_u32(t, crc32c(crc32c(seed, t - before, before), t + 4, TAIL_TRAILER_SIZE - 4));
}

void structures_seal_block(uint32_t seed, uint8_t *block, size_t n, uint32_t strips)
{
    size_t table = BLOCK_HEADER_SIZE + BLOCK_TABLE_ENTRY * strips, at = table;

    if (n < table || !(block[5] & BLOCK_FLAG_STRIPS)) {
        log_seal(seed, block, n);
        return;
    }
    for (uint8_t *entry = block + BLOCK_HEADER_SIZE; entry < block + table; entry += BLOCK_TABLE_ENTRY) {
        size_t length = BLOCK_STRIP_LENGTH(get_u32(entry));
        if (length > n - at)
            break;
        put_u32(entry + 4, crc32c(seed, block + at, length));
        at += length;
    }
    log_seal(seed, block, table);
}

/* The number of strips with which the lengths in the table make up the block. */
static uint32_t count_strips(const uint8_t *block, size_t n)
{
    uint64_t strips = 0;

    for (uint32_t i = 0; i < STRIPS_COUNT_MAX && BLOCK_HEADER_SIZE + BLOCK_TABLE_ENTRY * (i + 1) <= n; i++) {
        strips += BLOCK_STRIP_LENGTH(get_u32(block + BLOCK_HEADER_SIZE + BLOCK_TABLE_ENTRY * i));
        if (BLOCK_HEADER_SIZE + BLOCK_TABLE_ENTRY * (i + 1) + strips == n)
            return i + 1;
    }
    return 0;
}

void structures_seal_log(uint32_t seed, uint8_t *bytes, size_t n)
{
    for (size_t at = 0, length; at<n; at += length> 0 ? length : 1) {
        length = structure_length(bytes, n, at);
        if (length > 0 && bytes[at + 4] == FORMAT_TAIL)
            seal_trailer(seed, bytes, at);
        else if (length > 0 && bytes[at + 4] == FORMAT_BLOCK)
            structures_seal_block(seed, bytes + at, length, count_strips(bytes + at, length));
        else if (length > 0)
            log_seal(seed, bytes + at, length);
    }
}

void structures_seal_extents(uint32_t seed, uint8_t *bytes, size_t n)
{
    if (n >= LOG_HEADER_SIZE)
        log_seal(seed, bytes, LOG_HEADER_SIZE);
    for (size_t at = LOG_HEADER_SIZE, length; at < n && n - at >= BATCH_HEADER_SIZE; at += length) {
        uint8_t *batch = bytes + at;
        length = get_u32(batch + 8);
        if (length >= BATCH_HEADER_SIZE && length <= n - at)
            put_u32(batch + 40, crc32c(seed, batch + BATCH_HEADER_SIZE, length - BATCH_HEADER_SIZE));
        log_seal(seed, batch, BATCH_HEADER_SIZE);
        if (length < BATCH_HEADER_SIZE || length > n - at)
            return;
    }
}

void structures_seal_manifest(uint8_t *bytes, size_t n)
{
    static const char chained[] = "Sources version=3 ";
    int is_chained = n >= sizeof chained && memcmp(bytes, chained, sizeof chained - 1) == 0;
    uint32_t checksum = 0;

    for (size_t at = 0, end; at < n; at = end + 1) {
        const uint8_t *newline = memchr(bytes + at, '\n', n - at);
        if (!newline)
            return;
        end = (size_t)(newline - bytes);
        if (end - at < LINE_SUFFIX)
            continue;
        char suffix[LINE_SUFFIX + 1];
        checksum = crc32c(is_chained ? checksum : 0, bytes + at, end - at - LINE_SUFFIX);
        snprintf(suffix, sizeof suffix, " ~%08x", (unsigned)checksum);
        memcpy(bytes + end - LINE_SUFFIX, suffix, LINE_SUFFIX);
    }
}
