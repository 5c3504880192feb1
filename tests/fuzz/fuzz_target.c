#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fuzz_target.h"

void fuzz_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, condition);
    abort();
}

uint64_t fuzz_number(struct fuzz_input *in, size_t size)
{
    uint64_t v = 0;

    for (size_t i = 0; i < size && in->n > 0; i++, in->bytes++, in->n--)
        v |= (uint64_t)*in->bytes << 8 * i;
    return v;
}

uint8_t *fuzz_bytes(struct fuzz_input *in, size_t n, size_t *got)
{
    n = n < in->n ? n : in->n;
    uint8_t *copy = malloc(n > 0 ? n : 1);
    FUZZ_CHECK(copy != NULL);
    if (n > 0)
        memcpy(copy, in->bytes, n);
    in->bytes += n;
    in->n -= n;
    *got = n;
    return copy;
}

char *fuzz_line(struct fuzz_input *in)
{
    const uint8_t *newline = in->n > 0 ? memchr(in->bytes, '\n', in->n) : NULL;
    size_t n = newline ? (size_t)(newline - in->bytes) : in->n;
    char *text = malloc(n + 1);

    FUZZ_CHECK(text != NULL);
    if (n > 0)
        memcpy(text, in->bytes, n);
    text[n] = '\0';
    in->bytes += newline ? n + 1 : n;
    in->n -= newline ? n + 1 : n;
    return text;
}

void fuzz_touch(const void *bytes, size_t n)
{
    static volatile uint8_t sum;
    const uint8_t *p = bytes;

    for (size_t i = 0; i < n; i++)
        sum = (uint8_t)(sum + p[i]);
}
