/* What people and programs write: a line with an option's name (a number n: the n-th's), then a text, which is tried as
 * the option's value, as a schema, as a number. */
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "fuzz_target.h"
#include "tools/text.h"
#include <deltafs/deltafs.h>

static void try_option(const char *name, const char *text)
{
    deltafs_options *o;
    const char *before, *after;
    uint64_t number;

    FUZZ_CHECK(deltafs_options_create(&o) == DELTAFS_OK);
    if (number_parse(name, &number) == 0 && deltafs_option_at(number < 64 ? (size_t)number : 0))
        name = deltafs_option_at(number < 64 ? (size_t)number : 0)->name;
    if (deltafs_options_get(o, name, &before) == DELTAFS_OK) {
        char *copy = strdup(before);
        int status = deltafs_options_set(o, name, text);
        FUZZ_CHECK(copy && deltafs_options_get(o, name, &after) == DELTAFS_OK);
        /* A bad value changes nothing; a good one is one that can be given again. */
        FUZZ_CHECK(status == DELTAFS_OK || strcmp(copy, after) == 0);
        free(copy);
        copy = strdup(after);
        FUZZ_CHECK(copy && deltafs_options_set(o, name, copy) == DELTAFS_OK);
        free(copy);
    } else {
        FUZZ_CHECK(deltafs_options_set(o, name, text) == DELTAFS_ERR_OPTION);
    }
    deltafs_options_destroy(o);
}

static void try_schema(const char *text)
{
    deltafs_schema *s;
    size_t end = 0;

    if (deltafs_schema_parse(text, &s) != DELTAFS_OK)
        return;
    for (size_t i = 0; i < deltafs_schema_count(s); i++) {
        const struct deltafs_field *f = deltafs_schema_field(s, i);
        FUZZ_CHECK(f->offset == end && f->size > 0 && f->name[0] != '\0');
        end += f->size;
    }
    FUZZ_CHECK(end == deltafs_schema_size(s) && end <= 1 << 20);
    deltafs_schema_destroy(s);
}

static void try_numbers(const char *text)
{
    uint64_t a = 0, b = 0;
    char shown[64];

    /* The library and the command take the same for a number. */
    FUZZ_CHECK(number_parse(text, &a) == text_number(text, &b) && a == b);
    number_parse_size(text, &a);
    text_show(text, strlen(text), shown, sizeof shown);
    for (const char *p = shown; *p; p++)
        FUZZ_CHECK((unsigned char)*p >= 0x20 && *p != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct fuzz_input in = {bytes, n};
    char *name = fuzz_line(&in);
    char *text = (char *)fuzz_bytes(&in, SIZE_MAX, &n);
    char *whole = realloc(text, n + 1);

    FUZZ_CHECK(whole != NULL);
    whole[n] = '\0';
    try_option(name, whole);
    try_schema(whole);
    try_numbers(whole);
    free(name);
    free(whole);
    return 0;
}
