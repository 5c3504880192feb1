/* deltafs stat: what there is to know about a name, in short. */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include "tools/cmd.h"
#include "tools/target.h"
#include "tools/print.h"

/* The heading of an object or of its facts. */
static void stat_begin(const char *path, int is_json, int count)
{
    char shown[4096];

    if (is_json) {
        printf("%s\n{\n \"path\": ", count > 0 ? "," : "");
        print_json_text(path, strlen(path));
        printf(",\n");
    } else {
        text_show(path, strlen(path), shown, sizeof shown);
        printf("%spath            %s\n", count > 0 ? "\n" : "", shown);
    }
}

static int stat_logical(const char *path, int is_json, int count)
{
    struct deltafs_logical_stat s = {.struct_size = sizeof s};
    deltafs_logical *f;
    int code = target_open_whole(path, &f);

    if (code != EXIT_OK)
        return code;
    if (deltafs_logical_stat(f, &s) != DELTAFS_OK) {
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    } else {
        stat_begin(path, is_json, count);
        if (is_json)
            target_print_json(&s);
        else
            target_print(&s);
        if (is_json)
            putchar('\n');
    }
    deltafs_logical_close(f);
    return code;
}

static void stat_print_directory(const struct deltafs_stat *s, uint64_t bytes_stored, int is_json)
{
    if (is_json)
        printf(" \"kind\": \"directory\",\n \"uuid\": \"%s\",\n \"closed\": %s,\n \"epochs\": %" PRIu64
               ",\n \"records\": %" PRIu64 ",\n \"bytes_raw\": %" PRIu64 ",\n \"bytes_stored\": %" PRIu64 "\n",
               s->uuid, s->is_closed ? "true" : "false", s->epochs, s->records, s->bytes_raw, bytes_stored);
    else
        printf("kind            directory\nuuid            %s\nclosed          %s\nepochs          %" PRIu64
               "\nrecords         %" PRIu64 "\nbytes raw       %" PRIu64 "\nbytes stored    %" PRIu64 "\n",
               s->uuid, s->is_closed ? "yes" : "no (being written, or its writer died)", s->epochs, s->records,
               s->bytes_raw, bytes_stored);
}

static int stat_directory(const char *path, int is_json, int count)
{
    struct deltafs_stat s = {.struct_size = sizeof s};
    uint64_t bytes_stored;
    deltafs_dir *d;
    int code = cmd_open(path, &d);

    if (code != EXIT_OK)
        return code;
    if (deltafs_stat(d, &s) != DELTAFS_OK || deltafs_bytes_stored(d, &bytes_stored) != DELTAFS_OK) {
        code = text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(d));
    } else {
        stat_begin(path, is_json, count);
        stat_print_directory(&s, bytes_stored, is_json);
    }
    deltafs_close(d);
    return code;
}

static int stat_plain(const char *path, const struct target *p, int is_json, int count)
{
    stat_begin(path, is_json, count);
    target_print_plain(p, is_json);
    if (is_json)
        putchar('\n');
    return EXIT_OK;
}

static int stat_one(const char *path, int is_json, int *count)
{
    struct target p;
    int code = target_look(path, &p);

    if (code != EXIT_OK)
        return code;
    if (p.kind == TARGET_LOGICAL)
        code = stat_logical(path, is_json, *count);
    else if (p.kind == TARGET_DIRECTORY)
        code = stat_directory(path, is_json, *count);
    else
        code = stat_plain(path, &p, is_json, *count);
    if (code != EXIT_OK)
        return code;
    if (is_json)
        putchar('}');
    ++*count;
    return EXIT_OK;
}

int cmd_stat(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0}};
    int c, code = EXIT_OK, is_json = 0, count = 0;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c != 'j')
            return cmd_usage("stat");
        is_json = 1;
    }
    if (argc == optind) {
        text_fail(EXIT_USAGE, "stat: PATH is missing");
        return cmd_usage("stat");
    }
    if (is_json)
        putchar('[');
    for (int i = optind; i < argc; i++) {
        int one = stat_one(text_path(argv[i]), is_json, &count);
        code = one != EXIT_OK ? one : code;
    }
    if (is_json)
        puts(count > 0 ? "\n]" : "]");
    return cmd_finish(code);
}
