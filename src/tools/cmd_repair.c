/* deltafs repair: lists what can be repaired, and with --apply repairs it. */
#include <getopt.h>
#include <inttypes.h>
#include "tools/cmd.h"
#include "tools/target.h"

struct found {
    int dry_run;
    uint64_t count, hopeless;
};

static void say_found(int status, const char *message, void *arg)
{
    struct found *f = arg;

    if (status == DELTAFS_OK) {
        f->count++;
        printf("%s%s\n", f->dry_run ? "to do: " : "", message);
    } else if (status == DELTAFS_REPAIR_REMARK) {
        text_fail(0, "%s", message);
    } else {
        f->hopeless++;
        text_fail(0, "cannot be repaired: %s", message);
    }
}

/* What does what a dry run has said. */
static void say_command(const char *path, const struct deltafs_repair_options *options)
{
    printf("%s: nothing is changed yet; 'deltafs repair --apply", path);
    if (options->has_label)
        printf(" --label %" PRIu64, options->label);
    if (options->has_drop_from)
        printf(" --drop-from %" PRIu64, options->drop_from);
    if (options->has_lease)
        printf(" --lease %" PRIu64, options->lease);
    printf(" %s' does it\n", path);
}

static int repair_parse(int argc, char **argv, struct deltafs_repair_options *options)
{
    static const struct option switches[] = {{"apply", no_argument, NULL, 'a'},
                                             {"label", required_argument, NULL, 'l'},
                                             {"drop-from", required_argument, NULL, 'd'},
                                             {"lease", required_argument, NULL, 's'},
                                             {NULL, 0, NULL, 0}};
    int c;

    options->dry_run = 1;
    while ((c = getopt_long(argc, argv, "", switches, NULL)) != -1) {
        if (c == 'a') {
            options->dry_run = 0;
        } else if (c == 'l') {
            options->has_label = 1;
            if (text_number(optarg, &options->label) != 0)
                return text_fail(EXIT_USAGE, "repair: --label: '%s' is no number", optarg);
        } else if (c == 'd') {
            options->has_drop_from = 1;
            if (text_number(optarg, &options->drop_from) != 0)
                return text_fail(EXIT_USAGE, "repair: --drop-from: '%s' is no number", optarg);
        } else if (c == 's') {
            options->has_lease = 1;
            if (text_number(optarg, &options->lease) != 0)
                return text_fail(EXIT_USAGE, "repair: --lease: '%s' is no number", optarg);
        } else {
            return cmd_usage("repair");
        }
    }
    if (options->has_label && options->has_drop_from)
        return text_fail(EXIT_USAGE, "repair: --label and --drop-from do not go together");
    if (argc - optind != 1) {
        text_fail(EXIT_USAGE, "repair: one DIR must be given");
        return cmd_usage("repair");
    }
    return EXIT_OK;
}

static int repair_logical(const char *path, const struct deltafs_repair_options *options, struct found *found)
{
    if (deltafs_logical_repair(path, options, say_found, found) != DELTAFS_OK)
        return text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    if (found->count == 0)
        printf("%s: nothing to repair: data that was not published does not count; 'deltafs verify' finds damaged "
               "bytes, which can only be restored from a copy of the file\n",
               path);
    else if (found->dry_run)
        printf("%s: nothing is changed yet; 'deltafs repair --apply %s' does it\n", path, path);
    return cmd_finish(found->count > 0 && found->dry_run ? EXIT_NOT_FOUND : EXIT_OK);
}

int cmd_repair(int argc, char **argv)
{
    struct deltafs_repair_options options = {.struct_size = sizeof options};
    struct found found = {0};
    int code = repair_parse(argc, argv, &options);

    if (code != EXIT_OK)
        return code;
    const char *path = text_path(argv[optind]);
    found.dry_run = options.dry_run;
    if (target_is_logical(path))
        return repair_logical(path, &options, &found);
    int status = deltafs_repair(path, &options, say_found, &found);
    if (status != DELTAFS_OK && found.count > 0 && found.dry_run)
        printf("%s: nothing is changed yet\n", path);
    if (status != DELTAFS_OK)
        return found.hopeless > 0 ? cmd_finish(EXIT_TROUBLE) : text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    if (found.count == 0)
        printf("%s: nothing to repair; 'deltafs verify' finds damaged records, which can only be "
               "restored from a copy of the file\n",
               path);
    else if (options.dry_run)
        say_command(path, &options);
    return cmd_finish(found.count > 0 && options.dry_run ? EXIT_NOT_FOUND : EXIT_OK);
}
