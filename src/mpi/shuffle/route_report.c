#include <inttypes.h>
#include <deltafs/deltafs_mpi.h>
#include "base/options.h"
#include "base/sized.h"
#include "mpi/shuffle/plan.h"

int deltafs_mpi_route(uint64_t ranks, uint64_t per_node, const deltafs_options *options, struct deltafs_route *out)
{
    struct error *e = deltafs_private_thread_error();
    deltafs_options *defaults = NULL;
    struct plan p;

    if (!out)
        return error_set(e, DELTAFS_ERR_INVALID, "deltafs_mpi_route: out must be given");
    if (ranks == 0 || per_node == 0 || ranks > INT32_MAX || per_node > INT32_MAX)
        return error_set(e, DELTAFS_ERR_INVALID,
                         "%" PRIu64 " ranks, %" PRIu64 " on a node: both must be 1 to 2147483647", ranks, per_node);
    if (!options && deltafs_options_create(&defaults) != DELTAFS_OK)
        return e->status;
    const deltafs_options *o = options ? options : defaults;
    uint64_t partitions = deltafs_private_options_number(o, OPTION_PARTITIONS),
             memory = deltafs_private_options_number(o, OPTION_MEMORY);
    struct layout l = layout_even((uint32_t)ranks, (uint32_t)per_node);
    struct plan_options wanted = {.kind = (enum router_kind)deltafs_private_options_number(o, OPTION_ROUTE),
                                  .memory = plan_budget(memory == OPTION_AUTO ? PLAN_MEMORY_AUTO_MAX : memory),
                                  .partitions = (uint32_t)(partitions == OPTION_AUTO ? ranks : partitions)};
    int status = plan_make(&p, &l, &wanted, e);
    deltafs_options_destroy(defaults);
    if (status != DELTAFS_OK)
        return status;
    uint32_t via = router_most_peers(&p.router, STAGE_VIA), net = router_most_peers(&p.router, STAGE_NET);
    const struct deltafs_route route = {.name = plan_route_name(p.router.kind),
                                        .nodes = l.nodes,
                                        .hops = router_hops(&p.router),
                                        .remote_peers = via > net ? via : net,
                                        .local_peers = router_most_peers(&p.router, STAGE_IN),
                                        .message_bytes = p.message,
                                        .chunk_bytes = p.chunk,
                                        .bytes_per_rank = plan_most_bytes(&p)};
    return sized_fill(out, &route, sizeof route, "deltafs_mpi_route", e);
}
