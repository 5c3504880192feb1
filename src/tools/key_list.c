#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/key_list.h"
#include "tools/text.h"

static int key_list_grow(struct key_list *k)
{
    size_t capacity = k->capacity ? 2 * k->capacity : 64;
    uint64_t *number = realloc(k->number, capacity * sizeof *number);
    k->number = number ? number : k->number;
    char **bytes = realloc(k->bytes, capacity * sizeof *bytes);
    k->bytes = bytes ? bytes : k->bytes;
    size_t *size = realloc(k->size, capacity * sizeof *size);
    k->size = size ? size : k->size;

    if (!number || !bytes || !size)
        return text_fail(EXIT_TROUBLE, "%s: no memory for %zu keys", k->command, capacity);
    k->capacity = capacity;
    return EXIT_OK;
}

/* Two digits for each byte, into `out`. Returns the bytes, or -1. */
static int decode_hex(const char *text, size_t size, char out[KEY_MAX])
{
    if (size % 2 != 0 || size / 2 > KEY_MAX)
        return -1;
    for (size_t i = 0; i < size; i++) {
        if (!isxdigit((unsigned char)text[i]))
            return -1;
        unsigned digit = (unsigned)(isdigit((unsigned char)text[i]) ? text[i] - '0' : (text[i] | 0x20) - 'a' + 10);
        out[i / 2] = (char)(i % 2 == 0 ? digit << 4 : (unsigned char)out[i / 2] | digit);
    }
    return (int)(size / 2);
}

int key_list_add(struct key_list *k, const char *text, size_t size)
{
    uint64_t number = 0;
    char bytes[KEY_MAX], *copy = NULL;

    if (k->is_hex) {
        int n = decode_hex(text, size, bytes);
        if (n < 0)
            return text_fail(EXIT_USAGE, "%s: key '%s' is not hexadecimal: two digits for each byte, at most %d bytes",
                             k->command, text, KEY_MAX);
        text = bytes;
        size = (size_t)n;
    }
    if (k->is_bytes && (size < 1 || size > KEY_MAX))
        return text_fail(EXIT_USAGE, "%s: a key of %zu bytes; it must have 1 to %d", k->command, size, KEY_MAX);
    if (!k->is_bytes && (strlen(text) != size || text_number(text, &number) != 0))
        return text_fail(EXIT_USAGE, "%s: key '%s' is no number (decimal, or hexadecimal after 0x, below 2^64)",
                         k->command, text);
    int code = k->count == k->capacity ? key_list_grow(k) : EXIT_OK;
    if (code != EXIT_OK)
        return code;
    if (k->is_bytes) {
        copy = malloc(size);
        if (!copy)
            return text_fail(EXIT_TROUBLE, "%s: no memory for a key", k->command);
        memcpy(copy, text, size);
    }
    k->number[k->count] = number;
    k->bytes[k->count] = copy;
    k->size[k->count++] = size;
    return EXIT_OK;
}

/* The keys of one line of text. */
static int key_list_add_line(struct key_list *k, char *line, size_t size)
{
    int code = EXIT_OK;

    if (k->is_bytes && !k->is_hex)
        return size > 0 ? key_list_add(k, line, size) : EXIT_OK;
    for (size_t at = 0, end; at < size && code == EXIT_OK; at = end + 1) {
        for (end = at; end < size && !isspace((unsigned char)line[end]);)
            end++;
        line[end] = '\0';
        if (end > at)
            code = key_list_add(k, line + at, end - at);
    }
    return code;
}

int key_list_read_stream(struct key_list *k, FILE *f, const char *name)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int code = EXIT_OK;

    while (code == EXIT_OK && (n = getline(&line, &room, f)) != -1) {
        n -= n > 0 && line[n - 1] == '\n';
        line[n] = '\0';
        code = key_list_add_line(k, line, (size_t)n);
    }
    if (code == EXIT_OK && ferror(f))
        code = text_fail(EXIT_TROUBLE, "%s: cannot read %s", k->command, name);
    free(line);
    return code;
}

int key_list_read(struct key_list *k, const char *file)
{
    if (strcmp(file, "-") == 0)
        return key_list_read_stream(k, stdin, "standard input");
    FILE *f = fopen(file, "r");
    if (!f)
        return text_fail(EXIT_TROUBLE, "%s: cannot open %s: %s", k->command, file, strerror(errno));
    int code = key_list_read_stream(k, f, file);
    fclose(f);
    return code;
}

int key_list_check_hex(const struct key_list *k)
{
    if (!k->is_hex || k->is_bytes)
        return EXIT_OK;
    return text_fail(EXIT_USAGE,
                     "%s: --hex is for keys of bytes; keys of this directory are numbers: put 0x before each",
                     k->command);
}

void key_list_fini(struct key_list *k)
{
    for (size_t i = 0; i < k->count; i++)
        free(k->bytes[i]);
    free(k->number);
    free(k->bytes);
    free(k->size);
}
