/* That the job runs on the hosts that it was meant to run on: the same number of ranks on each, one after the other.
 *
 *     test_mpi_hosts HOST... */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "test_mpi_check.h"

int main(int argc, char **argv)
{
    char name[256] = "", processor[MPI_MAX_PROCESSOR_NAME], file[64];
    int hosts = argc - 1, node_rank, node_ranks, length, seen = 0;
    long pid = (long)getpid();
    MPI_Comm node;

    check_begin(&argc, &argv, MPI_THREAD_SINGLE);
    CHECK(hosts > 0 && check_ranks % hosts == 0);
    check_require();
    int of_host = check_ranks / hosts;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, check_rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &node_ranks);
    CHECK(node_ranks == of_host);
    CHECK(node_rank == check_rank % of_host);
    gethostname(name, sizeof name - 1);
    MPI_Get_processor_name(processor, &length);
    check_about("on %s", name);
    CHECK(strcmp(name, argv[1 + check_rank / of_host]) == 0);
    CHECK(strcmp(name, processor) == 0);

    /* Shared memory is shared by those of one node and by no others. */
    MPI_Bcast(&pid, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    snprintf(file, sizeof file, "/dev/shm/test_mpi_hosts.%ld", pid);
    if (check_rank == 0) {
        int fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0600);
        CHECK(fd >= 0 && close(fd) == 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    seen = access(file, F_OK) == 0;
    CHECK(seen == (check_rank < of_host));
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank == 0)
        CHECK(unlink(file) == 0);
    MPI_Comm_free(&node);
    return check_end();
}
