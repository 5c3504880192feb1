/* deltafs-mpi route: how records would travel in a job of so many ranks, and what that takes. Needs no mpirun. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <deltafs/deltafs_mpi.h>
#include "tools/cmd_mpi.h"
#include "tools/text.h"

#define OPTION_TABLE 256 /* getopt's numbers from here on are the library's options */

struct route_request {
    uint64_t ranks, per_node;
    int is_json;
    deltafs_options *options;
};

static const char *const table_names[] = {"memory", "partitions", "route"};
#define TABLE_NAMES (sizeof table_names / sizeof table_names[0])

static int route_number(const char *name, uint64_t *out)
{
    if (text_number(optarg, out) == 0 && *out > 0)
        return EXIT_OK;
    return text_fail(EXIT_USAGE, "route: --%s: '%s' is no number above 0", name, optarg);
}

static int route_option(struct route_request *r, int c, char **argv)
{
    switch (c) {
    case 'n':
        return route_number("ranks", &r->ranks);
    case 'p':
        return route_number("per-node", &r->per_node);
    case 'j':
        r->is_json = 1;
        return EXIT_OK;
    case ':':
        return text_fail(EXIT_USAGE, "route: %s needs a value; try 'deltafs-mpi help'", argv[optind - 1]);
    case '?':
        return text_fail(EXIT_USAGE, "route: unknown option '%s'; try 'deltafs-mpi help'", argv[optind - 1]);
    default:
        if (deltafs_options_set(r->options, table_names[c - OPTION_TABLE], optarg) != DELTAFS_OK)
            return text_fail(EXIT_USAGE, "route: %s", deltafs_errmsg(NULL));
        return EXIT_OK;
    }
}

static int route_parse(struct route_request *r, int argc, char **argv)
{
    struct option options[4 + TABLE_NAMES] = {{"ranks", required_argument, NULL, 'n'},
                                              {"per-node", required_argument, NULL, 'p'},
                                              {"json", no_argument, NULL, 'j'}};
    int c, code = EXIT_OK;

    for (size_t i = 0; i < TABLE_NAMES; i++)
        options[3 + i] = (struct option){table_names[i], required_argument, NULL, OPTION_TABLE + (int)i};
    opterr = 0;
    while (code == EXIT_OK && (c = getopt_long(argc, argv, ":", options, NULL)) != -1)
        code = route_option(r, c, argv);
    if (code == EXIT_OK && optind < argc)
        code = text_fail(EXIT_USAGE, "route: unexpected argument '%s'; try 'deltafs-mpi help'", argv[optind]);
    if (code == EXIT_OK && (r->ranks == 0 || r->per_node == 0))
        code = text_fail(EXIT_USAGE, "route: --ranks and --per-node must be given; try 'deltafs-mpi help'");
    return code;
}

static void route_print(const struct route_request *r, const struct deltafs_route *a)
{
    uint64_t each = r->per_node < r->ranks ? r->per_node : r->ranks;

    if (r->is_json) {
        printf("{\"ranks\": %" PRIu64 ", \"per_node\": %" PRIu64 ", \"nodes\": %" PRIu64
               ", \"route\": \"%s\", \"hops\": %" PRIu64 ", \"remote_peers\": %" PRIu64 ", \"local_peers\": %" PRIu64
               ", \"message_bytes\": %" PRIu64 ", \"chunk_bytes\": %" PRIu64 ", \"bytes_per_rank\": %" PRIu64 "}\n",
               r->ranks, r->per_node, a->nodes, a->name, a->hops, a->remote_peers, a->local_peers, a->message_bytes,
               a->chunk_bytes, a->bytes_per_rank);
        return;
    }
    printf("ranks            %" PRIu64 " on %" PRIu64 " node%s, %s%" PRIu64 " each\n", r->ranks, a->nodes,
           a->nodes == 1 ? "" : "s", r->ranks % each > 0 ? "up to " : "", each);
    printf("route            %s, %" PRIu64 " hop%s at most\n", a->name, a->hops, a->hops == 1 ? "" : "s");
    printf("remote peers     %" PRIu64 ", messages of %" PRIu64 " bytes\n", a->remote_peers, a->message_bytes);
    printf("local peers      %" PRIu64 ", rings of chunks of %" PRIu64 " bytes\n", a->local_peers, a->chunk_bytes);
    printf("memory per rank  %" PRIu64 " bytes (%.2f MiB)\n", a->bytes_per_rank, (double)a->bytes_per_rank / (1 << 20));
}

int cmd_route(int argc, char **argv)
{
    struct route_request r = {0};
    struct deltafs_route answer = {.struct_size = sizeof answer};
    int status;

    if (deltafs_options_create(&r.options) != DELTAFS_OK)
        return text_fail(EXIT_USAGE, "route: %s", deltafs_errmsg(NULL));
    int code = route_parse(&r, argc, argv);
    if (code == EXIT_OK) {
        status = deltafs_mpi_route(r.ranks, r.per_node, r.options, &answer);
        if (status == DELTAFS_OK)
            route_print(&r, &answer);
        else
            code = text_fail(text_exit_code(status), "route: %s", deltafs_errmsg(NULL));
    }
    deltafs_options_destroy(r.options);
    return code;
}
