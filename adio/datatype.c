#include "datatype.h"

#include <stdlib.h>
#include <string.h>

struct walk {
    datatype_run_fn fn;
    void *arg;
};

static int walk_type(const struct walk *w, MPI_Datatype type, MPI_Count at);

/* ---- One run ---- */

struct span {
    MPI_Count begin, end;
};

static int span_add(void *arg, MPI_Count at, MPI_Count size)
{
    struct span *s = arg;

    if (s->begin == s->end)
        s->begin = s->end = at;
    if (at != s->end)
        return 1;
    s->end += size;
    return 0;
}

/* Sizes rule most types out at once. Any other type is one run unless its parts are out of order. */
int datatype_is_run(MPI_Datatype type, MPI_Count *begin)
{
    struct span s = {0, 0};
    const struct walk w = {span_add, &s};
    MPI_Count size, lower, extent;

    if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent_x(type, &lower, &extent) != MPI_SUCCESS || size != extent ||
        walk_type(&w, type, 0) != 0)
        return 0;
    *begin = s.begin;
    return 1;
}

static int walk_items(const struct walk *w, MPI_Datatype type, MPI_Count at, MPI_Count count)
{
    MPI_Count size, lower, extent, begin;
    int rc = 0;

    if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || PMPI_Type_get_extent_x(type, &lower, &extent) != MPI_SUCCESS)
        return DATATYPE_UNKNOWN;
    if (size == 0 || count == 0)
        return 0;
    if ((count == 1 || extent == size) && datatype_is_run(type, &begin))
        return w->fn(w->arg, at + begin, count * size);
    for (MPI_Count i = 0; i < count && rc == 0; i++)
        rc = walk_type(w, type, at + i * extent);
    return rc;
}

/* ---- How a type was made ---- */

/* Its counts and lengths, with places that count items; its places in bytes; its types. A type that was made with large
 * counts has all numbers in one list. */
struct recipe {
    int combiner;
    MPI_Count types;
    MPI_Count *number;
    MPI_Count *place;
    MPI_Datatype *type;
};

#if MPI_VERSION >= 4
#define NUMBER MPI_Count
#else
#define NUMBER int
#endif

/* How many there are of each. */
struct envelope {
    int combiner;
    NUMBER integers, addresses, counts, types;
};

static int envelope_get(MPI_Datatype type, struct envelope *n)
{
#if MPI_VERSION >= 4
    return PMPI_Type_get_envelope_c(type, &n->integers, &n->addresses, &n->counts, &n->types, &n->combiner);
#else
    n->counts = 0;
    return PMPI_Type_get_envelope(type, &n->integers, &n->addresses, &n->types, &n->combiner);
#endif
}

static int contents_get(MPI_Datatype type, const struct envelope *n, int *integer, MPI_Aint *address, MPI_Count *count,
                        MPI_Datatype *types)
{
#if MPI_VERSION >= 4
    return PMPI_Type_get_contents_c(type, n->integers, n->addresses, n->counts, n->types, integer, address, count,
                                    types);
#else
    (void)count;
    return PMPI_Type_get_contents(type, n->integers, n->addresses, n->types, integer, address, types);
#endif
}

static void free_derived(MPI_Datatype *type)
{
    struct envelope n;

    if (envelope_get(*type, &n) == MPI_SUCCESS && n.combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(type);
}

static void recipe_fini(struct recipe *r)
{
    for (MPI_Count i = 0; i < r->types; i++)
        free_derived(&r->type[i]);
    free(r->number);
    free(r->type);
}

/* Numbers of either kind as MPI_Count. Among large counts the places in bytes come last. */
static void recipe_take(struct recipe *r, const struct envelope *n, const int *integer, const MPI_Aint *address,
                        const MPI_Count *count)
{
    MPI_Count integers = n->integers;

    r->types = n->types;
    memcpy(r->number, count, (size_t)n->counts * sizeof *count);
    if (n->counts > 0) {
        MPI_Count places = r->combiner == MPI_COMBINER_HVECTOR ? 1 : count[0];
        integers = places < n->counts ? n->counts - places : 0;
    }
    r->place = r->number + integers;
    for (MPI_Count i = 0; i < n->integers; i++)
        r->number[i] = integer[i];
    for (MPI_Count i = 0; i < n->addresses; i++)
        r->place[i] = address[i];
}

/* After an error there is nothing to be freed. */
static int recipe_init(struct recipe *r, MPI_Datatype type, const struct envelope *n)
{
    int *integer = calloc((size_t)n->integers + 1, sizeof *integer);
    MPI_Aint *address = calloc((size_t)n->addresses + 1, sizeof *address);
    MPI_Count *count = calloc((size_t)n->counts + 1, sizeof *count);
    int rc = 0;

    *r = (struct recipe){.combiner = n->combiner};
    r->number = calloc((size_t)(n->integers + n->addresses + n->counts) + 1, sizeof *r->number);
    r->type = calloc((size_t)n->types + 1, sizeof *r->type);
    if (!integer || !address || !count || !r->number || !r->type)
        rc = DATATYPE_MEMORY;
    else if (contents_get(type, n, integer, address, count, r->type) != MPI_SUCCESS)
        rc = DATATYPE_UNKNOWN;
    else
        recipe_take(r, n, integer, address, count);
    if (rc != 0)
        recipe_fini(r);
    free(integer);
    free(address);
    free(count);
    return rc;
}

/* ---- Walking ---- */

static int walk_vector(const struct walk *w, const struct recipe *r, MPI_Count at, MPI_Count stride)
{
    int rc = 0;

    for (MPI_Count i = 0; i < r->number[0] && rc == 0; i++)
        rc = walk_items(w, r->type[0], at + i * stride, r->number[1]);
    return rc;
}

static int walk_recipe(const struct walk *w, const struct recipe *r, MPI_Count at)
{
    const MPI_Count *n = r->number;
    MPI_Datatype old = r->type[0];
    MPI_Count lower, extent;
    int rc = PMPI_Type_get_extent_x(old, &lower, &extent) == MPI_SUCCESS ? 0 : DATATYPE_UNKNOWN;

    switch (r->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return walk_type(w, old, at);
    case MPI_COMBINER_CONTIGUOUS:
        return walk_items(w, old, at, n[0]);
    case MPI_COMBINER_VECTOR:
        return walk_vector(w, r, at, n[2] * extent);
    case MPI_COMBINER_HVECTOR:
        return walk_vector(w, r, at, r->place[0]);
    case MPI_COMBINER_INDEXED:
        for (MPI_Count i = 0; i < n[0] && rc == 0; i++)
            rc = walk_items(w, old, at + n[1 + n[0] + i] * extent, n[1 + i]);
        return rc;
    case MPI_COMBINER_HINDEXED:
        for (MPI_Count i = 0; i < n[0] && rc == 0; i++)
            rc = walk_items(w, old, at + r->place[i], n[1 + i]);
        return rc;
    case MPI_COMBINER_INDEXED_BLOCK:
        for (MPI_Count i = 0; i < n[0] && rc == 0; i++)
            rc = walk_items(w, old, at + n[2 + i] * extent, n[1]);
        return rc;
    case MPI_COMBINER_HINDEXED_BLOCK:
        for (MPI_Count i = 0; i < n[0] && rc == 0; i++)
            rc = walk_items(w, old, at + r->place[i], n[1]);
        return rc;
    case MPI_COMBINER_STRUCT:
        for (MPI_Count i = 0; i < n[0] && rc == 0; i++)
            rc = walk_items(w, r->type[i], at + r->place[i], n[1 + i]);
        return rc;
    default: /* the parts of a darray may be anywhere */
        return DATATYPE_UNKNOWN;
    }
}

static int walk_type(const struct walk *w, MPI_Datatype type, MPI_Count at)
{
    MPI_Count size, lower, extent, begin;
    struct envelope n;
    struct recipe r;

    if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent_x(type, &lower, &extent) != MPI_SUCCESS || envelope_get(type, &n) != MPI_SUCCESS)
        return DATATYPE_UNKNOWN;
    if (size == 0)
        return 0;
    if (n.types == 0) /* MPI's own types, of which pairs such as MPI_SHORT_INT can have a gap */
        return size == extent ? w->fn(w->arg, at + lower, size) : DATATYPE_UNKNOWN;
    int rc = recipe_init(&r, type, &n);
    if (rc != 0)
        return rc;
    if (r.combiner != MPI_COMBINER_SUBARRAY)
        rc = walk_recipe(w, &r, at);
    else if (size == extent && datatype_is_run(r.type[0], &begin)) /* its parts are always in order */
        rc = w->fn(w->arg, at + lower, size);
    else
        rc = DATATYPE_UNKNOWN;
    recipe_fini(&r);
    return rc;
}

int datatype_walk(MPI_Datatype type, MPI_Count count, MPI_Count at, datatype_run_fn fn, void *arg)
{
    const struct walk w = {fn, arg};

    return walk_items(&w, type, at, count);
}
