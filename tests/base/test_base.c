/* base: numbers from texts, varints, checksum, hash, options, schemas; and where keys and partitions go. */
#include "base/coding.h"
#include "base/short_copy.h"
#include "base/crc32c.h"
#include "base/simd_crc32c.h"
#include "base/error.h"
#include "base/number.h"
#include "base/options.h"
#include "base/path.h"
#include "directory/format/partition.h"
#include "unit_help.h"

static void test_number(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},   {"7", 7},      {"007", 7},    {"18446744073709551615", UINT64_MAX},
                {"0x0", 0}, {"0xff", 255}, {"0XfF", 255}, {"0xffffffffffffffff", UINT64_MAX}};
    static const char *const bad[] = {"",
                                      " ",
                                      " 1",
                                      "1 ",
                                      "+1",
                                      "-1",
                                      "x1",
                                      "1x",
                                      "0x",
                                      "0x ",
                                      "0x+1",
                                      "0x-1",
                                      "0x0x1",
                                      "0x 1",
                                      "0xg",
                                      "1e3",
                                      "1.0",
                                      "1,000",
                                      "ff",
                                      "18446744073709551616",
                                      "0x10000000000000000",
                                      "99999999999999999999999999"};
    uint64_t v;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        v = 99;
        assert_int_equal(number_parse(good[i].text, &v), 0);
        assert_int_equal(v, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        v = 99;
        if (number_parse(bad[i], &v) != -1 || v != 99)
            fail_msg("'%s' was taken for %llu", bad[i], (unsigned long long)v);
    }
}

static void test_number_size(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"4k", 4096},
                {"4K", 4096},
                {"3M", 3 << 20},
                {"2g", UINT64_C(2) << 30},
                {"1T", UINT64_C(1) << 40},
                {"16777215T", UINT64_C(16777215) << 40},
                {"18446744073709551615", UINT64_MAX},
                {"18014398509481983K", UINT64_C(18014398509481983) << 10}};
    static const char *const bad[] = {"",
                                      "K",
                                      "1KB",
                                      "1KK",
                                      "1 K",
                                      "1P",
                                      "-1",
                                      "0x10",
                                      "1.5K",
                                      "16777216T",
                                      "18014398509481984K",
                                      "18446744073709551616"};
    uint64_t v;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(number_parse_size(good[i].text, &v), 0);
        assert_int_equal(v, good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        v = 99;
        if (number_parse_size(bad[i], &v) != -1 || v != 99)
            fail_msg("'%s' was taken for %llu", bad[i], (unsigned long long)v);
    }
}

static void check_varint(uint64_t v)
{
    uint8_t bytes[VARINT_MAX], *end = put_varint(bytes, v);
    uint64_t back = ~v;
    size_t n = (size_t)(end - bytes), want = 1;

    for (uint64_t rest = v >> 7; rest != 0; rest >>= 7)
        want++;
    CHECK_IS(n, want);
    CHECK(get_varint(bytes, end, &back) == end);
    CHECK(back == v);
    for (size_t cut = 0; cut < n; cut++)
        CHECK(get_varint(bytes, bytes + cut, &back) == NULL);
}

static void test_varint(void **state)
{
    struct rng r = rng_init(1);

    (void)state;
    for (unsigned shift = 0; shift < 64; shift++) {
        check_varint((UINT64_C(1) << shift) - 1);
        check_varint(UINT64_C(1) << shift);
        for (int i = 0; i < 100; i++)
            check_varint(rng_next(&r) >> shift);
    }
    check_varint(UINT64_MAX);
}

/* More than 64 bits do not fit: an eleventh byte, or more than one bit in the tenth. */
static void test_varint_overlong(void **state)
{
    uint8_t bytes[16];
    uint64_t v = 0;

    (void)state;
    memset(bytes, 0xff, sizeof bytes);
    assert_null(get_varint(bytes, bytes + sizeof bytes, &v));
    for (unsigned last = 0; last < 256; last++) {
        bytes[9] = (uint8_t)last;
        const uint8_t *end = get_varint(bytes, bytes + sizeof bytes, &v);
        if (last <= 1) {
            assert_ptr_equal(end, bytes + 10);
            assert_int_equal(v, UINT64_MAX >> (1 - last));
        } else {
            assert_null(end);
        }
    }
}

static void test_fixed_width(void **state)
{
    static const uint8_t want[8] = {0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01};
    uint8_t p[8];

    (void)state;
    put_u16(p, 0x0708);
    assert_memory_equal(p, want, 2);
    put_u32(p, 0x05060708);
    assert_memory_equal(p, want, 4);
    put_u64(p, 0x0102030405060708);
    assert_memory_equal(p, want, 8);
    assert_int_equal(get_u16(want), 0x0708);
    assert_int_equal(get_u32(want), 0x05060708);
    assert_int_equal(get_u64(want), 0x0102030405060708);
}

/* The vectors are those of RFC 3720, B.4, and the usual check value. */
static void test_crc32c_vectors(void **state)
{
    uint8_t b[32];

    (void)state;
    assert_int_equal(crc32c(0, "", 0), 0);
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    memset(b, 0, sizeof b);
    assert_int_equal(crc32c(0, b, sizeof b), 0x8a9136aa);
    memset(b, 0xff, sizeof b);
    assert_int_equal(crc32c(0, b, sizeof b), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        b[i] = i;
    assert_int_equal(crc32c(0, b, sizeof b), 0x46dd794e);
    for (uint8_t i = 0; i < 32; i++)
        b[i] = (uint8_t)(31 - i);
    assert_int_equal(crc32c(0, b, sizeof b), 0x113fdb5c);
}

/* The oracle: the definition, bit by bit. */
static uint32_t crc32c_slow(uint32_t crc, const uint8_t *p, size_t n)
{
    uint32_t c = ~crc;

    for (size_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
    }
    return ~c;
}

/* Each way that this processor has, and the table. */
static void crc32c_check(uint32_t begin, const uint8_t *p, size_t n, uint32_t want)
{
    for (enum simd_crc32c_way way = CRC32C_INSTRUCTION; way <= CRC32C_WIDE; way++) {
        uint32_t crc = begin;
        CHECK(simd_crc32c_by(way, &crc, p, n) ? crc == want : crc == begin);
    }
    CHECK(crc32c_portable(begin, p, n) == want);
    CHECK(crc32c(begin, p, n) == want);
}

static void test_crc32c_all_agree(void **state)
{
    struct rng r = rng_init(2);
    uint8_t b[1400];

    (void)state;
    rng_fill(&r, b, sizeof b);
    for (size_t n = 0; n <= 1300; n++) {
        for (size_t at = 0; at < (n <= 300 ? 16 : 2); at++) {
            uint32_t begin = (uint32_t)rng_next(&r), want = crc32c_slow(begin, b + at, n);
            size_t cut = (size_t)rng_below(&r, n + 1);
            crc32c_check(begin, b + at, n, want);
            CHECK(crc32c(crc32c(begin, b + at, cut), b + at + cut, n - cut) == want);
        }
    }
}

/* About as many bytes as are taken at a time, and multiples. */
static void test_crc32c_long(void **state)
{
    static const size_t edge[] = {2040, 4080, 4096, 4608, 8192, 12288};
    struct rng r = rng_init(4);
    uint8_t b[12400];

    (void)state;
    rng_fill(&r, b, sizeof b);
    for (size_t i = 0; i < sizeof edge / sizeof edge[0]; i++) {
        for (size_t n = edge[i] - 9; n <= edge[i] + 9; n++) {
            uint32_t begin = (uint32_t)rng_next(&r), want = crc32c_slow(begin, b + n % 64, n);
            crc32c_check(begin, b + n % 64, n, want);
        }
    }
}

static void test_path_parent(void **state)
{
    static const char *const cases[][2] = {
        {"a", "."}, {"a/", "."}, {"a/b", "a"}, {"a/b//", "a"}, {"a//b", "a/"},     {"/a", "/"},       {"/a/", "/"},
        {"/", "/"}, {"//", "/"}, {"", "."},    {"./a", "."},   {"/a/b/c", "/a/b"}, {"a/../b", "a/.."}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *parent = path_parent(cases[i][0]);
        assert_string_equal(parent, cases[i][1]);
        free(parent);
    }
}

static void test_copy_short(void **state)
{
    uint8_t from[COPY_SHORT + 10], to[COPY_SHORT + 10];

    (void)state;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(1 + i);
    for (size_t n = 0; n <= COPY_SHORT + 2; n++) {
        memset(to, 0, sizeof to);
        copy_short(to + 3, from + 1, n);
        for (size_t i = 0; i < sizeof to; i++)
            assert_int_equal(to[i], i >= 3 && i < 3 + n ? from[i - 2] : 0);
    }
}

/* Part of the format: a change here makes every container on disk unreadable. */
static void test_hash_is_pinned(void **state)
{
    (void)state;
    assert_int_equal(hash_key(0), 0xc77b3abb6f87acd9);
    assert_int_equal(hash_key(1), 0x2fbc593564db792e);
    assert_int_equal(hash_key(UINT64_C(1) << 63), 0x828f2476789a0e5f);
}

static void test_hash_of_several(void **state)
{
    static const size_t strides[] = {8, 12, 48, 61};
    uint8_t bytes[3 + 70 * 61];
    struct rng r = rng_init(11);
    uint64_t key, hash[70];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)rng_next(&r);
    for (size_t k = 0; k < sizeof strides / sizeof *strides; k++)
        for (size_t n = 0; n < 70; n++) {
            hash[n] = 4711;
            hash_keys(bytes + 3, strides[k], n, hash);
            for (size_t i = 0; i < n; i++) {
                memcpy(&key, bytes + 3 + i * strides[k], 8);
                CHECK(hash[i] == hash_key(key));
            }
            CHECK(hash[n] == 4711);
        }
}

static void test_hash_of_rows(void **state)
{
    struct rng r = rng_init(13);
    uint64_t key[70], sum = 0, first = UINT64_MAX - 20;

    (void)state;
    for (size_t n = 0; n < 70; n++) {
        assert_int_equal(hash_rows(first, key, n), sum);
        key[n] = rng_next(&r);
        sum += hash_key(hash_key(key[n]) + first + n);
    }
}

static void test_partition(void **state)
{
    struct rng r = rng_init(3);

    (void)state;
    for (uint32_t partitions = 1; partitions <= 40; partitions++) {
        uint32_t count[40] = {0};
        for (int i = 0; i < 4000; i++) {
            uint32_t p = partition_by_hash(rng_next(&r), partitions);
            CHECK(p < partitions);
            count[p]++;
        }
        /* The share of each is 4000 / partitions, give or take 6 standard deviations. */
        for (uint32_t p = 0; p < partitions; p++) {
            double share = 4000.0 / partitions, off = count[p] - share;
            CHECK(off * off <= 36.0 * share);
        }
    }
}

static void check_ownership(int ranks, uint32_t partitions)
{
    assert_int_equal(partition_first(0, partitions, ranks), 0);
    assert_int_equal(partition_first(ranks, partitions, ranks), partitions);
    for (int rank = 0; rank < ranks; rank++) {
        uint32_t first = partition_first(rank, partitions, ranks), end = partition_first(rank + 1, partitions, ranks);
        assert_true(first <= end);
        for (uint32_t p = first; p < end; p++)
            assert_int_equal(partition_owner(p, partitions, ranks), rank);
        /* Fair shares: the floor or the ceiling. */
        assert_true(end - first == partitions / (uint32_t)ranks || end - first == partitions / (uint32_t)ranks + 1);
    }
}

static void test_ownership(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 9; ranks++)
        for (uint32_t partitions = 1; partitions <= 40; partitions++)
            check_ownership(ranks, partitions);
    check_ownership(131072, 1 << 20);
    check_ownership(1 << 20, 1 << 20);
    check_ownership(1000003, 17);
}

/* ---- Options ---- */

static void test_options_defaults(void **state)
{
    deltafs_options *o = unit_options(NULL), *again = unit_options(NULL);
    const struct deltafs_option_info *info;
    const char *text;
    size_t n = 0;

    (void)state;
    for (; (info = deltafs_option_at(n)); n++) {
        assert_true(info->name[0] && info->takes[0] && info->text[0] && info->default_value);
        assert_null(strchr(info->text, '\n'));
        assert_int_equal(deltafs_options_set(o, info->name, info->default_value), DELTAFS_OK);
        assert_int_equal(deltafs_options_get(o, info->name, &text), DELTAFS_OK);
        assert_string_equal(text, info->default_value);
        if (n > 0)
            assert_true(strcmp(deltafs_option_at(n - 1)->name, info->name) < 0);
    }
    assert_int_equal(n, OPTION_COUNT);
    assert_null(deltafs_option_at(n + 1));
    assert_null(deltafs_option_at(SIZE_MAX));
    assert_int_equal(deltafs_private_options_number(again, OPTION_BLOCK), 4096);
    assert_int_equal(deltafs_private_options_number(again, OPTION_CODEC), CODEC_SNAPPY);
    assert_true(deltafs_private_options_number(again, OPTION_MEMORY) == OPTION_AUTO);
    assert_true(deltafs_private_options_number(again, OPTION_VALUE_SIZE) == OPTION_AUTO);
    deltafs_options_destroy(o);
    deltafs_options_destroy(again);
    deltafs_options_destroy(NULL);
}

static void test_options_unknown(void **state)
{
    static const char *const names[] = {"", "Memory", "memory ", "mem", "deltafs_memory"};
    deltafs_options *o = unit_options(NULL);
    const struct deltafs_option_info *info;
    const char *text = "before";

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(deltafs_options_set(o, names[i], "1"), DELTAFS_ERR_OPTION);
        for (size_t k = 0; (info = deltafs_option_at(k)); k++)
            assert_non_null(strstr(deltafs_errmsg(NULL), info->name));
        assert_int_equal(deltafs_options_get(o, names[i], &text), DELTAFS_ERR_OPTION);
        assert_string_equal(text, "before");
    }
    assert_int_equal(deltafs_options_set(NULL, "memory", "1G"), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_options_set(o, NULL, "1G"), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_options_set(o, "memory", NULL), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_options_get(o, "memory", NULL), DELTAFS_ERR_INVALID);
    deltafs_options_destroy(o);
}

static void test_options_values(void **state)
{
    static const struct {
        const char *name, *value;
        int64_t number; /* -1: refused, -2: automatic */
    } cases[] = {
        {"block", "256", 256},
        {"block", "1M", 1 << 20},
        {"block", "255", -1},
        {"block", "1048577", -1},
        {"block", "", -1},
        {"block", "auto", -1},
        {"codec", "none", CODEC_NONE},
        {"codec", "snappy", CODEC_SNAPPY},
        {"codec", "Snappy", -1},
        {"codec", "", -1},
        {"codec", "zstd", -1},
        {"memory", "8M", 8 << 20},
        {"memory", "8191K", -1},
        {"memory", "4T", INT64_C(4) << 40},
        {"memory", "5T", -1},
        {"memory", "auto", -2},
        {"memory", "any", -1},
        {"partitions", "1", 1},
        {"partitions", "0", -1},
        {"partitions", "1048576", 1 << 20},
        {"partitions", "1048577", -1},
        {"partitions", "1M", 1 << 20},
        {"partitions", "0x10", -1},
        {"partitions", "auto", -2},
        {"sync", "none", SYNC_NONE},
        {"sync", "commit", SYNC_COMMIT},
        {"sync", "no", -1},
        {"value_size", "0", 0},
        {"value_size", "1M", 1 << 20},
        {"value_size", "1048577", -1},
        {"value_size", "any", -2},
        {"value_size", "-1", -1},
        {"value_size", "18446744073709551616", -1},
    };
    deltafs_options *o = unit_options(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct deltafs_option_info *info;
        const char *before, *after;
        size_t row = 0;
        while ((info = deltafs_option_at(row)) && strcmp(info->name, cases[i].name) != 0)
            row++;
        assert_int_equal(deltafs_options_get(o, info->name, &before), DELTAFS_OK);
        int status = deltafs_options_set(o, cases[i].name, cases[i].value);
        if (cases[i].number == -1) {
            assert_int_equal(status, DELTAFS_ERR_OPTION);
            assert_non_null(strstr(deltafs_errmsg(NULL), info->takes));
            assert_non_null(strstr(deltafs_errmsg(NULL), info->name));
            assert_int_equal(deltafs_options_get(o, info->name, &after), DELTAFS_OK);
            assert_ptr_equal(before, after);
        } else {
            uint64_t want = cases[i].number == -2 ? OPTION_AUTO : (uint64_t)cases[i].number;
            assert_int_equal(status, DELTAFS_OK);
            assert_true(deltafs_private_options_number(o, (enum option_id)row) == want);
            assert_int_equal(deltafs_options_get(o, info->name, &after), DELTAFS_OK);
            assert_string_equal(after, cases[i].value);
        }
    }
    deltafs_options_destroy(o);
}

static void test_options_environment(void **state)
{
    deltafs_options *o = NULL;
    const char *text;

    (void)state;
    setenv("DELTAFS_MEMORY", "128M", 1);
    setenv("DELTAFS_VALUE_SIZE", "40", 1);
    assert_int_equal(deltafs_options_create(&o), DELTAFS_OK);
    assert_int_equal(deltafs_private_options_number(o, OPTION_MEMORY), 128 << 20);
    assert_int_equal(deltafs_private_options_number(o, OPTION_VALUE_SIZE), 40);
    assert_int_equal(deltafs_options_get(o, "memory", &text), DELTAFS_OK);
    assert_string_equal(text, "128M");
    deltafs_options_destroy(o);
    o = NULL;
    setenv("DELTAFS_MEMORY", "plenty", 1);
    assert_int_equal(deltafs_options_create(&o), DELTAFS_ERR_OPTION);
    assert_null(o);
    assert_non_null(strstr(deltafs_errmsg(NULL), "DELTAFS_MEMORY"));
    assert_non_null(strstr(deltafs_errmsg(NULL), "plenty"));
    unsetenv("DELTAFS_MEMORY");
    setenv("DELTAFS_SCHEMA", "x:f5", 1);
    assert_int_equal(deltafs_options_create(&o), DELTAFS_ERR_OPTION);
    assert_non_null(strstr(deltafs_errmsg(NULL), "DELTAFS_SCHEMA"));
    unsetenv("DELTAFS_SCHEMA");
    unsetenv("DELTAFS_VALUE_SIZE");
}

/* ---- Schemas ---- */

static void test_schema_good(void **state)
{
    static const struct {
        const char *name;
        char kind;
        uint32_t size, offset;
    } want[] = {{"dx", 'f', 4, 0},        {"y", 'f', 8, 4},       {"cell", 'i', 4, 12}, {"q", 'u', 1, 16},
                {"tag_1.x", 'S', 13, 17}, {"raw", 'V', 1000, 30}, {"w", 'i', 8, 1030}};
    const size_t n = sizeof want / sizeof want[0];
    deltafs_schema *s;

    (void)state;
    assert_int_equal(deltafs_schema_parse("dx:f4,y:<f8,cell:i4,q:u1,tag_1.x:S13,raw:V1000,w:<i8", &s), DELTAFS_OK);
    assert_int_equal(deltafs_schema_count(s), n);
    assert_int_equal(deltafs_schema_size(s), 1038);
    for (size_t i = 0; i < n; i++) {
        const struct deltafs_field *f = deltafs_schema_field(s, i);
        assert_string_equal(f->name, want[i].name);
        assert_int_equal(f->kind, want[i].kind);
        assert_int_equal(f->size, want[i].size);
        assert_int_equal(f->offset, want[i].offset);
    }
    assert_null(deltafs_schema_field(s, n));
    deltafs_schema_destroy(s);
    deltafs_schema_destroy(NULL);
    assert_int_equal(deltafs_schema_parse("x:V1048576", &s), DELTAFS_OK);
    deltafs_schema_destroy(s);
    assert_int_equal(deltafs_schema_parse("u:<f4~1e-4,v:f8~.25,w:f8", &s), DELTAFS_OK);
    assert_true(deltafs_schema_field(s, 0)->bound == 1e-4);
    assert_true(deltafs_schema_field(s, 1)->bound == 0.25);
    assert_true(deltafs_schema_field(s, 2)->bound == 0);
    assert_int_equal(deltafs_schema_field(s, 2)->offset, 12);
    deltafs_schema_destroy(s);
}

/* Arrays, and what NumPy prints, are the same as plain fields, also as an option. */
static void test_schema_arrays(void **state)
{
    static const char *const texts[][2] = {
        {"id:u8,pos:3f4", "id:u8,pos_0:f4,pos_1:f4,pos_2:f4"},
        {"a:1<f8,b:2S3,c:i4", "a_0:<f8,b_0:S3,b_1:S3,c:i4"},
        {"[('id', '<u8'), ('pos', '<f4', (3,))]", "id:u8,pos_0:f4,pos_1:f4,pos_2:f4"},
        {"[(\"a\",\"|u1\"),('b','|b1'),('','|V2'),('c','<i4',2),('d','|S5'),('','|V3')]",
         "a:u1,b:u1,padding_0:V2,c_0:i4,c_1:i4,d:S5,padding_1:V3"},
        {"[ ( 'x' , '=f8' , ( 1 , ) ) ]", "x_0:f8"},
        {"pos:2f4~1e-4,w:f8~2", "pos_0:f4~1e-4,pos_1:f4~1e-4,w:f8~2"},
        {"x:1000u1", NULL},
    };
    deltafs_options *o;
    const char *text;

    (void)state;
    assert_int_equal(deltafs_options_create(&o), DELTAFS_OK);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(deltafs_options_set(o, "schema", texts[i][0]), DELTAFS_OK);
        assert_int_equal(deltafs_options_get(o, "schema", &text), DELTAFS_OK);
        if (texts[i][1])
            assert_string_equal(text, texts[i][1]);
    }
    deltafs_options_destroy(o);
}

static void test_schema_names(void **state)
{
    static const char *const bad[] = {"value.key:f4,x:f4,key:u8", "epoch:u4,value.epoch:u4"};
    deltafs_options *o;

    (void)state;
    assert_int_equal(deltafs_options_create(&o), DELTAFS_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(deltafs_options_set(o, "schema", bad[i]), DELTAFS_ERR_SCHEMA);
        assert_non_null(strstr(deltafs_errmsg(NULL), i == 0 ? "'key' is shown as 'value.key', which is another field"
                                                            : "'epoch' is shown as 'value.epoch'"));
    }
    assert_int_equal(deltafs_options_set(o, "schema", "value.key:f4,epoch:u8,x:f4"), DELTAFS_OK);
    deltafs_options_destroy(o);
}

static void test_schema_bad(void **state)
{
    static const char *const bad[] = {"",
                                      ",",
                                      "x",
                                      "x:",
                                      ":f4",
                                      "x:f4,",
                                      ",x:f4",
                                      "x:f4,,y:f4",
                                      "x:f",
                                      "x:f2",
                                      "x:f16",
                                      "x:f04",
                                      "x:V0x10",
                                      "x:i3",
                                      "x:i16",
                                      "x:u0",
                                      "x:u",
                                      "x:S",
                                      "x:S0",
                                      "x:V0",
                                      "x:V-1",
                                      "x:V1048577",
                                      "x:V18446744073709551617",
                                      "x:V4294967297",
                                      "x:V1048576,y:u1",
                                      "x:>f4",
                                      "x:=f4",
                                      "x:<",
                                      "x:<<f4",
                                      "x:F4",
                                      "x:d",
                                      "x:f4 ",
                                      " x:f4",
                                      "x :f4",
                                      "x:f4, y:f4",
                                      "x:f4:f4",
                                      "x-y:f4",
                                      "\xc3\xa9:f4",
                                      "x:f4\n",
                                      "x:f4,x:f4",
                                      "x:f4,y:f4,x:i8",
                                      "x:0f4",
                                      "x:03f4",
                                      "x:3",
                                      "x:1001f4",
                                      "x:99999999f4",
                                      "x:2f4,x_1:f4",
                                      "x:f4~",
                                      "x:f4~0",
                                      "x:f4~-1",
                                      "x:f4~1e-400",
                                      "x:f4~1e400",
                                      "x:f4~inf",
                                      "x:f4~0x1p-3",
                                      "x:f4~1e-4~1",
                                      "x:f4~ 1",
                                      "x:f4~1,5",
                                      "x:i4~1",
                                      "x:~1",
                                      "x~1:f4",
                                      "[",
                                      "[]",
                                      "[('x', '<f4')",
                                      "[('x', '<f4')] ,",
                                      "[('x' '<f4')]",
                                      "[('x', <f4)]",
                                      "[(x, '<f4')]",
                                      "[('x', '<f4', (2, 3))]",
                                      "[('x', '<f4', ())]",
                                      "[('x', '<f4', (0,))]",
                                      "[('x', '<f4', (99999999999999999999,))]",
                                      "[('y', '<f4'), ('x', '<f4', 18446744073709551615)]",
                                      "[('x', '>f4')]",
                                      "[('x', '<c8')]",
                                      "[('x', [('y', '<f4')])]"};
    deltafs_schema *s = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (deltafs_schema_parse(bad[i], &s) != DELTAFS_ERR_SCHEMA || s)
            fail_msg("the schema '%s' was taken", bad[i]);
        assert_non_null(strstr(deltafs_errmsg(NULL), "schema"));
    }
    assert_int_equal(deltafs_schema_parse(NULL, &s), DELTAFS_ERR_INVALID);
    assert_int_equal(deltafs_schema_parse("x:f4", NULL), DELTAFS_ERR_INVALID);
}

/* 1,000 fields are the most; the text of many is no trouble. */
static void test_schema_many_fields(void **state)
{
    char text[16000] = "";
    deltafs_schema *s = NULL;
    size_t at = 0;

    (void)state;
    for (int i = 0; i < 1000; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%sf%d:u2", i ? "," : "", i);
    assert_int_equal(deltafs_schema_parse(text, &s), DELTAFS_OK);
    assert_int_equal(deltafs_schema_size(s), 2000);
    assert_int_equal(deltafs_schema_field(s, 999)->offset, 1998);
    deltafs_schema_destroy(s);
    snprintf(text + at, sizeof text - at, ",g:u2");
    assert_int_equal(deltafs_schema_parse(text, &s), DELTAFS_ERR_SCHEMA);
}

/* Every status has a text of its own, and others do not crash. */
static void test_status_texts(void **state)
{
    static const int all[] = {0, -1, -2, -3, -4, -5, -6, -7, -8, -20, -21, -22, -23, -40, -41, -42, -60, -61, -80};
    const size_t n = sizeof all / sizeof all[0];

    (void)state;
    for (size_t i = 0; i < n; i++) {
        assert_string_not_equal(deltafs_strerror(all[i]), deltafs_strerror(-9999));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(deltafs_strerror(all[i]), deltafs_strerror(all[k]));
    }
    assert_string_equal(deltafs_strerror(1), deltafs_strerror(-9999));
    assert_true(strlen(deltafs_version()) >= 5);
}

static void test_version(void **state)
{
    char text[32];

    (void)state;
    assert_string_equal(deltafs_version(), DELTAFS_VERSION);
    snprintf(text, sizeof text, "%d.%d.%d", DELTAFS_VERSION_MAJOR, DELTAFS_VERSION_MINOR, DELTAFS_VERSION_PATCH);
    assert_string_equal(text, DELTAFS_VERSION);
}

/* A message may be extended by itself; one that is too long ends in "...", and not inside a character. */
static void test_error_text(void **state)
{
    struct error e;
    char longer[2 * ERROR_TEXT_MAX];

    (void)state;
    assert_int_equal(error_set(&e, DELTAFS_ERR_IO, "disk: %s", "is gone"), DELTAFS_ERR_IO);
    error_set(&e, e.status, "job 7: %s; try again", e.text);
    assert_string_equal(e.text, "job 7: disk: is gone; try again");
    for (size_t shift = 0; shift < 2; shift++) {
        memset(longer, 'x', shift);
        for (size_t i = shift; i + 2 < sizeof longer; i += 2)
            memcpy(longer + i, "\xc3\xa9", 3);
        error_set(&e, DELTAFS_ERR_IO, "%s", longer);
        size_t n = strlen(e.text);
        assert_true(n < ERROR_TEXT_MAX && n >= ERROR_TEXT_MAX - 3);
        assert_string_equal(e.text + n - 3, "...");
        assert_int_equal((n - 3 - shift) % 2, 0);
        error_damaged(&e, "f", 0, "%s", longer);
        n = strlen(e.text) - strlen("f: damaged at offset 0: ") - 3;
        assert_int_equal((n - shift) % 2, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_text),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_number),
        cmocka_unit_test(test_number_size),
        cmocka_unit_test(test_varint),
        cmocka_unit_test(test_varint_overlong),
        cmocka_unit_test(test_fixed_width),
        cmocka_unit_test(test_crc32c_vectors),
        cmocka_unit_test(test_crc32c_all_agree),
        cmocka_unit_test(test_crc32c_long),
        cmocka_unit_test(test_path_parent),
        cmocka_unit_test(test_copy_short),
        cmocka_unit_test(test_hash_is_pinned),
        cmocka_unit_test(test_hash_of_several),
        cmocka_unit_test(test_hash_of_rows),
        cmocka_unit_test(test_partition),
        cmocka_unit_test(test_ownership),
        cmocka_unit_test(test_options_defaults),
        cmocka_unit_test(test_options_unknown),
        cmocka_unit_test(test_options_values),
        cmocka_unit_test(test_options_environment),
        cmocka_unit_test(test_schema_good),
        cmocka_unit_test(test_schema_arrays),
        cmocka_unit_test(test_schema_names),
        cmocka_unit_test(test_schema_bad),
        cmocka_unit_test(test_schema_many_fields),
        cmocka_unit_test(test_status_texts),
    };

    return cmocka_run_group_tests(tests, unit_setup, unit_teardown) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
