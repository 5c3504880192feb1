/* What a pool of so many servers takes, and what calls cost. */
#include <inttypes.h>
#include <deltafs/deltafs_mpi.h>
#include "base/options.h"
#include "base/sized.h"
#include "mpi/pool/pool_peers.h"

#define WRITTEN  (1u << 20)                           /* bytes that are written and read */
#define GATHERED (sizeof(uint64_t) + 2 * sizeof(int)) /* of rank_group.h, for each rank */
#define ROUND    (POOL_SLOTS - 1)                     /* requests at once; one more is about the size */

static struct deltafs_pool_report report_of(uint64_t servers, const struct pool_door_options *o)
{
    const struct pool_store_need store = pool_store_need();
    int is_alone = servers == 1;
    /* If all servers are on other nodes; and each round is also about the size. */
    uint64_t chunks = WRITTEN / POOL_CHUNK;
    uint64_t pieces = WRITTEN / (is_alone ? POOL_SLOT_BYTES : POOL_REMOTE_BYTES), rounds = (pieces + ROUND - 1) / ROUND;
    struct deltafs_pool_report r = {.message_bytes = pool_peers_bytes(),
                                    .lost_bytes = pool_peers_lost_bytes(),
                                    .table_bytes = servers * (POINT_NODE_ROOM + GATHERED + POOL_PEER_BYTES),
                                    .clients = pool_door_most(o),
                                    .lock_bytes = POOL_LOCKS_MOST * sizeof(struct pool_range),
                                    .process_bytes = servers * POINT_NODE_ROOM,
                                    .map_bytes = store.map,
                                    .entry_bytes = store.entry,
                                    .chunk_bytes = store.chunk,
                                    .request_bytes = POOL_PEER_MESSAGE,
                                    .create = 1,
                                    /* It is refused, the server becomes a member of the folder, it is repeated. */
                                    .first_create = is_alone ? 1 : 3,
                                    .stat = 1,
                                    .renamed_stat = is_alone ? 1 : 2,
                                    .write = pieces + (is_alone ? 0 : rounds),
                                    .read = pieces + rounds};

    r.client_bytes = r.clients * pool_door_bytes(o);
    r.remove = 1 + (chunks < servers - 1 ? chunks : servers - 1);
    /* The members, a part at a time, and then each of them. */
    r.list = 1 + servers / (POOL_REMOTE_BYTES / sizeof(uint32_t)) + servers;
    return r;
}

int deltafs_mpi_pool_report(uint64_t servers, uint64_t memory, struct deltafs_pool_report *out)
{
    const struct pool_door_options o = {.servers = (uint32_t)servers, .memory = memory > 0 ? memory : POOL_MEMORY};
    struct error e = {.status = DELTAFS_OK};

    if (servers == 0 || servers > POOL_MOST)
        return error_of_thread(
            error_set(&e, DELTAFS_ERR_INVALID, "%" PRIu64 " servers: a pool has 1 to %u", servers, POOL_MOST), &e);
    const struct deltafs_pool_report r = report_of(servers, &o);
    return error_of_thread(sized_fill(out, &r, sizeof r, "deltafs_mpi_pool_report", &e), &e);
}
