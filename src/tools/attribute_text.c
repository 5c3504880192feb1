#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tools/attribute_text.h"
#include "tools/number_text.h"
#include "tools/text.h"

#define SHOWN_TEXT 4096
#define DIMENSIONS 7

static const char *const unit_symbols[DIMENSIONS] = {"m", "kg", "s", "A", "K", "mol", "cd"};

/* ---- Values ---- */

/* One number of the list; `type` gets larger where it does not fit: I8, U8, F8. Returns what is behind it, or NULL. */
static const char *parse_number(const char *text, int type, void *out)
{
    char *end = NULL;

    errno = 0;
    if (isspace((unsigned char)*text))
        return NULL;
    if (type == DELTAFS_ATTRIBUTE_I8)
        *(int64_t *)out = strtoll(text, &end, 10);
    else if (type == DELTAFS_ATTRIBUTE_U8 && *text != '-')
        *(uint64_t *)out = strtoull(text, &end, 10);
    else if (type == DELTAFS_ATTRIBUTE_F8)
        *(double *)out = strtod(text, &end);
    return end && end != text && (*end == ',' || *end == '\0') && (errno == 0 || type == DELTAFS_ATTRIBUTE_F8) ? end
                                                                                                               : NULL;
}

/* All numbers, if they are of this type. Returns whether they are. */
static int parse_numbers(const char *text, int type, struct deltafs_attribute *a)
{
    uint8_t *at = (uint8_t *)(uintptr_t)a->value;

    a->type = type;
    a->count = 0;
    do {
        text = parse_number(text, type, at + 8 * a->count++);
    } while (text && *text++ == ',');
    return text != NULL;
}

static const char *parse_array(const char *text, struct deltafs_attribute *a)
{
    static const int types[] = {DELTAFS_ATTRIBUTE_I8, DELTAFS_ATTRIBUTE_U8, DELTAFS_ATTRIBUTE_F8};
    size_t n = 1;

    for (const char *p = text; *p; p++)
        n += *p == ',';
    a->value = malloc(8 * n);
    if (!a->value)
        return "is too long: no memory";
    for (size_t i = 0; i < 3; i++)
        if (parse_numbers(text, types[i], a))
            return NULL;
    return "is no value; give a number, numbers with commas between them, \"TEXT\" in double quotes, or =EXPRESSION";
}

const char *attribute_parse_value(const char *text, struct deltafs_attribute *a)
{
    size_t n = strlen(text);
    int is_text = text[0] == '"';

    if (n == 0) {
        a->type = DELTAFS_ATTRIBUTE_COLUMN;
        return NULL;
    }
    if (!is_text && text[0] != '=')
        return parse_array(text, a);
    if (is_text && (n < 2 || text[n - 1] != '"'))
        return "has no double quote at its end";
    if (!is_text && text[1 + strspn(text + 1, " ")] == '\0')
        return "has no expression after the '='";
    a->type = is_text ? DELTAFS_ATTRIBUTE_TEXT : DELTAFS_ATTRIBUTE_EXPRESSION;
    a->value = strndup(text + 1, is_text ? n - 2 : n - 1);
    return a->value ? NULL : "is too long: no memory";
}

/* ---- Units ---- */

static const struct derived_unit {
    const char *symbol;
    double si;
    double dimension[DIMENSIONS];
} derived_units[] = {{"Hz", 1, {0, 0, -1}},
                     {"N", 1, {1, 1, -2}},
                     {"Pa", 1, {-1, 1, -2}},
                     {"J", 1, {2, 1, -2}},
                     {"W", 1, {2, 1, -3}},
                     {"C", 1, {0, 0, 1, 1}},
                     {"V", 1, {2, 1, -3, -1}},
                     {"T", 1, {0, 1, -2, -1}},
                     {"eV", 1.602176634e-19, {2, 1, -2}},
                     {"keV", 1.602176634e-16, {2, 1, -2}},
                     {"MeV", 1.602176634e-13, {2, 1, -2}},
                     {"GeV", 1.602176634e-10, {2, 1, -2}}};

static int is_symbol(const char *symbol, const char *text, size_t n)
{
    return strlen(symbol) == n && strncmp(text, symbol, n) == 0;
}

/* The unit of this symbol in *out. Returns 0, or -1 if there is none. */
static int find_symbol(const char *text, size_t n, struct derived_unit *out)
{
    *out = (struct derived_unit){.si = 1};
    for (size_t i = 0; i < DIMENSIONS; i++)
        if (is_symbol(unit_symbols[i], text, n)) {
            out->dimension[i] = 1;
            return 0;
        }
    for (size_t i = 0; i < sizeof derived_units / sizeof derived_units[0]; i++)
        if (is_symbol(derived_units[i].symbol, text, n)) {
            *out = derived_units[i];
            return 0;
        }
    return -1;
}

/* One symbol with its power, which counts `sign` times. Returns what is behind it, or NULL. */
static const char *parse_symbol(const char *text, int sign, struct attribute_unit *u)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    struct derived_unit unit;
    double power = 1;
    char *end;

    if (find_symbol(text, n, &unit) != 0)
        return NULL;
    text += n;
    if (*text == '^') {
        power = strtod(text + 1, &end);
        if (end == text + 1 || !isfinite(power))
            return NULL;
        text = end;
    }
    u->si *= pow(unit.si, sign * power);
    for (size_t i = 0; i < DIMENSIONS; i++)
        u->dimension[i] += sign * power * unit.dimension[i];
    return text;
}

const char *attribute_parse_unit(const char *text, void *out)
{
    static const char wrong[] = "is no unit; give a factor above 0, or symbols of units (m kg s A K mol cd Hz N Pa J W "
                                "C V T eV keV MeV GeV), or both, as in \"m/s\", \"1e-6 s\" or \"kg m s^-2\"";
    struct attribute_unit *u = out;
    char *end;

    *u = (struct attribute_unit){.is_given = 1};
    u->si = strtod(text, &end);
    if (end == text)
        u->si = 1;
    else if (*end != '\0' && *end != ' ' && *end != '/')
        return wrong;
    if (*text == '\0')
        return wrong;
    for (text = end; text && *text;) {
        int sign = *text == '/' ? -1 : 1;
        text += strchr(" */", *text) != NULL;
        text = parse_symbol(text, sign, u);
        if (text && *text && !strchr(" */", *text))
            return wrong;
    }
    return text && isfinite(u->si) && u->si > 0 ? NULL : wrong;
}

void attribute_dimension_text(const struct deltafs_attribute *a, char *out, size_t room)
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; i < DIMENSIONS && n < room; i++) {
        if (a->unit_dimension[i] == 0)
            continue;
        n += (size_t)snprintf(out + n, room - n, "%s%s", n > 0 ? " " : "", unit_symbols[i]);
        if (a->unit_dimension[i] != 1 && n < room)
            n += (size_t)snprintf(out + n, room - n, "^%.15g", a->unit_dimension[i]);
    }
}

static void print_unit(const struct deltafs_attribute *a)
{
    char number[NUMBER_TEXT_ROOM], symbols[ATTRIBUTE_DIMENSION_ROOM];

    attribute_dimension_text(a, symbols, sizeof symbols);
    number_text_float(a->unit_si, number);
    if (a->unit_si != 1 || *symbols == '\0')
        printf(" %s", number);
    if (*symbols != '\0')
        printf(" %s", symbols);
}

/* ---- Printing ---- */

static int is_text(const struct deltafs_attribute *a)
{
    return a->type == DELTAFS_ATTRIBUTE_TEXT || a->type == DELTAFS_ATTRIBUTE_EXPRESSION;
}

static void print_number(FILE *out, const struct deltafs_attribute *a, size_t i, int is_json)
{
    char text[NUMBER_TEXT_ROOM];

    if (a->type == DELTAFS_ATTRIBUTE_I8) {
        fprintf(out, "%" PRId64, ((const int64_t *)a->value)[i]);
    } else if (a->type == DELTAFS_ATTRIBUTE_U8) {
        fprintf(out, "%" PRIu64, ((const uint64_t *)a->value)[i]);
    } else {
        number_text_float(((const double *)a->value)[i], text);
        fprintf(out, is_json && strchr(text, 'n') ? "\"%s\"" : "%s", text); /* JSON has no nan and inf */
    }
}

void attribute_print(const struct deltafs_attribute *a, size_t most)
{
    char shown[SHOWN_TEXT];

    printf("%s=", a->name);
    if (is_text(a)) {
        text_show(a->value, a->count, shown, sizeof shown);
        printf(a->type == DELTAFS_ATTRIBUTE_TEXT ? "\"%s\"" : "=%s", shown);
    }
    for (size_t i = 0; i < a->count && !is_text(a) && i < most; i++) {
        fputs(i > 0 ? "," : "", stdout);
        print_number(stdout, a, i, 0);
    }
    if (!is_text(a) && a->count > most)
        printf(",... (%zu numbers)", a->count);
    if (a->from > 0)
        printf("  from %" PRIu64, a->from);
    if (a->unit_si != 0) {
        fputs("  unit", stdout);
        print_unit(a);
    }
    putchar('\n');
}

static void attribute_json(FILE *out, const struct deltafs_attribute *a)
{
    static const char *const types[] = {"", "f8", "i8", "u8", "text", "expression", "column"};
    char number[NUMBER_TEXT_ROOM];

    fprintf(out, "{\"name\": \"%s\", \"from\": %" PRIu64 ", \"type\": \"%s\", \"value\": ", a->name, a->from,
            types[a->type]);
    if (is_text(a))
        report_json_text(out, a->value, a->count);
    else
        fputs(a->count == 0 ? "null" : a->count > 1 ? "[" : "", out);
    for (size_t i = 0; i < a->count && !is_text(a); i++) {
        fputs(i > 0 ? ", " : "", out);
        print_number(out, a, i, 1);
    }
    fputs(a->count > 1 && !is_text(a) ? "]" : "", out);
    if (a->unit_si != 0) {
        number_text_float(a->unit_si, number);
        fprintf(out, ", \"unitSI\": %s, \"unitDimension\": [", number);
        for (size_t i = 0; i < DIMENSIONS; i++)
            fprintf(out, "%s%.15g", i > 0 ? ", " : "", a->unit_dimension[i]);
        putc(']', out);
    }
    putc('}', out);
}

void attributes_json(FILE *out, deltafs_dir *dir)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};

    putc('[', out);
    for (size_t i = 0; deltafs_attribute_at(dir, i, &a) == DELTAFS_OK; i++) {
        fputs(i > 0 ? ",\n  " : "\n  ", out);
        attribute_json(out, &a);
    }
    putc(']', out);
}

void attributes_report(struct report *r, deltafs_dir *dir)
{
    struct deltafs_attribute a = {.struct_size = sizeof a};

    report(r, NULL, "attributes", "%s", "");
    if (r->is_json) {
        attributes_json(stdout, dir);
        return;
    }
    for (size_t i = 0; deltafs_attribute_at(dir, i, &a) == DELTAFS_OK; i++) {
        if (i == 0)
            puts("\nattributes");
        fputs("  ", stdout);
        attribute_print(&a, ATTRIBUTE_SHOWN);
    }
}
