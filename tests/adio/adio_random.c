/* Random MPI-IO against a model of the file in memory. It knows nothing of DeltaFS: file names decide what is tested.
 *
 *     adio_random write FILE IMAGE SEED ROUNDS     writes FILE, and what should be in it to the plain file IMAGE
 *     adio_random read FILE IMAGE SEED ROUNDS      reads it, with any number of ranks, and compares
 *
 * A round is what stands between two synchronizations. In a round each byte of the file belongs to one rank (unit by
 * unit, in turn), which alone writes it, as often as it likes, and may read back what it wrote; from round to round
 * units are other ones, so that ranks write over each other's bytes in an order that is defined. All ranks draw the
 * same numbers and keep the whole file in memory, so each knows what all others write. Accesses are made of pieces of
 * the rank's own units: some regular, some not, with views, data types in memory and calls of all kinds. */
#include <mpi.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX  400000
#define PIECE_MAX 64

static int rank, ranks;
static unsigned char image[FILE_MAX];
static MPI_Offset image_size;
static MPI_Offset *seen; /* of each rank: the size of the file as it knows it */
static const char *file_name;

/* Ends the job: a rank that finds a fault cannot go on with the others. */
static void fault(const char *what, long long a, long long b)
{
    fprintf(stderr, "%s: rank %d of %d: %s (%lld, %lld)\n", file_name, rank, ranks, what, a, b);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int size;

    if (rc == MPI_SUCCESS)
        return;
    MPI_Error_string(rc, text, &size);
    fprintf(stderr, "%s\n", text);
    fault(what, rc, 0);
}

/* ---- Numbers ---- */

/* xorshift64*: the same on all ranks. */
static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * 0x2545f4914f6cdd1dULL >> 20) % below;
}

static int draw_int(int from, int to)
{
    return from + (int)draw((uint64_t)(to - from) + 1);
}

/* ---- Accesses ---- */

/* Pieces in ascending order, of `who`'s units. */
struct access {
    int who;
    int pieces;
    int offset[PIECE_MAX];
    int size[PIECE_MAX];
    int bytes;
    int is_regular; /* all of one size and distance */
    int distance;
};

struct units {
    int size;
    int shift;
    int owners;
};

static int unit_begin(const struct units *u, int who, int k)
{
    return (k * u->owners + who) * u->size + u->shift;
}

static void access_draw(struct access *a, const struct units *u, int who)
{
    int turn = u->size * u->owners;
    int last = (FILE_MAX - u->shift) / turn - 1; /* its last unit that is whole */

    memset(a, 0, sizeof *a);
    a->who = who;
    a->is_regular = draw(2) == 0;
    int k = draw_int(0, last);
    int pieces = draw_int(1, PIECE_MAX);
    int begin = draw_int(0, u->size - 1);
    int end = draw_int(begin + 1, u->size);
    int step = draw_int(1, 2);
    for (; a->pieces < pieces && k <= last; k += step) {
        if (!a->is_regular) {
            begin = draw_int(0, u->size - 1);
            end = draw_int(begin + 1, u->size);
            step = draw_int(1, 3);
        }
        a->offset[a->pieces] = unit_begin(u, who, k) + begin;
        a->size[a->pieces++] = end - begin;
        a->bytes += end - begin;
    }
    a->distance = step * turn;
}

/* The file type and displacement that make the access contiguous in the view. */
static MPI_Datatype access_view(const struct access *a, MPI_Offset *disp, int how)
{
    MPI_Datatype type;
    MPI_Datatype tile;
    MPI_Aint place[PIECE_MAX];

    *disp = a->offset[0];
    if (a->is_regular && how == 0) { /* one piece, tiled */
        MPI_Type_contiguous(a->size[0], MPI_BYTE, &tile);
        MPI_Type_create_resized(tile, 0, a->distance, &type);
        MPI_Type_free(&tile);
    } else if (a->is_regular && how == 1) {
        MPI_Type_create_hvector(a->pieces, a->size[0], a->distance, MPI_BYTE, &type);
    } else if (a->is_regular && how == 2) { /* a column of a matrix */
        int sizes[2] = {a->pieces, a->distance};
        int part[2] = {a->pieces, a->size[0]};
        int start[2] = {0, 0};
        MPI_Type_create_subarray(2, sizes, part, start, MPI_ORDER_C, MPI_BYTE, &type);
    } else { /* from some place before it */
        *disp = a->offset[0] / 2;
        for (int i = 0; i < a->pieces; i++)
            place[i] = a->offset[i] - *disp;
        MPI_Type_create_hindexed(a->pieces, a->size, place, MPI_BYTE, &type);
    }
    MPI_Type_commit(&type);
    return type;
}

/* A buffer in memory, whose bytes may have gaps between them. */
struct memory {
    unsigned char *all;
    int bytes;
    int run; /* bytes in a row */
    int gap;
    MPI_Datatype type;
    int count;
};

static void memory_init(struct memory *m, int bytes, int run, int gap)
{
    int whole = bytes % run == 0;

    m->bytes = bytes;
    m->run = gap > 0 && whole ? run : bytes;
    m->gap = gap > 0 && whole ? gap : 0;
    int runs = bytes / m->run;
    m->all = malloc((size_t)runs * (size_t)(m->run + m->gap));
    if (!m->all)
        fault("no memory", bytes, 0);
    memset(m->all, 0xee, (size_t)runs * (size_t)(m->run + m->gap));
    if (m->gap > 0) {
        MPI_Type_create_hvector(runs, m->run, m->run + m->gap, MPI_BYTE, &m->type);
        m->count = 1;
    } else {
        MPI_Type_contiguous(1, MPI_BYTE, &m->type);
        m->count = bytes;
    }
    MPI_Type_commit(&m->type);
}

static unsigned char *memory_at(struct memory *m, int i)
{
    return m->all + (size_t)(i / m->run) * (size_t)(m->run + m->gap) + i % m->run;
}

static void memory_fini(struct memory *m)
{
    MPI_Type_free(&m->type);
    free(m->all);
}

/* What `who` writes at a place in a round's call: so that each is another. */
static unsigned char content(int who, int call, int place)
{
    return (unsigned char)(who * 89 + call * 31 + place * 7 + place / 251 + 1);
}

static void model_write(const struct access *a, int call)
{
    for (int i = 0; i < a->pieces; i++) {
        for (int j = a->offset[i]; j < a->offset[i] + a->size[i]; j++)
            image[j] = content(a->who, call, j);
        MPI_Offset end = a->offset[i] + a->size[i];
        if (end > image_size)
            image_size = end;
        if (end > seen[a->who])
            seen[a->who] = end;
    }
}

static void expect_count(MPI_Status *status, MPI_Datatype type, int bytes, const char *what)
{
    MPI_Count got;

    MPI_Get_elements_x(status, MPI_BYTE, &got);
    (void)type;
    if (got != bytes)
        fault(what, got, bytes);
}

static void call_write(MPI_File f, struct memory *m, int how)
{
    MPI_Status status;
    MPI_Request request;

    switch (how) {
    case 0:
        check(MPI_File_write_at(f, 0, m->all, m->count, m->type, &status), "write_at");
        break;
    case 1:
        check(MPI_File_write(f, m->all, m->count, m->type, &status), "write");
        break;
    case 2:
        check(MPI_File_iwrite_at(f, 0, m->all, m->count, m->type, &request), "iwrite_at");
        check(MPI_Wait(&request, &status), "wait");
        break;
    case 3:
        check(MPI_File_iwrite(f, m->all, m->count, m->type, &request), "iwrite");
        check(MPI_Wait(&request, &status), "wait");
        break;
    case 4:
        check(MPI_File_write_all(f, m->all, m->count, m->type, &status), "write_all");
        break;
    case 5:
        check(MPI_File_write_at_all(f, 0, m->all, m->count, m->type, &status), "write_at_all");
        break;
    case 6:
        check(MPI_File_write_all_begin(f, m->all, m->count, m->type), "write_all_begin");
        check(MPI_File_write_all_end(f, m->all, &status), "write_all_end");
        break;
    default:
        check(MPI_File_iwrite_all(f, m->all, m->count, m->type, &request), "iwrite_all");
        check(MPI_Wait(&request, &status), "wait");
        break;
    }
    expect_count(&status, m->type, m->bytes, "bytes written");
}

static void call_read(MPI_File f, struct memory *m, int how)
{
    MPI_Status status;
    MPI_Request request;

    switch (how) {
    case 0:
        check(MPI_File_read_at(f, 0, m->all, m->count, m->type, &status), "read_at");
        break;
    case 1:
        check(MPI_File_read(f, m->all, m->count, m->type, &status), "read");
        break;
    case 2:
        check(MPI_File_iread_at(f, 0, m->all, m->count, m->type, &request), "iread_at");
        check(MPI_Wait(&request, &status), "wait");
        break;
    case 3:
        check(MPI_File_read_all(f, m->all, m->count, m->type, &status), "read_all");
        break;
    case 4:
        check(MPI_File_read_at_all(f, 0, m->all, m->count, m->type, &status), "read_at_all");
        break;
    case 5:
        check(MPI_File_read_all_begin(f, m->all, m->count, m->type), "read_all_begin");
        check(MPI_File_read_all_end(f, m->all, &status), "read_all_end");
        break;
    default:
        check(MPI_File_iread_all(f, m->all, m->count, m->type, &request), "iread_all");
        check(MPI_Wait(&request, &status), "wait");
        break;
    }
    expect_count(&status, m->type, m->bytes, "bytes read");
}

/* The file pointer stands behind what was accessed: the view's bytes before it are those of the access. */
static void check_position(MPI_File f, int bytes)
{
    MPI_Offset position;

    check(MPI_File_get_position(f, &position), "get_position");
    if (position != bytes)
        fault("file pointer", position, bytes);
}

static void view_set(MPI_File f, const struct access *a, int how)
{
    MPI_Offset disp;
    MPI_Datatype view = access_view(a, &disp, how);

    check(MPI_File_set_view(f, disp, MPI_BYTE, view, "native", MPI_INFO_NULL), "set_view");
    MPI_Type_free(&view);
}

static void do_write(MPI_File f, const struct access *a, int view, int how, int run, int gap, int call)
{
    struct memory m;

    view_set(f, a, view);
    memory_init(&m, a->bytes, run, gap);
    for (int i = 0, at = 0; i < a->pieces; i++)
        for (int j = a->offset[i]; j < a->offset[i] + a->size[i]; j++)
            *memory_at(&m, at++) = content(a->who, call, j);
    call_write(f, &m, how);
    if (how == 1 || how == 3 || how == 4)
        check_position(f, a->bytes);
    memory_fini(&m);
}

/* Bytes beyond the file's end are not read. */
static void do_read(MPI_File f, const struct access *a, int view, int how, int run, int gap)
{
    struct memory m;

    view_set(f, a, view);
    memory_init(&m, a->bytes, run, gap);
    call_read(f, &m, how);
    for (int i = 0, at = 0; i < a->pieces; i++)
        for (int j = a->offset[i]; j < a->offset[i] + a->size[i]; j++, at++)
            if (*memory_at(&m, at) != image[j])
                fault("a byte that was not written", j, *memory_at(&m, at));
    memory_fini(&m);
}

/* Draws one for each rank, and does this rank's. */
static void all_write(MPI_File f, const struct units *u, int call)
{
    int is_collective = draw(2) == 0;
    struct access mine;
    int view = 0, how = 0, run = 1, gap = 0;

    if (is_collective)
        how = draw_int(4, 7);
    for (int who = 0; who < ranks; who++) {
        struct access a;
        access_draw(&a, u, who);
        int v = draw_int(0, 3), h = draw_int(0, 3), r = draw_int(1, 8), g = draw_int(0, 5);
        model_write(&a, call);
        if (who == rank) {
            mine = a;
            view = v, run = r, gap = g;
            how = is_collective ? how : h;
        }
    }
    do_write(f, &mine, view, how, run, gap, call);
}

static int is_within(const struct access *a, int who)
{
    return a->offset[a->pieces - 1] + a->size[a->pieces - 1] <= seen[who];
}

static void all_see(void)
{
    for (int who = 0; who < ranks; who++)
        seen[who] = image_size;
}

/* `u` says what may be read: a rank's own units within a round, anything between rounds. */
static void all_read(MPI_File f, const struct units *u)
{
    struct access mine = {.pieces = 0};
    int view = 0, how = draw_int(0, 6), run = 1, gap = 0;
    int everyone = 1;

    for (int who = 0; who < ranks; who++) {
        struct access a;
        access_draw(&a, u, who < u->owners ? who : 0);
        int v = draw_int(0, 3), r = draw_int(1, 8), g = draw_int(0, 5);
        if (!is_within(&a, who))
            everyone = 0;
        if (who == rank) {
            mine = a;
            view = v, run = r, gap = g;
        }
    }
    if (everyone)
        do_read(f, &mine, view, how, run, gap);
}

static void units_draw(struct units *u, int owners)
{
    static const int sizes[] = {1, 7, 64, 300, 1024, 4096, 5000};

    u->size = sizes[draw_int(0, 6)];
    u->shift = draw_int(0, 3000);
    u->owners = owners;
}

static MPI_File reopen(int amode)
{
    MPI_Info info;
    MPI_File f;

    /* ROMIO's own ways of writing pieces read what is between them and write it back, and so undo what others write
     * there meanwhile: its drivers for plain files fail this test with them. */
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", "disable");
    MPI_Info_set(info, "romio_cb_write", "disable");
    if (draw(2) == 0)
        MPI_Info_set(info, "romio_cb_read", draw(2) ? "enable" : "disable");
    check(MPI_File_open(MPI_COMM_WORLD, file_name, amode, info, &f), "open");
    MPI_Info_free(&info);
    return f;
}

static void check_size(MPI_File f)
{
    MPI_Offset size;

    check(MPI_File_get_size(f, &size), "get_size");
    if (size != image_size)
        fault("size", size, image_size);
}

static void resize(MPI_File f)
{
    MPI_Offset size = draw_int(0, FILE_MAX);

    if (draw(2)) {
        check(MPI_File_set_size(f, size), "set_size");
        if (size < image_size)
            memset(image + size, 0, (size_t)(image_size - size));
        image_size = size;
    } else {
        check(MPI_File_preallocate(f, size), "preallocate");
        if (size > image_size)
            image_size = size;
    }
    check_size(f);
    all_see();
}

static void write_rounds(int rounds, const char *image_name)
{
    MPI_File f = reopen(MPI_MODE_CREATE | MPI_MODE_RDWR);
    struct units any = {.size = 1, .shift = 0, .owners = 1};

    for (int round = 0; round < rounds; round++) {
        struct units u;
        units_draw(&u, ranks);
        int calls = draw_int(1, 6);
        for (int i = 0; i < calls; i++) {
            all_write(f, &u, round * 8 + i);
            if (draw(2))
                all_read(f, &u);
        }
        if (draw(4) == 0) {
            check(MPI_File_close(&f), "close");
            f = reopen(MPI_MODE_RDWR);
        } else {
            check(MPI_File_sync(f), "sync");
            MPI_Barrier(MPI_COMM_WORLD);
            check(MPI_File_sync(f), "sync");
        }
        check_size(f);
        all_see();
        any.size = draw_int(1, 3000);
        all_read(f, &any);
        MPI_Barrier(MPI_COMM_WORLD);
        if (draw(6) == 0)
            resize(f);
    }
    check(MPI_File_close(&f), "close");
    if (rank == 0) {
        int fd = open(image_name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (fd < 0 || write(fd, image, (size_t)image_size) != image_size || close(fd) != 0)
            fault("cannot write the image", 0, 0);
    }
}

/* Views of whole parts of the file, and the file from begin to end. */
static void read_rounds(int rounds, const char *image_name)
{
    MPI_File f = reopen(MPI_MODE_RDONLY);
    unsigned char *all = malloc(FILE_MAX + 1);
    MPI_Status status;
    int got;

    int fd = open(image_name, O_RDONLY);
    ssize_t size = fd < 0 ? -1 : read(fd, image, FILE_MAX);
    if (!all || size < 0 || close(fd) != 0)
        fault("cannot read the image", size, 0);
    image_size = size;
    check_size(f);
    all_see();
    check(MPI_File_read_at(f, 0, all, FILE_MAX + 1, MPI_BYTE, &status), "read_at");
    MPI_Get_count(&status, MPI_BYTE, &got);
    if (got != size)
        fault("bytes up to the end", got, size);
    for (int i = 0; i < got; i++)
        if (all[i] != image[i])
            fault("a byte that was not written", i, all[i]);
    free(all);
    for (int round = 0; round < rounds; round++) {
        struct units u;
        units_draw(&u, ranks);
        all_read(f, &u);
    }
    check(MPI_File_close(&f), "close");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 6) {
        fprintf(stderr, "usage: adio_random write|read FILE IMAGE SEED ROUNDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    file_name = argv[2];
    seen = calloc((size_t)ranks, sizeof *seen);
    if (!seen)
        fault("no memory", ranks, 0);
    state = strtoull(argv[4], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1;
    if (strcmp(argv[1], "write") == 0)
        write_rounds(atoi(argv[5]), argv[3]);
    else
        read_rounds(atoi(argv[5]), argv[3]);
    free(seen);
    MPI_Finalize();
    return 0;
}
