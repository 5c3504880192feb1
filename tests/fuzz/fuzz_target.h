/* A fuzz target: one function that takes any bytes, in the shape that libFuzzer calls. It may end the program by abort
 * if what it tests breaks a promise; the rest is left to the sanitizers.
 *
 * scripts/fuzz builds the targets with libFuzzer; fuzz_main.c runs them without. A fuzzer does not guess checksums: the
 * first byte of the inputs of structures says, among others, whether they get right ones before they are parsed. */
#ifndef DELTAFS_FUZZ_TARGET_H
#define DELTAFS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What is left of an input. */
struct fuzz_input {
    const uint8_t *bytes;
    size_t n;
};

/* The next number of `size` bytes, little-endian; 0 behind the end. */
uint64_t fuzz_number(struct fuzz_input *in, size_t size);
/* The next `n` bytes, or fewer, in memory of their own, behind which a sanitizer sees every step. */
uint8_t *fuzz_bytes(struct fuzz_input *in, size_t n, size_t *got);
/* The same up to a newline, which is left out, as a text. */
char *fuzz_line(struct fuzz_input *in);

/* A promise is broken. */
#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fuzz_failed(#condition, __FILE__, __LINE__);                                                               \
    } while (0)
_Noreturn void fuzz_failed(const char *condition, const char *file, int line);

/* Bytes that are used by nobody, but read. */
void fuzz_touch(const void *bytes, size_t n);

#endif
