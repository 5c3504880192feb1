#include "mpi/locality.h"

int locality_domain(void)
{
    return 0;
}
