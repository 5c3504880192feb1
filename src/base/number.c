#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"

/* The number at the start of `text`, whose digits begin at `digits`. */
static int number_parse_start(const char *text, const char *digits, int base, uint64_t *out, const char **rest)
{
    char *end;

    if (base == 10 ? !isdigit((unsigned char)*digits) : !isxdigit((unsigned char)*digits))
        return -1;
    errno = 0;
    unsigned long long v = strtoull(text, &end, base);
    if (errno != 0)
        return -1;
    *out = v;
    *rest = end;
    return 0;
}

int number_parse(const char *text, uint64_t *out)
{
    int is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    const char *rest;
    uint64_t v;

    if (number_parse_start(text, is_hex ? text + 2 : text, is_hex ? 16 : 10, &v, &rest) != 0 || *rest != '\0')
        return -1;
    *out = v;
    return 0;
}

int number_parse_real(const char *text, double *out)
{
    int is_decimal = isdigit((unsigned char)text[*text == '.']) && text[strspn(text, "0123456789.eE+-")] == '\0';
    locale_t c = is_decimal ? newlocale(LC_ALL_MASK, "C", (locale_t)0) : (locale_t)0;
    char *end;

    if (c == (locale_t)0)
        return -1;
    double v = strtod_l(text, &end, c);
    freelocale(c);
    if (*end != '\0' || !isfinite(v))
        return -1;
    *out = v;
    return 0;
}

int number_parse_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMGT";
    const char *rest;
    uint64_t v;
    unsigned shift = 0;

    if (number_parse_start(text, text, 10, &v, &rest) != 0)
        return -1;
    if (*rest != '\0') {
        const char *unit = strchr(units, toupper((unsigned char)*rest));
        if (!unit || rest[1] != '\0')
            return -1;
        shift = 10u * (unsigned)(unit - units + 1);
    }
    if (v > UINT64_MAX >> shift)
        return -1;
    *out = v << shift;
    return 0;
}

size_t number_position(const uint64_t *first, size_t count, size_t stride, uint64_t number)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (*(const uint64_t *)((const void *)((const char *)first + middle * stride)) < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
