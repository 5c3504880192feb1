#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include "tools/target.h"
#include "tools/text.h"

const char *target_word(enum target_kind kind)
{
    static const char *const words[] = {[TARGET_LOGICAL] = "logical",
                                        [TARGET_DIRECTORY] = "directory",
                                        [TARGET_FOLDER] = "folder",
                                        [TARGET_FILE] = "file",
                                        [TARGET_OTHER] = "other"};

    return words[kind];
}

int target_look(const char *path, struct target *out)
{
    struct target p;
    char kind;

    if (*path == '\0')
        return text_fail(EXIT_TROUBLE, "the name of the file is missing after 'deltafs:'");
    if (stat(path, &p.stat) != 0)
        return text_fail(EXIT_TROUBLE, "%s: %s", path, strerror(errno));
    p.kind = S_ISREG(p.stat.st_mode) ? TARGET_FILE : TARGET_OTHER;
    if (S_ISDIR(p.stat.st_mode)) {
        if (deltafs_kind(path, &kind) != DELTAFS_OK)
            return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
        p.kind = kind == 'f' ? TARGET_LOGICAL : kind == 'd' ? TARGET_DIRECTORY : TARGET_FOLDER;
    }
    *out = p;
    return EXIT_OK;
}

int target_is_logical(const char *path)
{
    char kind;

    return deltafs_kind(path, &kind) == DELTAFS_OK && kind == 'f';
}

int target_refuse(const char *path, enum target_kind kind)
{
    switch (kind) {
    case TARGET_DIRECTORY:
        return text_fail(EXIT_TROUBLE,
                         "%s: a DeltaFS directory, not a logical file; 'deltafs get' and 'deltafs scan' read it", path);
    case TARGET_FOLDER:
        return text_fail(EXIT_TROUBLE, "%s: a folder, not a logical file; 'deltafs ls' shows what is in it", path);
    default:
        return text_fail(EXIT_TROUBLE, "%s: a plain file, not a logical one; use it as it is", path);
    }
}

int target_open(const char *path, deltafs_logical **out)
{
    struct target p;
    int code = target_look(path, &p);

    if (code != EXIT_OK)
        return code;
    if (p.kind != TARGET_LOGICAL)
        return target_refuse(path, p.kind);
    if (deltafs_logical_open(path, O_RDONLY, NULL, out) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    return EXIT_OK;
}

int target_open_whole(const char *path, deltafs_logical **out)
{
    struct deltafs_logical_stat stat = {.struct_size = sizeof stat};
    int code = target_open(path, out);

    if (code == EXIT_OK && deltafs_logical_stat(*out, &stat) == DELTAFS_OK && stat.is_incomplete)
        text_fail(0,
                  "%s: a crash has lost data that was closed but not synced; the rest is read; 'deltafs verify' "
                  "names the logs",
                  path);
    return code;
}

void target_print(const struct deltafs_logical_stat *s)
{
    printf("kind            logical file\nsize            %" PRIu64 "\nuuid            %s\nclosed          %s\n",
           s->size, s->uuid, s->is_closed ? "yes" : "no (being written, or a writer died)");
    printf("sessions        %" PRIu64 " (%" PRIu64 " with the index in one file)\nwriters         %" PRIu64
           "\nextents         %" PRIu64 "\nbytes stored    %" PRIu64,
           s->sessions, s->flat_sessions, s->writers, s->extents, s->bytes_stored);
    if (s->size > 0)
        printf(" (%.3f of the size)", (double)s->bytes_stored / (double)s->size);
    putchar('\n');
}

void target_print_json(const struct deltafs_logical_stat *s)
{
    printf(" \"kind\": \"logical\",\n \"size\": %" PRIu64 ",\n \"uuid\": \"%s\",\n \"closed\": %s,\n", s->size, s->uuid,
           s->is_closed ? "true" : "false");
    printf(" \"sessions\": %" PRIu64 ",\n \"flat\": %" PRIu64 ",\n \"writers\": %" PRIu64 ",\n \"extents\": %" PRIu64
           ",\n \"bytes_stored\": %" PRIu64,
           s->sessions, s->flat_sessions, s->writers, s->extents, s->bytes_stored);
}

void target_print_plain(const struct target *p, int is_json)
{
    if (is_json)
        printf(" \"kind\": \"%s\"", target_word(p->kind));
    else
        printf("kind            %s\n", p->kind == TARGET_FILE ? "plain file" : target_word(p->kind));
    if (p->kind == TARGET_FILE)
        printf(is_json ? ",\n \"size\": %" PRIu64 : "size            %" PRIu64 "\n", (uint64_t)p->stat.st_size);
}
