/* Whether a datatype is contiguous: one run of bytes, in order, which the next item of the type follows at once. MPICH
 * knows this for each type, and ROMIO asks it. This library has to derive it from how the type was made. */
#include "adio.h"
#include "datatype.h"

void MPIR_Datatype_iscontig(MPI_Datatype datatype, int *flag);

void MPIR_Datatype_iscontig(MPI_Datatype datatype, int *flag)
{
    MPI_Count size, lower, extent, begin;

    PMPI_Type_size_x(datatype, &size);
    PMPI_Type_get_extent_x(datatype, &lower, &extent);
    *flag = size == extent && (size == 0 || (datatype_is_run(datatype, &begin) && begin == 0));
}
