/* deltafs-mpi pool report: what a pool of so many servers takes, and what calls cost. Needs no mpirun. */
#include <inttypes.h>
#include <deltafs/deltafs_mpi.h>
#include "tools/cmd.h"

command_parse cmd_parse_pool_memory; /* of cmd_mpi_pool.c */

struct report {
    struct command_number servers;
    uint64_t memory;
    int is_json;
};

static void print_json(uint64_t servers, uint64_t all, const struct deltafs_pool_report *r)
{
    printf("{\"servers\": %" PRIu64 ", \"server_bytes\": %" PRIu64 ", \"message_bytes\": %" PRIu64
           ", \"lost_bytes\": %" PRIu64 ", \"table_bytes\": %" PRIu64 ", \"clients\": %" PRIu64
           ", \"client_bytes\": %" PRIu64 ", \"lock_bytes\": %" PRIu64 ", \"process_bytes\": %" PRIu64
           ", \"map_bytes\": %" PRIu64 ", \"entry_bytes\": %" PRIu64 ", \"chunk_bytes\": %" PRIu64
           ", \"request_bytes\": %" PRIu64 ", \"create\": %" PRIu64 ", \"first_create\": %" PRIu64
           ", \"stat\": %" PRIu64 ", \"renamed_stat\": %" PRIu64 ", \"write\": %" PRIu64 ", \"read\": %" PRIu64
           ", \"remove\": %" PRIu64 ", \"list\": %" PRIu64 "}\n",
           servers, all, r->message_bytes, r->lost_bytes, r->table_bytes, r->clients, r->client_bytes, r->lock_bytes,
           r->process_bytes, r->map_bytes, r->entry_bytes, r->chunk_bytes, r->request_bytes, r->create, r->first_create,
           r->stat, r->renamed_stat, r->write, r->read, r->remove, r->list);
}

static void print_bytes(const char *what, uint64_t bytes, const char *text)
{
    printf("  %-15s %" PRIu64 " bytes (%.2f MiB)%s\n", what, bytes, (double)bytes / (1 << 20), text);
}

static void print_text(uint64_t servers, uint64_t all, const struct deltafs_pool_report *r)
{
    printf("servers           %" PRIu64 ", each on a node of its own\n", servers);
    printf("memory per server, besides MPI's and what the system keeps of files\n");
    print_bytes("messages", r->message_bytes, "");
    print_bytes("lost servers", r->lost_bytes, " for each");
    print_bytes("tables", r->table_bytes, "");
    printf("  clients         %" PRIu64 " at most\n", r->clients);
    print_bytes("for them", r->client_bytes, " at most");
    print_bytes("locks", r->lock_bytes, " at most");
    print_bytes("all", all, " at most");
    printf("memory per client\n");
    print_bytes("names of nodes", r->process_bytes, "");
    printf("names and places in each local folder\n");
    print_bytes("all", r->map_bytes, " at most");
    printf("  each entry      up to %" PRIu64 " bytes\n", r->entry_bytes);
    printf("  each 512 KiB    up to %" PRIu64 " bytes\n", r->chunk_bytes);
    printf("requests, each of 2 messages of up to %" PRIu64 " bytes\n", r->request_bytes);
    printf("  create a file   %" PRIu64 "; the first of a folder on a server %" PRIu64 "\n", r->create,
           r->first_create);
    printf("  stat            %" PRIu64 "; of a file that was renamed %" PRIu64 "\n", r->stat, r->renamed_stat);
    printf("  write 1 MiB     up to %" PRIu64 "\n", r->write);
    printf("  read 1 MiB      up to %" PRIu64 "\n", r->read);
    printf("  remove 1 MiB    up to %" PRIu64 "\n", r->remove);
    printf("  list a folder   up to %" PRIu64 ", and 1 for each 64 KiB of entries\n", r->list);
}

static int report_run(const struct command_call *c)
{
    const struct report *o = c->values;
    struct deltafs_pool_report r = {.struct_size = sizeof r};

    if (!o->servers.is_given || c->count > 0)
        return text_fail(EXIT_USAGE, "report: --servers must be given, and no arguments");
    int status = deltafs_mpi_pool_report(o->servers.value, o->memory, &r);
    if (status != DELTAFS_OK)
        return text_fail(text_exit_code(status), "pool report: %s", deltafs_errmsg(NULL));
    uint64_t all = r.message_bytes + r.table_bytes + r.client_bytes + r.lock_bytes;
    (o->is_json ? print_json : print_text)(o->servers.value, all, &r);
    return EXIT_OK;
}

static const struct command_option options[] = {
    {"servers", 0, "N", "servers of the pool", cmd_parse_number, offsetof(struct report, servers)},
    {"memory", 0, "SIZE", "as for the servers (default 512M)", cmd_parse_pool_memory, offsetof(struct report, memory)},
    {"json", 0, NULL, "for programs", NULL, offsetof(struct report, is_json)},
    {0}};

const struct command cmd_mpi_pool_report = {
    .name = "report",
    .usage = "--servers N [OPTION...]",
    .text = "Print the memory of a server of a pool of N servers, and the requests of calls. Needs no mpirun.",
    .size = sizeof(struct report),
    .option = options,
    .run = report_run};
