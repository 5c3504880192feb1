/* deltafs repair: lists what can be repaired, and with --apply repairs it. If there is nothing, it verifies. */
#include <inttypes.h>
#include <deltafs/deltafs_namespace.h>
#include "tools/cmd.h"
#include "tools/interrupt.h"
#include "tools/target.h"
#include "tools/verify.h"

struct repair {
    int is_applied;
    struct command_number label, drop_from, lease;
    uint64_t count, hopeless; /* findings */
};

static void repair_report(int status, const char *message, void *arg)
{
    struct repair *r = arg;

    if (status == DELTAFS_OK) {
        r->count++;
        text_say("%s%s", r->is_applied ? "" : "to do: ", message);
    } else if (status == DELTAFS_REPAIR_REMARK) {
        text_fail(0, "%s", message);
    } else {
        r->hopeless++;
        text_fail(0, "cannot be repaired: %s", message);
    }
}

/* Repair has found nothing to do. Data may be damaged all the same: read it. */
static int repair_nothing(const char *path)
{
    int code = verify_path(path);

    if (code != EXIT_OK)
        return text_fail(code, "%s: repair cannot restore this; restore a copy of what is damaged", path);
    text_say("%s: nothing to repair", path);
    return EXIT_OK;
}

typedef int repair_fn(const char *path, const struct deltafs_repair_options *options, deltafs_repair_fn fn, void *arg);

static repair_fn *repair_function(const char *path)
{
    if (target_is_namespace(path))
        return deltafs_namespace_repair;
    return target_is_logical(path) ? deltafs_logical_repair : deltafs_repair;
}

static int repair_one(void *values, const char *path)
{
    struct repair *r = values;
    const struct deltafs_repair_options options = {.struct_size = sizeof options,
                                                   .dry_run = !r->is_applied,
                                                   .has_label = r->label.is_given,
                                                   .label = r->label.value,
                                                   .has_lease = r->lease.is_given,
                                                   .lease = r->lease.value,
                                                   .has_drop_from = r->drop_from.is_given,
                                                   .drop_from = r->drop_from.value};

    if (options.has_label && options.has_drop_from)
        return text_fail(EXIT_USAGE, "repair: --label and --drop-from do not go together");
    if (*path == '\0')
        return target_refuse_empty();
    if (r->is_applied)
        interrupt_say("repair: interrupted; nothing that was there is lost: run the same command again");
    int status = repair_function(path)(path, &options, repair_report, r);
    interrupt_end();
    if (r->count > 0 && options.dry_run)
        text_say("%s: nothing is changed yet; the same command with --apply does %s", path,
                 status == DELTAFS_OK ? "it" : "what can be done");
    if (status != DELTAFS_OK)
        return r->hopeless > 0 ? EXIT_TROUBLE : text_fail(EXIT_TROUBLE, "%s", deltafs_errmsg(NULL));
    if (r->count == 0)
        return repair_nothing(path);
    if (options.dry_run)
        return EXIT_NOT_FOUND;
    text_say("%s: done; 'deltafs verify %s' reads everything, and says if more is damaged", path, path);
    return EXIT_OK;
}

static const struct command_option options[] = {
    {"apply", 0, NULL, "repair it", NULL, offsetof(struct repair, is_applied)},
    {"label", 0, "L", "commit an epoch that is complete in the logs, but whose job did not finish it", cmd_parse_number,
     offsetof(struct repair, label)},
    {"drop-from", 0, "L", "discard the epoch labelled L, the first that is incomplete, and all later ones",
     cmd_parse_number, offsetof(struct repair, drop_from)},
    {"lease", 0, "S", "seconds after its last commit that a job on another host counts as alive", cmd_parse_number,
     offsetof(struct repair, lease)},
    {0}};

const struct command cmd_repair = {
    .name = "repair",
    .usage = "DIR|FILE|NS [OPTION...]",
    .text = "List what can be repaired: data of a job that died, and damage; exits with 1 if there is any.",
    .missing = "one DIR, FILE or NS must be given",
    .least = 1,
    .most = 1,
    .size = sizeof(struct repair),
    .option = options,
    .each = repair_one};
