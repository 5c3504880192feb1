/* Random MPI-IO against an oracle: what a POSIX file would hold.
 *
 *     ompio_oracle FILE SEED ROUNDS [PLAIN]
 *
 * Knows nothing of DeltaFS: FILE may have any prefix, and none; PLAIN, if it is given, gets what the file must hold at
 * the end. All ranks draw the same random numbers, so each knows what all the others do and keeps an image of the file.
 * A round opens the file in some mode with some of the ranks, sets views, and makes a few steps: collective and
 * independent, blocking and nonblocking, split, through noncontiguous memory; writes that overlap, in an order that
 * syncs and barriers define; read-modify-write; set_size and preallocate; reads beyond the end. What is read is
 * compared with the image at once, and the whole file by other ranks after each round. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT (1 << 20)
#define MAX_BLOCKS 12

static unsigned char *image; /* of FILE_LIMIT bytes; beyond `size` zeros */
static int64_t size;
static uint64_t drawn; /* the state of the random numbers that all ranks draw alike */
static int world_rank, world_size, step;
static const char *name;

static uint64_t draw(uint64_t below)
{
    drawn += 0x9e3779b97f4a7c15u;
    uint64_t x = drawn;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return (x ^ (x >> 31)) % below;
}

static void fail(const char *what, long long a, long long b)
{
    fprintf(stderr, "rank %d, step %d: %s (%lld, %lld)\n", world_rank, step, what, a, b);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d, step %d: %s: %s\n", world_rank, step, call, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, #call)

/* A view: blocks of bytes in a tile of `extent` bytes, repeated from `disp` on. */
struct view {
    int64_t disp, extent, bytes;
    int n;
    MPI_Aint offset[MAX_BLOCKS];
    int length[MAX_BLOCKS];
    int unit; /* bytes of the elementary type */
};

static const MPI_Datatype *unit_type(int unit)
{
    static const MPI_Datatype types[] = {MPI_BYTE, MPI_SHORT, MPI_INT, MPI_DOUBLE};

    return &types[unit == 1 ? 0 : unit == 2 ? 1 : unit == 4 ? 2 : 3];
}

/* Where byte `at` of the view is in the file. */
static int64_t view_place(const struct view *v, int64_t at)
{
    int64_t tile = at / v->bytes, rest = at % v->bytes;
    int i = 0;

    while (rest >= v->length[i])
        rest -= v->length[i++];
    return v->disp + tile * v->extent + v->offset[i] + rest;
}

/* A random view of one rank of `ranks`. If `is_apart`, ranks have tiles of one shape, each shifted into a gap of its
 * own, so that no two have a byte in common. */
static struct view view_draw(int rank, int ranks, int is_apart)
{
    struct view v = {.n = 1 + (int)draw(MAX_BLOCKS), .unit = 1 << draw(4)};
    int64_t at = 0;

    v.disp = (int64_t)draw(3) * (int64_t)draw(5000);
    for (int i = 0; i < v.n; i++) {
        int64_t length = (int64_t)(1 + draw(draw(4) == 0 ? 200 : 12)) * v.unit;
        int64_t gap = is_apart ? length * (ranks - 1) : (int64_t)draw(3) * (int64_t)draw(20) * v.unit;
        v.offset[i] = at + (is_apart ? length * rank : 0);
        v.length[i] = (int)length;
        v.bytes += length;
        at += length + gap;
    }
    v.extent = at + (int64_t)draw(2) * (int64_t)draw(30) * v.unit;
    if (draw(5) == 0) { /* plain */
        v = (struct view){.n = 1, .unit = 1, .bytes = 4096, .extent = 4096 * (is_apart ? ranks : 1), .length = {4096}};
        v.offset[0] = is_apart ? 4096 * rank : 0;
    }
    if (!is_apart)
        v.disp += (int64_t)draw(3) * rank * v.unit;
    return v;
}

static void view_set(MPI_File file, const struct view *v)
{
    MPI_Datatype blocks, tile;

    MPI_Type_create_hindexed(v->n, v->length, v->offset, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, v->extent, &tile);
    MPI_Type_commit(&tile);
    CHECK(MPI_File_set_view(file, v->disp, *unit_type(v->unit), tile, "native", MPI_INFO_NULL));
    MPI_Type_free(&blocks);
    MPI_Type_free(&tile);
}

/* One access of a rank: `count` units at unit `at` of its view, by memory that has holes if `stride` is not 1. */
struct access {
    struct view view;
    int64_t at;
    int count, stride;
    uint64_t seed;
};

static struct access access_draw(int rank, int ranks, int is_apart)
{
    struct access a = {.view = view_draw(rank, ranks, is_apart)};

    a.at = (int64_t)draw(200);
    a.count = (int)(draw(6) == 0 ? 0 : draw(draw(3) == 0 ? 3000 : 60));
    a.stride = 1 + (int)draw(2);
    a.seed = draw(UINT64_MAX);
    while (a.count > 0 && view_place(&a.view, (a.at + a.count) * a.view.unit - 1) >= FILE_LIMIT)
        a.count /= 2;
    if (view_place(&a.view, a.at * a.view.unit) >= FILE_LIMIT)
        a.count = 0;
    return a;
}

static unsigned char access_byte(const struct access *a, int64_t i)
{
    return (unsigned char)((a->seed >> (i % 7 * 8)) + (uint64_t)i / 7);
}

static void access_apply(const struct access *a)
{
    for (int64_t i = 0; i < (int64_t)a->count * a->view.unit; i++) {
        int64_t place = view_place(&a->view, a->at * a->view.unit + i);
        image[place] = access_byte(a, i);
        if (place >= size)
            size = place + 1;
    }
}

/* Units lie `stride` apart in memory. */
static MPI_Datatype access_type(const struct access *a)
{
    MPI_Datatype type;

    MPI_Type_create_resized(*unit_type(a->view.unit), 0, (MPI_Aint)a->view.unit * a->stride, &type);
    MPI_Type_commit(&type);
    return type;
}

static unsigned char *access_buffer(const struct access *a)
{
    return calloc((size_t)a->count * (size_t)a->view.unit * (size_t)a->stride + 16, 1);
}

static unsigned char *access_memory(const struct access *a, unsigned char *buffer, int64_t i)
{
    return buffer + i / a->view.unit * a->view.unit * a->stride + i % a->view.unit;
}

static void access_expect(const struct access *a, unsigned char *buffer, MPI_Status *status)
{
    int64_t there = 0, wanted = (int64_t)a->count * a->view.unit;
    MPI_Count got;

    while (there < wanted && view_place(&a->view, a->at * a->view.unit + there) < size)
        there++;
    MPI_Get_elements_x(status, MPI_BYTE, &got);
    if (got != there)
        fail("bytes read, bytes there", (long long)got, (long long)there);
    for (int64_t i = 0; i < there; i++)
        if (*access_memory(a, buffer, i) != image[view_place(&a->view, a->at * a->view.unit + i)])
            fail("another byte, at this place of the file", view_place(&a->view, a->at * a->view.unit + i),
                 *access_memory(a, buffer, i));
}

static void collective(MPI_File file, const struct access *a, int is_write, int how, unsigned char *buffer,
                       MPI_Datatype type, MPI_Status *status)
{
    MPI_Request request;

    if (how % 2 == 1)
        CHECK(MPI_File_seek(file, a->at, MPI_SEEK_SET));
    switch (how) {
    case 0:
        CHECK(is_write ? MPI_File_write_at_all(file, a->at, buffer, a->count, type, status)
                       : MPI_File_read_at_all(file, a->at, buffer, a->count, type, status));
        return;
    case 1:
        CHECK(is_write ? MPI_File_write_all(file, buffer, a->count, type, status)
                       : MPI_File_read_all(file, buffer, a->count, type, status));
        return;
    case 2:
        CHECK(is_write ? MPI_File_write_at_all_begin(file, a->at, buffer, a->count, type)
                       : MPI_File_read_at_all_begin(file, a->at, buffer, a->count, type));
        CHECK(is_write ? MPI_File_write_at_all_end(file, buffer, status)
                       : MPI_File_read_at_all_end(file, buffer, status));
        return;
    case 3:
        CHECK(is_write ? MPI_File_write_all_begin(file, buffer, a->count, type)
                       : MPI_File_read_all_begin(file, buffer, a->count, type));
        CHECK(is_write ? MPI_File_write_all_end(file, buffer, status) : MPI_File_read_all_end(file, buffer, status));
        return;
    case 4:
        CHECK(is_write ? MPI_File_iwrite_at_all(file, a->at, buffer, a->count, type, &request)
                       : MPI_File_iread_at_all(file, a->at, buffer, a->count, type, &request));
        break;
    default:
        CHECK(is_write ? MPI_File_iwrite_all(file, buffer, a->count, type, &request)
                       : MPI_File_iread_all(file, buffer, a->count, type, &request));
        break;
    }
    CHECK(MPI_Wait(&request, status));
}

static void alone(MPI_File file, const struct access *a, int is_write, int how, unsigned char *buffer,
                  MPI_Datatype type, MPI_Status *status)
{
    MPI_Request request;

    if (how % 2 == 1)
        CHECK(MPI_File_seek(file, a->at, MPI_SEEK_SET));
    switch (how) {
    case 0:
        CHECK(is_write ? MPI_File_write_at(file, a->at, buffer, a->count, type, status)
                       : MPI_File_read_at(file, a->at, buffer, a->count, type, status));
        return;
    case 1:
        CHECK(is_write ? MPI_File_write(file, buffer, a->count, type, status)
                       : MPI_File_read(file, buffer, a->count, type, status));
        return;
    case 2:
        CHECK(is_write ? MPI_File_iwrite_at(file, a->at, buffer, a->count, type, &request)
                       : MPI_File_iread_at(file, a->at, buffer, a->count, type, &request));
        break;
    default:
        CHECK(is_write ? MPI_File_iwrite(file, buffer, a->count, type, &request)
                       : MPI_File_iread(file, buffer, a->count, type, &request));
        break;
    }
    CHECK(MPI_Wait(&request, status));
}

/* Sets the rank's view and makes the access; what was read is compared. */
static void access_make(MPI_File file, const struct access *a, int is_write, int is_collective, int how)
{
    unsigned char *buffer = access_buffer(a);
    MPI_Datatype type = access_type(a);
    MPI_Status status;
    MPI_Count got;

    for (int64_t i = 0; is_write && i < (int64_t)a->count * a->view.unit; i++)
        *access_memory(a, buffer, i) = access_byte(a, i);
    if (is_collective)
        collective(file, a, is_write, how, buffer, type, &status);
    else
        alone(file, a, is_write, how % 4, buffer, type, &status);
    MPI_Get_elements_x(&status, MPI_BYTE, &got);
    if (is_write && got != (MPI_Count)a->count * a->view.unit)
        fail("bytes written, bytes to write", (long long)got, (long long)a->count * a->view.unit);
    if (!is_write)
        access_expect(a, buffer, &status);
    MPI_Type_free(&type);
    free(buffer);
}

/* From here on all see what any has written. */
static void publish(MPI_File file, MPI_Comm comm, int is_atomic)
{
    if (!is_atomic)
        CHECK(MPI_File_sync(file));
    MPI_Barrier(comm);
    if (!is_atomic)
        CHECK(MPI_File_sync(file));
}

static void check_size(MPI_File file)
{
    MPI_Offset found;

    CHECK(MPI_File_get_size(file, &found));
    if (found != size)
        fail("size found, size it must have", found, size);
}

/* One step of all ranks of `comm`; kinds below 3 change the file. */
static void make_step(MPI_File file, MPI_Comm comm, int ranks, int rank, int kind, int is_atomic)
{
    struct access mine = {.count = 0}, all[64];
    int how = (int)draw(6);

    for (int r = 0; r < ranks; r++)
        all[r] = access_draw(r, ranks, 0);
    if (rank >= 0)
        mine = all[rank];
    switch (kind) {
    case 0: { /* all at once, apart */
        uint64_t shape = draw(UINT64_MAX);
        for (int r = 0; r < ranks; r++) {
            drawn = shape;
            all[r] = access_draw(r, ranks, 1);
            all[r].seed += (uint64_t)r * 77;
            access_apply(&all[r]);
        }
        if (rank < 0)
            return;
        mine = all[rank];
        view_set(file, &mine.view);
        access_make(file, &mine, 1, how % 2 == 0, (int)(shape % 6));
        publish(file, comm, is_atomic);
        break;
    }
    case 1: /* one after another, over each other */
    case 2: /* each adds to what it reads */
        for (int r = 0; r < ranks; r++) {
            if (rank >= 0) {
                struct access a = all[r];
                view_set(file, &mine.view); /* collective */
                if (rank == r && kind == 2)
                    access_make(file, &a, 0, 0, how);
                if (rank == r)
                    access_make(file, &a, 1, 0, how);
            }
            access_apply(&all[r]);
            if (rank >= 0)
                publish(file, comm, is_atomic);
        }
        break;
    case 3: { /* another size */
        int64_t next = (int64_t)draw(2) * (int64_t)draw(FILE_LIMIT) / 4 + (int64_t)draw(3000);
        if (how % 2 == 0) {
            if (rank >= 0)
                CHECK(MPI_File_set_size(file, next));
            if (next < size)
                memset(image + next, 0, (size_t)(size - next));
            size = next;
        } else {
            if (rank >= 0)
                CHECK(MPI_File_preallocate(file, next));
            size = size > next ? size : next;
        }
        if (rank >= 0)
            publish(file, comm, is_atomic);
        break;
    }
    default: /* reading only */
        break;
    }
    if (rank >= 0)
        check_size(file);
}

static void read_step(MPI_File file, MPI_Comm comm, int ranks, int rank)
{
    int is_collective = (int)draw(2), how = (int)draw(6);
    struct access all[64];

    for (int r = 0; r < ranks; r++)
        all[r] = access_draw(r, ranks, 0);
    if (rank < 0)
        return;
    view_set(file, &all[rank].view);
    access_make(file, &all[rank], 0, is_collective, how);
    MPI_Barrier(comm); /* before any writes again */
}

/* `how` many of the ranks; which ones is drawn. Gives the own rank among them, or -1. */
static MPI_Comm some_ranks(int *ranks, int *rank)
{
    int first = (int)draw((uint64_t)world_size), mine;
    MPI_Comm comm;

    *ranks = 1 + (int)draw((uint64_t)world_size);
    mine = (world_rank + world_size - first) % world_size;
    *rank = mine < *ranks ? mine : -1;
    MPI_Comm_split(MPI_COMM_WORLD, *rank >= 0 ? 0 : MPI_UNDEFINED, mine, &comm);
    return comm;
}

static void write_round(void)
{
    int ranks, rank, steps = 1 + (int)draw(5);
    MPI_Comm comm = some_ranks(&ranks, &rank);
    int is_wronly = draw(4) == 0, is_append = draw(6) == 0, is_atomic = draw(5) == 0 && getenv("ORACLE_ATOMIC") != NULL;
    MPI_File file;
    MPI_Offset at;

    if (rank >= 0) {
        CHECK(MPI_File_open(comm, name,
                            MPI_MODE_CREATE | (is_wronly ? MPI_MODE_WRONLY : MPI_MODE_RDWR) |
                                (is_append ? MPI_MODE_APPEND : 0),
                            MPI_INFO_NULL, &file));
        if (is_atomic)
            CHECK(MPI_File_set_atomicity(file, 1));
        check_size(file);
        CHECK(MPI_File_get_position(file, &at));
        if (at != (is_append ? size : 0))
            fail("position after open", at, size);
    }
    for (int i = 0; i < steps; i++) {
        int kind = (int)draw(4);
        step++;
        make_step(file, comm, ranks, rank, is_wronly && kind == 2 ? 1 : kind, is_atomic);
        for (int k = (int)draw(3); k > 0 && !is_wronly; k--)
            read_step(file, comm, ranks, rank);
    }
    if (rank >= 0) {
        CHECK(MPI_File_close(&file));
        MPI_Comm_free(&comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void read_round(void)
{
    int ranks, rank;
    MPI_Comm comm = some_ranks(&ranks, &rank);
    unsigned char *all = malloc(FILE_LIMIT);
    MPI_File file;
    MPI_Status status;
    int got;

    if (rank >= 0) {
        CHECK(MPI_File_open(comm, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
        check_size(file);
        CHECK(MPI_File_read_at(file, 0, all, FILE_LIMIT, MPI_BYTE, &status));
        MPI_Get_count(&status, MPI_BYTE, &got);
        if (got != size)
            fail("bytes of the whole file, size", got, size);
        for (int i = 0; i < got; i++)
            if (all[i] != image[i])
                fail("another byte in the whole file, at, instead of", i, image[i]);
    }
    for (int i = 0; i < 2; i++)
        read_step(file, comm, ranks, rank);
    if (rank >= 0) {
        CHECK(MPI_File_close(&file));
        MPI_Comm_free(&comm);
    }
    free(all);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (argc < 4 || world_size > 64 || (image = calloc(FILE_LIMIT, 1)) == NULL) {
        fprintf(stderr, "usage: ompio_oracle FILE SEED ROUNDS [PLAIN], with 64 ranks at most\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    name = argv[1];
    drawn = strtoull(argv[2], NULL, 10) * 1000003;
    for (int rounds = atoi(argv[3]); rounds > 0; rounds--) {
        write_round();
        read_round();
    }
    if (argc > 4 && world_rank == 0) {
        FILE *plain = fopen(argv[4], "wb");
        if (plain == NULL || fwrite(image, 1, (size_t)size, plain) != (size_t)size || fclose(plain) != 0)
            fail("cannot write the plain file", 0, 0);
    }
    free(image);
    MPI_Finalize();
    return 0;
}
