/* Makes the inputs that the fuzz targets begin with, from the golden containers and by the library.
 *
 *     fuzz-seeds CORPUS FOLDER     FOLDER/TARGET/NAME for each target; FOLDER exists */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/coding.h"
#include "io/io_format.h"
#include "logical/format/extents.h"
#include "io/log.h"
#include "logical/format/logical_format.h"
#include "namespace/entry.h"

#define SEED_MAX (16u << 10) /* bytes; longer inputs only slow a fuzzer down */

static const char *const golden[] = {"any_plain",   "dense",  "empty",     "ends",        "example", "later", "names",
                                     "none",        "open",   "no_fences", "names_fixed", "nothing", "plain", "planes",
                                     "repeats",     "runs",   "segments",  "structured",  "torn",    "wide",  "local",
                                     "local_names", "strips", "sparse",    "compacted",   "ranges"};

struct seed {
    uint8_t bytes[3 * SEED_MAX];
    size_t n;
};

static void die(const char *what)
{
    perror(what);
    exit(3);
}

static void add(struct seed *s, const void *bytes, size_t n)
{
    if (n > sizeof s->bytes - s->n)
        die("a seed is too long");
    memcpy(s->bytes + s->n, bytes, n);
    s->n += n;
}

static void add_number(struct seed *s, uint64_t v, size_t size)
{
    uint8_t bytes[8];

    put_u64(bytes, v);
    add(s, bytes, size);
}

/* A file's bytes; those of one that is not there are none. */
static void add_file(struct seed *s, const char *folder, const char *container, const char *name)
{
    char path[1024];
    uint8_t bytes[SEED_MAX];

    snprintf(path, sizeof path, "%s/%s/%s", folder, container, name);
    FILE *f = fopen(path, "rb");
    if (!f && errno == ENOENT && strcmp(name, MANIFEST_NAME) != 0)
        return;
    if (!f)
        die(path);
    add(s, bytes, fread(bytes, 1, sizeof bytes, f));
    fclose(f);
}

static void save(const struct seed *s, const char *folder, const char *target, const char *name)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", folder, target);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        die(path);
    snprintf(path, sizeof path, "%s/%s/%s", folder, target, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(s->bytes, 1, s->n, f) != s->n || fclose(f) != 0)
        die(path);
}

static void save_text(const char *folder, const char *target, const char *name, const char *text)
{
    struct seed s = {.n = 0};

    add(&s, text, strlen(text));
    save(&s, folder, target, name);
}

static void make_container(const char *corpus, const char *folder, const char *name)
{
    static struct seed manifest, index, data, values, s;

    manifest.n = index.n = data.n = values.n = 0;
    add_file(&manifest, corpus, name, MANIFEST_NAME);
    add_file(&index, corpus, name, "00/p00000000.index");
    add_file(&data, corpus, name, "00/p00000000.data");
    add_file(&values, corpus, name, "00/v00000000.values");
    s.n = 0;
    add_number(&s, 1, 1);
    add(&s, manifest.bytes, manifest.n);
    save(&s, folder, "manifest", name);
    /* With the tail, and by its footers' chain. */
    for (unsigned mode = 1; mode <= 3; mode += 2) {
        char of[64];
        snprintf(of, sizeof of, "%s%u", name, mode);
        s.n = 0;
        add_number(&s, strcmp(name, "compacted") == 0 ? mode | 4 : mode, 1);
        add_number(&s, 3, 1);
        add_number(&s, index.n, 4);
        add(&s, index.bytes, index.n);
        save(&s, folder, "index", of);
    }
    for (unsigned any = 0; any < 2; any++) {
        char of[64];
        const char *size = strstr((const char *)manifest.bytes, "value_size=");
        snprintf(of, sizeof of, "%s%u", name, any);
        s.n = 0;
        add_number(&s, 3, 1);
        add_number(&s, any || !size ? 65535 : strtoull(size + 11, NULL, 10), 2);
        add(&s, data.bytes, data.n);
        save(&s, folder, "blocks", of);
    }
    for (unsigned mode = 1; mode <= 5; mode += 2) {
        char of[64];
        snprintf(of, sizeof of, "%s%u", name, mode);
        s.n = 0;
        add_number(&s, values.n > 0 ? mode | 8 : mode, 1);
        add_number(&s, manifest.n, 2);
        add_number(&s, index.n, 4);
        if (values.n > 0)
            add_number(&s, data.n, 4);
        add(&s, manifest.bytes, manifest.n);
        add(&s, index.bytes, index.n);
        add(&s, data.bytes, data.n);
        add(&s, values.bytes, values.n);
        save(&s, folder, "container", of);
    }
}

/* Put what a writer did into an extent log's seed, as one batch. */
static void add_batch(struct seed *s, struct extent_list *l, uint64_t order, int is_last)
{
    static const uint8_t uuid[FORMAT_UUID_SIZE];
    struct buffer out = {0};
    struct error e;
    size_t n = 0;

    if (extent_list_encode(l, log_seed(uuid), 0, 0, order, EXTENT_MAX, is_last, &out, &n, &e) != DELTAFS_OK)
        die(e.text);
    add(s, out.bytes, n);
    buffer_fini(&out);
    extent_list_clear(l);
}

/* Extent logs: of strided runs, of variables in turn, of plain pieces that overlap, each with marks between. */
static void make_extents(const char *folder)
{
    static const uint8_t uuid[FORMAT_UUID_SIZE];
    static struct seed s;
    struct extent_list l = {0};
    uint8_t header[LOG_HEADER_SIZE];
    struct error e;
    char name[16];

    for (uint64_t kind = 0; kind < 6; kind++) {
        s.n = 0;
        add_number(&s, 1 + 2 * (kind % 2), 1);
        add_number(&s, 100 * kind, 8);
        log_put_header(header, LOG_KIND_EXTENTS, 0, uuid);
        add(&s, header, sizeof header);
        for (uint64_t order = 1, position = 0; order <= 3; order++) {
            for (uint64_t i = 0; i < 12; i++) {
                for (uint64_t k = 0; k <= kind % 3; k++, position += 10 + k)
                    if (extent_list_add(&l, 300 * k + order * 7 + i * (kind % 3 == 0 ? i * 9 : 40), 10 + k, position,
                                        &e) != DELTAFS_OK)
                        die(e.text);
            }
            if (kind > 2 && extent_list_mark(&l, order % 2 ? EXTENT_TRUNCATE : EXTENT_EXTEND, 400 * order, position,
                                             &e) != DELTAFS_OK)
                die(e.text);
            add_batch(&s, &l, order, order == 3);
        }
        snprintf(name, sizeof name, "%u", (unsigned)kind);
        save(&s, folder, "extents", name);
    }
    extent_list_fini(&l);
}

/* Logical files of the UUID 0, of which each extent log is one of those above: with and without INDEX, closed or not.
 */
static void make_logical(const char *folder)
{
    static const char manifest[] = "Deltafs version=1 uuid=00000000-0000-0000-0000-000000000000 ~00000000\n"
                                   "File frame=4096 group=1024 ~00000000\n";
    static const char session[] = "Session writers=2 order=1 buckets=0 ~00000000\n"
                                  "close logs=1 order=3 size=1200 ~00000000\n";
    static struct seed s, log;
    uint8_t data[5000];
    char path[1024];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7 + i / 251);
    for (unsigned kind = 0; kind < 6; kind++) {
        char name[16];
        size_t lines = kind % 3 == 0 ? strcspn(session, "\n") + 1 : sizeof session - 1;
        snprintf(path, sizeof path, "%s/extents", folder);
        snprintf(name, sizeof name, "%u", kind);
        log.n = s.n = 0;
        add_file(&log, path, ".", name);
        add_number(&s, kind % 2 ? 3 : 1, 1);
        add_number(&s, sizeof manifest - 1, 2);
        add_number(&s, lines, 2);
        add_number(&s, log.n - 9, 2); /* without what stands before the log there */
        add(&s, manifest, sizeof manifest - 1);
        add(&s, session, lines);
        add(&s, log.bytes + 9, log.n - 9);
        add(&s, data, sizeof data);
        save(&s, folder, "logical", name);
    }
}

/* An index of a stream of records, one of columns in pieces, and one of a logical file. */
static void make_sources(const char *folder)
{
    static const char text[] = "Sources version=2 uuid=00000000-0000-0000-0000-000000000000 ~00000000\n"
                               "Table sequence=1 label=7 rows=50 key=1 columns=2 group=256 name= ~00000000\n"
                               "Column name=x type=f4 order=little stride=12 offset=0 ~00000000\n"
                               "Column name=id type=u8 order=little stride=12 offset=4 ~00000000\n"
                               "Source tables=1 size=600 kind=plain mtime=5 path=a%20b ~00000000\n"
                               "Table sequence=2 label=8 rows=9 key=0 columns=2 group=64 name=/g ~00000000\n"
                               "Column name=id type=i4 order=big stride=4 offset=64 ~00000000\n"
                               "Column name=s type=S3 order=little stride=3 ~00000000\n"
                               "Piece first=0 rows=4 offset=500 ~00000000\n"
                               "Piece first=4 rows=5 offset=0 ~00000000\n"
                               "Source tables=1 size=600 kind=logical uuid=u session=1 order=4 path=. ~00000000\n"
                               "Source tables=1 size=600 kind=plain mtime=5 path=/x ~00000000\n"
                               "Forget path=a%20b ~00000000\n";
    static const char begun[] = "Sources version=3 uuid=00000000-0000-0000-0000-000000000000 ~00000000\n"
                                "Begin path=a%20b ~00000000\n"
                                "Table sequence=1 label=7 rows=50 key=1 columns=2 group=256 name= ~00000000\n"
                                "Column name=x type=f4 order=little stride=12 offset=0 ~00000000\n"
                                "Column name=id type=u8 order=little stride=12 offset=4 ~00000000\n"
                                "Source tables=1 size=600 kind=plain mtime=5 path=a%20b ~00000000\n"
                                "Begin path=a%20b ~00000000\n"
                                "Begin path=/x ~00000000\n"
                                "Table sequence=2 label=8 rows=9 key=0 columns=2 group=64 name=/g ~00000000\n";
    static struct seed s;

    s.n = 0;
    add_number(&s, 3, 1);
    add(&s, begun, sizeof begun - 1);
    save(&s, folder, "manifest", "sources2");
    for (int lines = 0; lines < 2; lines++) {
        const char *end =
            lines ? text + sizeof text - 1 : strstr(text, "Source tables=1 size=600 kind=plain mtime=5 path=/x");
        s.n = 0;
        add_number(&s, 3, 1);
        add(&s, text, (size_t)(end - text));
        save(&s, folder, "manifest", lines ? "sources1" : "sources0");
    }
}

/* A VPIC dump of three particles, and files of fixed-size records. */
static void make_imports(const char *folder)
{
    static const uint8_t head[] = {8, 2,    4,    4, 8, 0xfe, 0xca, 0xef, 0xbe, 0xad, 0xde, 0,
                                   0, 0x80, 0x3f, 0, 0, 0,    0,    0,    0,    0xf0, 0x3f};
    static const uint32_t words[] = {0, 3, 7, 4, 4, 4, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0, 32, 1, 3};
    static struct seed s;
    char value[64] = "";

    s.n = 0;
    add_number(&s, 0, 1);
    add(&s, head, sizeof head);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        add_number(&s, words[i], 4);
    for (int i = 0; i < 3; i++)
        add(&s, value, 32);
    add_number(&s, 8, 4);
    add_number(&s, 1, 4);
    add_number(&s, 3, 4);
    for (uint64_t i = 0; i < 3; i++)
        add_number(&s, i, 8);
    save(&s, folder, "import", "vpic");
    static const char *const raws[] = {"\1id:u8,x:f4,y:f4\nid\n0\n", "\1x:f8,n:i4,t:S3\nn\n5\n", "\1k:u1,v:V2\nk\n2\n"};
    for (size_t i = 0; i < sizeof raws / sizeof raws[0]; i++) {
        char name[16];
        snprintf(name, sizeof name, "raw%zu", i);
        s.n = 0;
        add(&s, raws[i], strlen(raws[i]));
        add(&s, value, i == 0 ? 48 : i == 1 ? 50 : 32);
        save(&s, folder, "import", name);
    }
}

#define UUID "00000000-0000-0000-0000-00000000000"

/* Two commits, each with an entry and a chunk; their checksums are for the target to put. */
static void make_journal(const char *folder, const uint8_t *entry, size_t size)
{
    static const char chunk[] = "bytes";
    static struct seed s;

    s.n = 0;
    add_number(&s, 11, 1);
    for (uint64_t label = 20; label < 22; label++) {
        add_number(&s, JOURNAL_MAGIC, 4);
        add_number(&s, 0, 4);
        add_number(&s, label, 8);
        add_number(&s, 7, 8);
        add_number(&s, 2 * JOURNAL_RECORD_SIZE + size + sizeof chunk, 4);
        add_number(&s, JOURNAL_FLAG_SYNCED, 4);
        add_number(&s, JOURNAL_CHUNK, 1);
        add_number(&s, sizeof chunk, 4);
        add_number(&s, 10, 8);
        add(&s, chunk, sizeof chunk);
        add_number(&s, JOURNAL_ENTRY, 1);
        add_number(&s, size, 4);
        add_number(&s, 5, 8);
        add(&s, entry, size);
    }
    save(&s, folder, "namespace", "journal");
}

/* An entry of each type, and the texts of a namespace. */
static void make_namespace(const char *folder)
{
    static const char *const texts[] = {
        "\3Deltafs version=1 uuid=" UUID "1 ~00000000\nNamespace mode=493 uid=0 gid=0 time=5 ~00000000\n"
        "Layer uuid=" UUID "2 inputs= path=/a b ~00000000\nTable number=0x0000000000000007 limit=9 ~00000000\n",
        "\5Deltafs version=1 uuid=" UUID "3 ~00000000\nSnapshot time=5 ~00000000\n"
        "Layer uuid=" UUID "1 inputs= path=/a ~00000000\nTable number=0x0000000000000007 limit=9 ~00000000\n"
        "Layer uuid=" UUID "2 inputs=0 path=/b ~00000000\nTable number=0x0000000000000008 limit=0 ~00000000\n"
        "Layer policy=newest inputs=0,1 ~00000000\n",
        "\7Deltafs version=1 uuid=" UUID "1 ~00000000\nPin time=5 holder=/r@s ~00000000\nLayer ~00000000\n"
        "Table number=0x0000000000000007 limit=9 from=5 ~00000000\nEnd ~00000000\n",
        "\11Deltafs version=1 uuid=" UUID "1 ~00000000\nCompacted table=0x0000000000000009 limit=9 ~00000000\n"
        "Table number=0x0000000000000008 limit=7 ~00000000\nTable number=0x0000000000000007 limit=8 ~00000000\n"};
    struct entry entry = {.parent = {0, 1}, .name = "name", .name_size = 4};
    uint8_t bytes[ENTRY_SIZE_MAX];
    static struct seed s;
    char name[16];

    for (int type = 0; type <= ENTRY_LINK; type++) {
        entry.inode = (struct inode){.id = {7, 8}, .stamp = 9, .mtime = -1, .size = 6, .mode = 0644};
        entry.inode.type = (uint8_t)type;
        if (type == ENTRY_FILE)
            entry.inode.data = (struct entry_id){7, 10};
        if (type == ENTRY_LINK) {
            entry.target = "target";
            entry.target_size = 6;
        }
        s.n = 0;
        add_number(&s, 0, 1);
        add(&s, bytes, entry_encode(&entry, bytes));
        snprintf(name, sizeof name, "entry%d", type);
        save(&s, folder, "namespace", name);
    }
    make_journal(folder, bytes, entry_encode(&entry, bytes));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        snprintf(name, sizeof name, "text%zu", i);
        save_text(folder, "namespace", name, texts[i]);
    }
}

static void make_texts(const char *folder)
{
    static const char *const texts[] = {"schema\nx:f4,y:f4,cell:i4,tag:S8",
                                        "memory\n64M",
                                        "partitions\nauto",
                                        "codec\nsnappy",
                                        "value_size\nany",
                                        "block\n4K",
                                        "3\n0x1fffffffffffffff",
                                        "schema\na:<u8,b.c_d:V1048576",
                                        "threads\n18446744073709551616"};
    static const char *const commands[] = {"get\nn\n1\n0x2\n--epochs\n9:19",
                                           "get\nb\n--hex\n0061\n--format\njson",
                                           "scan\nn\n--format\ncsv",
                                           "scan\nb\n--partition\n0",
                                           "info\nn\n--json",
                                           "verify\nb\n--all",
                                           "help\noptions",
                                           "get\nn\n--keys\n-\n--stats",
                                           "scan\nn\n--epochs\n:9\n--format\ntable",
                                           "get\nn\n3\n--format\nraw"};
    char name[16];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        snprintf(name, sizeof name, "%zu", i);
        save_text(folder, "texts", name, texts[i]);
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        snprintf(name, sizeof name, "%zu", i);
        save_text(folder, "command", name, commands[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: fuzz-seeds CORPUS FOLDER\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++)
        make_container(argv[1], argv[2], golden[i]);
    make_extents(argv[2]);
    make_logical(argv[2]);
    make_sources(argv[2]);
    make_imports(argv[2]);
    make_namespace(argv[2]);
    make_texts(argv[2]);
    return 0;
}
