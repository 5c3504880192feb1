/* Whether a datatype is contiguous: one run of bytes, in order, which the next item of the type follows at once. MPICH
 * knows this for each type, and ROMIO asks it. This library has to derive it from how the type was made.
 *
 * Sizes and extents rule out most types at once. Any other type is contiguous unless its parts are out of order. */
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

/* What a type was made of: its counts, lengths and, as far as they count items, places; its places in bytes; its types.
 * One that was made with large counts has them all in one list. */
struct recipe {
    int combiner;
    MPI_Count datatypes;
    MPI_Count *number;
    MPI_Count *place;
    MPI_Datatype *datatype;
};

#if MPI_VERSION >= 4

/* How many there are of each. */
struct envelope {
    int combiner;
    MPI_Count integers;
    MPI_Count addresses;
    MPI_Count counts;
    MPI_Count datatypes;
};

static int envelope_get(MPI_Datatype datatype, struct envelope *n)
{
    return PMPI_Type_get_envelope_c(datatype, &n->integers, &n->addresses, &n->counts, &n->datatypes, &n->combiner);
}

static int contents_get(MPI_Datatype datatype, const struct envelope *n, int *integer, MPI_Aint *address,
                        MPI_Count *count, MPI_Datatype *types)
{
    return PMPI_Type_get_contents_c(datatype, n->integers, n->addresses, n->counts, n->datatypes, integer, address,
                                    count, types);
}

#else

struct envelope {
    int combiner;
    int integers;
    int addresses;
    int counts;
    int datatypes;
};

static int envelope_get(MPI_Datatype datatype, struct envelope *n)
{
    n->counts = 0;
    return PMPI_Type_get_envelope(datatype, &n->integers, &n->addresses, &n->datatypes, &n->combiner);
}

static int contents_get(MPI_Datatype datatype, const struct envelope *n, int *integer, MPI_Aint *address,
                        MPI_Count *count, MPI_Datatype *types)
{
    (void)count;
    return PMPI_Type_get_contents(datatype, n->integers, n->addresses, n->datatypes, integer, address, types);
}

#endif

static void free_derived(MPI_Datatype *datatype)
{
    struct envelope n;

    if (envelope_get(*datatype, &n) == MPI_SUCCESS && n.combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(datatype);
}

/* Where the places in bytes begin among large counts. */
static MPI_Count places_of(const struct recipe *r)
{
    switch (r->combiner) {
    case MPI_COMBINER_HVECTOR:
    case MPI_COMBINER_HINDEXED_BLOCK:
        return 2;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT:
        return 1 + r->number[0];
    default:
        return 0;
    }
}

static void recipe_fini(struct recipe *r)
{
    for (MPI_Count i = 0; i < r->datatypes; i++)
        free_derived(&r->datatype[i]);
    ADIOI_Free(r->number);
    ADIOI_Free(r->datatype);
}

/* False, with nothing to be freed, if MPI does not say how the type was made. */
static int recipe_init(struct recipe *r, MPI_Datatype datatype, const struct envelope *n)
{
    int *integer = ADIOI_Malloc(((size_t)n->integers + 1) * sizeof *integer);
    MPI_Aint *address = ADIOI_Malloc(((size_t)n->addresses + 1) * sizeof *address);
    MPI_Count *count = ADIOI_Malloc(((size_t)n->counts + 1) * sizeof *count);

    *r = (struct recipe){.combiner = n->combiner};
    r->number = ADIOI_Malloc((size_t)(n->integers + n->addresses + n->counts + 1) * sizeof *r->number);
    r->datatype = ADIOI_Malloc((size_t)n->datatypes * sizeof *r->datatype);
    int is_reported = contents_get(datatype, n, integer, address, count, r->datatype) == MPI_SUCCESS;
    if (is_reported && n->counts > 0) {
        memcpy(r->number, count, (size_t)n->counts * sizeof *count);
        r->place = r->number + places_of(r);
    } else if (is_reported) {
        for (MPI_Count i = 0; i < n->integers; i++)
            r->number[i] = integer[i];
        r->place = r->number + n->integers;
        for (MPI_Count i = 0; i < n->addresses; i++)
            r->place[i] = address[i];
    }
    r->datatypes = is_reported ? n->datatypes : 0;
    if (!is_reported)
        recipe_fini(r);
    ADIOI_Free(integer);
    ADIOI_Free(address);
    ADIOI_Free(count);
    return is_reported;
}

static void run_add_vector(struct run *run, const struct recipe *r, MPI_Count at, MPI_Count stride, MPI_Count extent)
{
    if (stride == r->number[1] * extent) {
        run_add_items(run, r->datatype[0], at, r->number[0] * r->number[1]);
        return;
    }
    for (MPI_Count i = 0; i < r->number[0] && !run->is_broken; i++)
        run_add_items(run, r->datatype[0], at + i * stride, r->number[1]);
}

static void run_add_recipe(struct run *run, const struct recipe *r, MPI_Count at)
{
    const MPI_Count *number = r->number;
    MPI_Count lower = 0;
    MPI_Count extent = 0;

    PMPI_Type_get_extent_x(r->datatype[0], &lower, &extent);
    switch (r->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        run_add_type(run, r->datatype[0], at);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        run_add_items(run, r->datatype[0], at, number[0]);
        break;
    case MPI_COMBINER_VECTOR:
        run_add_vector(run, r, at, number[2] * extent, extent);
        break;
    case MPI_COMBINER_HVECTOR:
        run_add_vector(run, r, at, r->place[0], extent);
        break;
    case MPI_COMBINER_INDEXED:
        for (MPI_Count i = 0; i < number[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[0], at + number[1 + number[0] + i] * extent, number[1 + i]);
        break;
    case MPI_COMBINER_HINDEXED:
        for (MPI_Count i = 0; i < number[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[0], at + r->place[i], number[1 + i]);
        break;
    case MPI_COMBINER_INDEXED_BLOCK:
        for (MPI_Count i = 0; i < number[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[0], at + number[2 + i] * extent, number[1]);
        break;
    case MPI_COMBINER_HINDEXED_BLOCK:
        for (MPI_Count i = 0; i < number[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[0], at + r->place[i], number[1]);
        break;
    case MPI_COMBINER_STRUCT:
        for (MPI_Count i = 0; i < number[0] && !run->is_broken; i++)
            run_add_items(run, r->datatype[i], at + r->place[i], number[1 + i]);
        break;
    default: /* a darray's parts may be anywhere */
        run->is_broken = 1;
        break;
    }
}

static void run_add_type(struct run *run, MPI_Datatype datatype, MPI_Count at)
{
    MPI_Count size, lower, extent;
    struct envelope n;
    struct recipe r;

    PMPI_Type_size_x(datatype, &size);
    PMPI_Type_get_true_extent_x(datatype, &lower, &extent);
    if (size != extent || envelope_get(datatype, &n) != MPI_SUCCESS) {
        run->is_broken = 1;
        run_add(run, at + lower, size);
        return;
    }
    if (n.datatypes == 0) {
        run_add(run, at + lower, size);
        return;
    }
    if (!recipe_init(&r, datatype, &n)) {
        run->is_broken = 1;
        return;
    }
    if (r.combiner == MPI_COMBINER_SUBARRAY) { /* in order by its nature; holes show in its sizes */
        int is_whole;
        MPIR_Datatype_iscontig(r.datatype[0], &is_whole);
        if (!is_whole)
            run->is_broken = 1;
        run_add(run, at + lower, size);
    } else {
        run_add_recipe(run, &r, at);
    }
    recipe_fini(&r);
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
