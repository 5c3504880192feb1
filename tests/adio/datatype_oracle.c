/* The decoder of MPI datatypes against MPI_Pack: random types made of random types; the bytes that a walk finds are
 * those that MPI packs, in the same order. Exits with 0 if so.
 *
 *     datatype_oracle SEED COUNT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "datatype.h"

#define PARTS 4
#define KINDS (MPI_VERSION >= 4 ? 13 : 9)
#define BYTES (1 << 22) /* of the buffer that types describe; they begin in its middle */

static uint64_t state;

static int pick(int n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

static MPI_Datatype make(int depth);

static MPI_Datatype make_struct(int depth)
{
    int length[PARTS], n = 1 + pick(PARTS);
    MPI_Aint place[PARTS];
    MPI_Datatype part[PARTS], made;

    for (int i = 0; i < n; i++) {
        length[i] = 1 + pick(2);
        place[i] = pick(400) - 100;
        part[i] = make(depth - 1);
    }
    MPI_Type_create_struct(n, length, place, part, &made);
    for (int i = 0; i < n; i++)
        MPI_Type_free(&part[i]);
    return made;
}

static MPI_Datatype make_of(MPI_Datatype old)
{
    int length[PARTS], place[PARTS], n = 1 + pick(PARTS), sizes[2] = {3, 5}, begin[2] = {1, 0};
    int part[2] = {2, pick(2) ? 5 : 4};
    MPI_Aint address[PARTS];
    MPI_Count large[2 * PARTS]; /* lengths, then addresses: for MPI 4 */
    MPI_Datatype made;

    for (int i = 0; i < n; i++) {
        length[i] = 1 + pick(3);
        place[i] = pick(20) - 5;
        address[i] = pick(300) - 50;
        large[i] = length[i];
        large[PARTS + i] = address[i];
    }
    (void)large;
    switch (pick(KINDS)) {
#if MPI_VERSION >= 4 /* the same with large counts */
    case 9:
        MPI_Type_vector_c(n, length[0], pick(8) - 2, old, &made);
        break;
    case 10:
        MPI_Type_create_hvector_c(n, length[0], pick(100) - 20, old, &made);
        break;
    case 11:
        MPI_Type_create_hindexed_c(n, large, large + PARTS, old, &made);
        break;
    case 12:
        MPI_Type_create_hindexed_block_c(n, length[0], large + PARTS, old, &made);
        break;
#endif
    case 0:
        MPI_Type_contiguous(1 + pick(3), old, &made);
        break;
    case 1:
        MPI_Type_vector(n, length[0], pick(8) - 2, old, &made);
        break;
    case 2:
        MPI_Type_create_hvector(n, length[0], pick(100) - 20, old, &made);
        break;
    case 3:
        MPI_Type_indexed(n, length, place, old, &made);
        break;
    case 4:
        MPI_Type_create_hindexed(n, length, address, old, &made);
        break;
    case 5:
        MPI_Type_create_indexed_block(n, length[0], place, old, &made);
        break;
    case 6:
        MPI_Type_create_resized(old, pick(8) - 4, 1 + pick(200), &made);
        break;
    case 7:
        MPI_Type_create_subarray(2, sizes, part, begin, MPI_ORDER_C, old, &made);
        break;
    default:
        MPI_Type_dup(old, &made);
    }
    return made;
}

static MPI_Datatype make(int depth)
{
    MPI_Datatype named[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE}, old, made;

    if (depth == 0) {
        MPI_Type_dup(named[pick(4)], &made);
        return made;
    }
    if (pick(5) == 0)
        return make_struct(depth);
    old = make(depth - 1);
    made = make_of(old);
    MPI_Type_free(&old);
    return made;
}

struct copy {
    const uint8_t *from;
    uint8_t *to;
    size_t room, used;
};

static int copy_run(void *arg, MPI_Count at, MPI_Count size)
{
    struct copy *c = arg;

    if ((size_t)size > c->room - c->used)
        return 1;
    memcpy(c->to + c->used, c->from + at, (size_t)size);
    c->used += (size_t)size;
    return 0;
}

/* Returns 1 if the walk is right, 0 if the type cannot be walked, -1 if the walk is wrong. */
static int check(MPI_Datatype type, int count, uint8_t *bytes)
{
    int size, packed = 0, rc;

    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    uint8_t *want = calloc((size_t)size * (size_t)count + 1, 1), *got = calloc((size_t)size * (size_t)count + 1, 1);
    struct copy c = {bytes + BYTES / 2, got, (size_t)size * (size_t)count, 0};
    MPI_Pack(bytes + BYTES / 2, count, type, want, size * count, &packed, MPI_COMM_SELF);
    rc = datatype_walk(type, count, 0, copy_run, &c);
    if (rc == 0)
        rc = c.used == c.room && memcmp(want, got, c.room) == 0 ? 1 : -1;
    else
        rc = rc == DATATYPE_UNKNOWN ? 0 : -1;
    free(want);
    free(got);
    return rc;
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int n = argc > 2 ? atoi(argv[2]) : 1000, walked = 0, wrong = 0;
    uint8_t *bytes = malloc(BYTES);

    MPI_Init(&argc, &argv);
    state = seed;
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)pick(256);
    for (int i = 0; i < n; i++) {
        MPI_Datatype type = make(1 + pick(3));
        int verdict = check(type, 1 + pick(3), bytes);
        walked += verdict > 0;
        wrong += verdict < 0;
        MPI_Type_free(&type);
    }
    /* A pair has a gap, whose place MPI does not say. */
    wrong += datatype_walk(MPI_SHORT_INT, 1, 0, copy_run, &(struct copy){bytes, bytes, 0, 0}) != DATATYPE_UNKNOWN;
    printf("datatype_oracle: seed %llu: %d of %d types walked, %d wrong\n", (unsigned long long)seed, walked, n, wrong);
    free(bytes);
    MPI_Finalize();
    return wrong > 0 || walked < n / 2;
}
