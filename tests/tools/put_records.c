/* For the tests of the commands: makes a directory from lines of text on standard input, without MPI.
 *
 *     put_records DIR [--abandon] [OPTION=VALUE...]
 *
 * Each line is "LABEL KEY VALUE", the value in hexadecimal, or "-" for an empty one; with keys=bytes the key, too. An
 * epoch ends where the label changes. A line "@NAME=TEXT" or "@NAME==EXPRESSION" sets an attribute. With --abandon the
 * process ends without closing the directory, as a job that dies does. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <deltafs/deltafs_query.h>
#include "put_options.h"

#define LINE_MAX_BYTES (1 << 20)

/* Decode in place; returns the bytes, or -1. */
static long decode_hex(char *text)
{
    size_t n = strcspn(text, " \n");

    if (n == 1 && text[0] == '-')
        return 0;
    for (size_t i = 0; i + 1 < n; i += 2) {
        unsigned byte;
        if (sscanf(text + i, "%2x", &byte) != 1)
            return -1;
        text[i / 2] = (char)byte;
    }
    return n % 2 == 0 ? (long)(n / 2) : -1;
}

static int put_line(deltafs_dir *d, int is_bytes, char *line, uint64_t *label, int *is_open)
{
    char *end, *name;
    uint64_t l = strtoull(line, &end, 10), key = 0;
    long name_size = 0;

    if (is_bytes && *end == ' ') {
        name = end + 1;
        end = name + strcspn(name, " ");
        name_size = decode_hex(name);
    } else {
        name = end;
        key = strtoull(end, &end, 10);
    }
    if (*end != ' ' || name_size < 0)
        return complain("not LABEL KEY VALUE", line);
    long size = decode_hex(end + 1);
    if (size < 0)
        return complain("not a value in hexadecimal", line);
    if (*is_open && l != *label && deltafs_epoch_end(d, *label) != DELTAFS_OK)
        return complain("epoch end", deltafs_errmsg(d));
    *label = l;
    *is_open = 1;
    if ((is_bytes ? deltafs_append_bytes(d, name, (size_t)name_size, end + 1, (size_t)size)
                  : deltafs_append(d, key, end + 1, (size_t)size)) != DELTAFS_OK)
        return complain("append", deltafs_errmsg(d));
    return 0;
}

static int set_attribute(deltafs_dir *d, char *line)
{
    char *value = line + strcspn(line, "=");

    line[strcspn(line, "\n")] = '\0';
    if (*value != '=')
        return complain("not @NAME=TEXT", line);
    *value++ = '\0';
    int is_computed = *value == '=';
    const struct deltafs_attribute a = {.struct_size = sizeof a,
                                        .name = line + 1,
                                        .type = is_computed ? DELTAFS_ATTRIBUTE_EXPRESSION : DELTAFS_ATTRIBUTE_TEXT,
                                        .value = value + is_computed};
    return deltafs_attribute_set(d, &a) == DELTAFS_OK ? 0 : complain(line, deltafs_errmsg(d));
}

static int put_all(deltafs_dir *d, int is_bytes)
{
    char *line = malloc(LINE_MAX_BYTES);
    uint64_t label = 0;
    int is_open = 0, failed = !line;

    while (!failed && fgets(line, LINE_MAX_BYTES, stdin))
        failed = (*line == '@' ? set_attribute(d, line) : put_line(d, is_bytes, line, &label, &is_open)) != 0;
    free(line);
    if (!failed && is_open && deltafs_epoch_end(d, label) != DELTAFS_OK)
        failed = complain("epoch end", deltafs_errmsg(d)) != 0;
    return failed ? -1 : 0;
}

int main(int argc, char **argv)
{
    deltafs_options *options;
    deltafs_dir *d;
    const char *keys = NULL;
    int is_abandoned;

    if (argc < 2 || !(options = put_options(argc, argv, 2, &is_abandoned)))
        return 2;
    int is_bytes = deltafs_options_get(options, "keys", &keys) == DELTAFS_OK && strcmp(keys, "bytes") == 0;
    int status = deltafs_create(argv[1], options, &d);
    deltafs_options_destroy(options);
    if (status != DELTAFS_OK) {
        complain(argv[1], deltafs_errmsg(NULL));
        return 3;
    }
    int failed = put_all(d, is_bytes) != 0;
    if (is_abandoned)
        _exit(failed ? 3 : 0);
    if (deltafs_close(d) != DELTAFS_OK && !failed)
        failed = complain("close", deltafs_errmsg(NULL)) != 0;
    return failed ? 3 : 0;
}
