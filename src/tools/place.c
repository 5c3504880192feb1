#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include "tools/place.h"
#include "tools/text.h"

const char *place_word(enum place_kind kind)
{
    static const char *const words[] = {[PLACE_LOGICAL] = "logical",
                                        [PLACE_DIRECTORY] = "directory",
                                        [PLACE_FOLDER] = "folder",
                                        [PLACE_FILE] = "file",
                                        [PLACE_OTHER] = "other"};

    return words[kind];
}

int place_look(const char *path, struct place *out)
{
    struct place p;
    char kind;

    if (*path == '\0')
        return text_fail(EXIT_TROUBLE, "a file without a name is asked for: 'deltafs:' stands before a name");
    if (stat(path, &p.stat) != 0)
        return text_fail(EXIT_TROUBLE, "%s: %s", path, strerror(errno));
    p.kind = S_ISREG(p.stat.st_mode) ? PLACE_FILE : PLACE_OTHER;
    if (S_ISDIR(p.stat.st_mode)) {
        if (deltafs_kind(path, &kind) != DELTAFS_OK)
            return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
        p.kind = kind == 'f' ? PLACE_LOGICAL : kind == 'd' ? PLACE_DIRECTORY : PLACE_FOLDER;
    }
    *out = p;
    return EXIT_OK;
}

int place_is_logical(const char *path)
{
    char kind;

    return deltafs_kind(path, &kind) == DELTAFS_OK && kind == 'f';
}

int place_refuse(const char *path, enum place_kind kind)
{
    switch (kind) {
    case PLACE_DIRECTORY:
        return text_fail(EXIT_TROUBLE,
                         "%s: a DeltaFS directory, not a logical file; 'deltafs get' and 'deltafs scan' read it", path);
    case PLACE_FOLDER:
        return text_fail(EXIT_TROUBLE, "%s: a folder, not a logical file; 'deltafs ls' shows what is in it", path);
    default:
        return text_fail(EXIT_TROUBLE, "%s: a plain file, not a logical one; use it as it is", path);
    }
}

int place_open(const char *path, deltafs_logical **out)
{
    struct place p;
    int code = place_look(path, &p);

    if (code != EXIT_OK)
        return code;
    if (p.kind != PLACE_LOGICAL)
        return place_refuse(path, p.kind);
    if (deltafs_logical_open(path, O_RDONLY, NULL, out) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_logical_errmsg(NULL));
    return EXIT_OK;
}

int place_open_whole(const char *path, deltafs_logical **out)
{
    struct deltafs_logical_stat stat;
    int code = place_open(path, out);

    if (code == EXIT_OK && deltafs_logical_stat(*out, &stat) == DELTAFS_OK && stat.is_cut)
        text_fail(0,
                  "%s: a crash has taken something that was closed, but not synced; 'deltafs verify' says of which "
                  "logs, and what is left is read",
                  path);
    return code;
}

void place_print(const struct deltafs_logical_stat *s)
{
    printf("kind            logical file\nsize            %" PRIu64 "\nuuid            %s\nclosed          %s\n",
           s->size, s->uuid, s->is_closed ? "yes" : "no (being written, or a writer was cut short)");
    printf("sessions        %" PRIu64 " (%" PRIu64 " with the index in one file)\nwriters         %" PRIu64
           "\nextents         %" PRIu64 "\nbytes stored    %" PRIu64,
           s->sessions, s->is_flat, s->writers, s->extents, s->bytes_stored);
    if (s->size > 0)
        printf(" (%.3f of the size)", (double)s->bytes_stored / (double)s->size);
    putchar('\n');
}

void place_print_json(const struct deltafs_logical_stat *s)
{
    printf(" \"kind\": \"logical\",\n \"size\": %" PRIu64 ",\n \"uuid\": \"%s\",\n \"closed\": %s,\n", s->size, s->uuid,
           s->is_closed ? "true" : "false");
    printf(" \"sessions\": %" PRIu64 ",\n \"flat\": %" PRIu64 ",\n \"writers\": %" PRIu64 ",\n \"extents\": %" PRIu64
           ",\n \"bytes_stored\": %" PRIu64,
           s->sessions, s->is_flat, s->writers, s->extents, s->bytes_stored);
}

void place_print_plain(const struct place *p, int is_json)
{
    if (is_json)
        printf(" \"kind\": \"%s\"", place_word(p->kind));
    else
        printf("kind            %s\n", p->kind == PLACE_FILE ? "plain file" : place_word(p->kind));
    if (p->kind == PLACE_FILE)
        printf(is_json ? ",\n \"size\": %" PRIu64 : "size            %" PRIu64 "\n", (uint64_t)p->stat.st_size);
}
