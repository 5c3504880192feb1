/* Whether a data type is contiguous: one run of bytes, in order, that the next item of the type follows at once. ROMIO
 * asks MPICH, which knows it of each type; from outside it has to be found out from how the type was made.
 *
 * Sizes and extents rule most types out at once. What is left is contiguous unless its parts are out of order. */
#include "adio.h"

/* A run of bytes that is being put together. */
struct run {
    MPI_Count begin;
    MPI_Count end;
    int is_broken;
};

void MPIR_Datatype_iscontig(MPI_Datatype datatype, int *flag);
static void run_add_type(struct run *run, MPI_Datatype datatype, MPI_Count at);

static void run_add(struct run *run, MPI_Count at, MPI_Count size)
{
    if (size == 0)
        return;
    if (run->begin == run->end)
        run->begin = run->end = at;
    if (at != run->end)
        run->is_broken = 1;
    run->end += size;
}

/* `count` items of a type, one after another. */
static void run_add_items(struct run *run, MPI_Datatype datatype, MPI_Count at, MPI_Count count)
{
    MPI_Count size;
    MPI_Count lower;
    MPI_Count extent;
    struct run item = {0};

    PMPI_Type_size_x(datatype, &size);
    if (size == 0 || count == 0)
        return;
    PMPI_Type_get_extent_x(datatype, &lower, &extent);
    run_add_type(&item, datatype, 0);
    if (item.is_broken || (count > 1 && extent != size))
        run->is_broken = 1;
    run_add(run, at + item.begin, count * size);
}

static void free_derived(MPI_Datatype *datatype)
{
    int integers, addresses, datatypes, combiner;

    PMPI_Type_get_envelope(*datatype, &integers, &addresses, &datatypes, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(datatype);
}

/* What a type was made of. */
struct recipe {
    int combiner;
    int datatypes;
    int *integer;
    MPI_Aint *address;
    MPI_Datatype *datatype;
};

static void run_add_vector(struct run *run, const struct recipe *r, MPI_Count at, MPI_Count stride, MPI_Count extent)
{
    if (stride == r->integer[1] * extent) {
        run_add_items(run, r->datatype[0], at, (MPI_Count)r->integer[0] * r->integer[1]);
        return;
    }
    for (int i = 0; i < r->integer[0] && !run->is_broken; i++)
        run_add_items(run, r->datatype[0], at + i * stride, r->integer[1]);
}

static void run_add_recipe(struct run *run, const struct recipe *r, MPI_Count at)
{
    const int *integer = r->integer;
    MPI_Count lower = 0;
    MPI_Count extent = 0;

    PMPI_Type_get_extent_x(r->datatype[0], &lower, &extent);
    switch (r->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        run_add_type(run, r->datatype[0], at);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        run_add_items(run, r->datatype[0], at, integer[0]);
        break;
    case MPI_COMBINER_VECTOR:
        run_add_vector(run, r, at, integer[2] * extent, extent);
        break;
    case MPI_COMBINER_HVECTOR:
        run_add_vector(run, r, at, r->address[0], extent);
        break;
    case MPI_COMBINER_INDEXED:
        for (int i = 0; i < integer[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[0], at + integer[1 + integer[0] + i] * extent, integer[1 + i]);
        break;
    case MPI_COMBINER_HINDEXED:
        for (int i = 0; i < integer[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[0], at + r->address[i], integer[1 + i]);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        for (int i = 0; i < integer[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[0], at + integer[2 + i] * extent, integer[1]);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        for (int i = 0; i < integer[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[0], at + r->address[i], integer[1]);
        break;
    case MPI_COMBINER_STRUCT:
        for (int i = 0; i < integer[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[i], at + r->address[i], integer[1 + i]);
        break;
    default: /* a darray's parts may be anywhere */
        run->is_broken = 1;
        break;
    }
}

static void run_add_type(struct run *run, MPI_Datatype datatype, MPI_Count at)
{
    MPI_Count size, lower, extent;
    int integers, addresses;
    struct recipe r = {0};

    PMPI_Type_size_x(datatype, &size);
    PMPI_Type_get_true_extent_x(datatype, &lower, &extent);
    PMPI_Type_get_envelope(datatype, &integers, &addresses, &r.datatypes, &r.combiner);
    if (size != extent || r.datatypes == 0) {
        if (size != extent)
            run->is_broken = 1;
        run_add(run, at + lower, size);
        return;
    }
    r.integer = ADIOI_Malloc(((size_t)integers + 1) * sizeof *r.integer);
    r.address = ADIOI_Malloc(((size_t)addresses + 1) * sizeof *r.address);
    r.datatype = ADIOI_Malloc((size_t)r.datatypes * sizeof *r.datatype);
    if (PMPI_Type_get_contents(datatype, integers, addresses, r.datatypes, r.integer, r.address, r.datatype) ==
        MPI_SUCCESS) {
        if (r.combiner == MPI_COMBINER_SUBARRAY) { /* in order by its nature; holes show in its sizes */
            int is_whole;
            MPIR_Datatype_iscontig(r.datatype[0], &is_whole);
            if (!is_whole)
                run->is_broken = 1;
            run_add(run, at + lower, size);
        } else {
            run_add_recipe(run, &r, at);
        }
        for (int i = 0; i < r.datatypes; i++)
            free_derived(&r.datatype[i]);
    } else {
        run->is_broken = 1;
    }
    ADIOI_Free(r.integer);
    ADIOI_Free(r.address);
    ADIOI_Free(r.datatype);
}

void MPIR_Datatype_iscontig(MPI_Datatype datatype, int *flag)
{
    MPI_Count size, lower, extent, true_lower, true_extent;
    struct run run = {0};

    PMPI_Type_size_x(datatype, &size);
    PMPI_Type_get_extent_x(datatype, &lower, &extent);
    PMPI_Type_get_true_extent_x(datatype, &true_lower, &true_extent);
    *flag = size == extent && size == true_extent && true_lower == 0;
    if (*flag) {
        run_add_type(&run, datatype, 0);
        *flag = !run.is_broken;
    }
}
