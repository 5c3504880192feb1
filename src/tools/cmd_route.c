/* deltafs-mpi route: how records would travel in a job of so many ranks, and what that takes. Needs no mpirun. */
#include <inttypes.h>
#include <deltafs/deltafs_mpi.h>
#include "tools/cmd.h"

struct route {
    struct command_number ranks, per_node;
    int is_json;
};

static void route_print(const struct route *r, const struct deltafs_route *a)
{
    uint64_t ranks = r->ranks.value, per_node = r->per_node.value, each = per_node < ranks ? per_node : ranks;

    if (r->is_json) {
        printf("{\"ranks\": %" PRIu64 ", \"per_node\": %" PRIu64 ", \"nodes\": %" PRIu64
               ", \"route\": \"%s\", \"hops\": %" PRIu64 ", \"remote_peers\": %" PRIu64 ", \"local_peers\": %" PRIu64
               ", \"message_bytes\": %" PRIu64 ", \"chunk_bytes\": %" PRIu64 ", \"bytes_per_rank\": %" PRIu64 "}\n",
               ranks, per_node, a->nodes, a->name, a->hops, a->remote_peers, a->local_peers, a->message_bytes,
               a->chunk_bytes, a->bytes_per_rank);
        return;
    }
    printf("ranks            %" PRIu64 " on %" PRIu64 " node%s, %s%" PRIu64 " each\n", ranks, a->nodes,
           text_plural(a->nodes), ranks % each > 0 ? "up to " : "", each);
    printf("route            %s, %" PRIu64 " hop%s at most\n", a->name, a->hops, text_plural(a->hops));
    printf("remote peers     %" PRIu64 ", messages of %" PRIu64 " bytes\n", a->remote_peers, a->message_bytes);
    printf("local peers      %" PRIu64 ", rings of chunks of %" PRIu64 " bytes\n", a->local_peers, a->chunk_bytes);
    printf("memory per rank  %" PRIu64 " bytes (%.2f MiB)\n", a->bytes_per_rank, (double)a->bytes_per_rank / (1 << 20));
}

static int route_run(const struct command_call *c)
{
    const struct route *r = c->values;
    struct deltafs_route answer = {.struct_size = sizeof answer};

    if (!r->ranks.is_given || !r->per_node.is_given || c->count > 0)
        return text_fail(EXIT_USAGE, "route: --ranks and --per-node must be given, and no arguments");
    int status = deltafs_mpi_route(r->ranks.value, r->per_node.value, c->options, &answer);
    if (status != DELTAFS_OK)
        return text_fail(text_exit_code(status), "route: %s", deltafs_errmsg(NULL));
    route_print(r, &answer);
    return EXIT_OK;
}

static const struct command_option options[] = {
    {"ranks", 0, "N", "ranks of the job", cmd_parse_number, offsetof(struct route, ranks)},
    {"per-node", 0, "M", "ranks on each node", cmd_parse_number, offsetof(struct route, per_node)},
    {"json", 0, NULL, "for programs", NULL, offsetof(struct route, is_json)},
    {0}};

const struct command cmd_route = {
    .name = "route",
    .usage = "--ranks N --per-node M [OPTION...]",
    .text = "Print the route of records in a job of N ranks, M per node, and its memory. Needs no mpirun.\n"
            "    OPTION: --route, --memory and --partitions of 'deltafs help options' change it.",
    .size = sizeof(struct route),
    .option = options,
    .refused = cmd_takes_all,
    .run = route_run};
