/* Tokens: numbers, names, operators. The program's locale has no say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/number.h"
#include "query/expr_token.h"

#define DIGITS     "0123456789"
#define LETTERS    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define NUMBER_MAX 100 /* bytes of a number */

static const struct {
    char text[4];
    enum node_kind node;
    enum level level;
} operators[] = {
    /* The longer ones first. */
    {"and", NODE_AND, LEVEL_AND},         {"or", NODE_OR, LEVEL_OR},         {"**", NODE_POW, LEVEL_POWER},
    {"//", NODE_FLOORDIV, LEVEL_PRODUCT}, {"<=", NODE_LE, LEVEL_COMPARISON}, {">=", NODE_GE, LEVEL_COMPARISON},
    {"==", NODE_EQ, LEVEL_COMPARISON},    {"!=", NODE_NE, LEVEL_COMPARISON}, {"<", NODE_LT, LEVEL_COMPARISON},
    {">", NODE_GT, LEVEL_COMPARISON},     {"+", NODE_ADD, LEVEL_SUM},        {"-", NODE_SUB, LEVEL_SUM},
    {"*", NODE_MUL, LEVEL_PRODUCT},       {"/", NODE_DIV, LEVEL_PRODUCT},    {"%", NODE_MOD, LEVEL_PRODUCT},
};

static int is_among(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* The bytes of a number without its sign: digits, a fraction, an exponent; or 0x and what follows it. */
static size_t number_length(const char *s, int *is_real)
{
    size_t n = strspn(s, DIGITS);

    *is_real = 0;
    if (n == 1 && s[0] == '0' && is_among(s[1], "xX"))
        return 2 + strspn(s + 2, DIGITS LETTERS);
    if (s[n] == '.') {
        *is_real = 1;
        n += 1 + strspn(s + n + 1, DIGITS);
    }
    if (is_among(s[n], "eE")) {
        size_t sign = is_among(s[n + 1], "+-") ? 1 : 0;
        *is_real = 1;
        n += 1 + sign + strspn(s + n + 1 + sign, DIGITS);
    }
    return n + strspn(s + n, DIGITS LETTERS "_."); /* what does not belong there is an error of the number */
}

static int token_number(const char *text, struct token *t, struct error *e)
{
    char number[NUMBER_MAX + 1], shown[TOKEN_SHOWN];
    int is_real, failed = 1;

    t->length = (uint32_t)number_length(text + t->offset, &is_real);
    t->kind = is_real ? TOKEN_REAL : TOKEN_INTEGER;
    if (t->length <= NUMBER_MAX) {
        memcpy(number, text + t->offset, t->length);
        number[t->length] = '\0';
        failed = is_real ? number_parse_real(number, &t->real) : number_parse(number, &t->integer);
    }
    if (!failed)
        return DELTAFS_OK;
    return error_set(e, DELTAFS_ERR_INVALID,
                     "offset %u: expected a number, found '%s'; an integer is below 2^64, a double has a '.' or an "
                     "exponent",
                     t->offset, token_show(text, t, shown));
}

static int token_quoted(const char *text, struct token *t, struct error *e)
{
    const char *end = strchr(text + t->offset + 1, '`');

    if (!end || end == text + t->offset + 1)
        return error_set(e, DELTAFS_ERR_INVALID, "offset %u: expected a name between two backquotes", t->offset);
    t->kind = TOKEN_NAME;
    t->length = (uint32_t)(end + 1 - (text + t->offset));
    return DELTAFS_OK;
}

static void token_word(const char *text, struct token *t)
{
    const char *s = text + t->offset;

    t->length = 1;
    t->kind = TOKEN_OTHER;
    if (is_among(*s, LETTERS "_")) {
        t->kind = TOKEN_NAME;
        t->length = (uint32_t)strspn(s, LETTERS DIGITS "_.");
    }
    if (t->length == 3 && memcmp(s, "not", 3) == 0)
        t->kind = TOKEN_NOT;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        size_t length = strlen(operators[i].text);
        if (strncmp(s, operators[i].text, length) != 0 || (t->kind == TOKEN_NAME && t->length != length))
            continue;
        t->kind = TOKEN_OPERATOR;
        t->length = (uint32_t)length;
        t->node = operators[i].node;
        t->level = operators[i].level;
        return;
    }
}

int token_read(const char *text, uint32_t at, struct token *t, struct error *e)
{
    const char *s = text + at + strspn(text + at, " \t\r\n");

    *t = (struct token){.kind = TOKEN_END, .offset = (uint32_t)(s - text)};
    if (*s == '\0')
        return DELTAFS_OK;
    if (is_among(*s, DIGITS) || (*s == '.' && is_among(s[1], DIGITS)))
        return token_number(text, t, e);
    if (*s == '`')
        return token_quoted(text, t, e);
    token_word(text, t);
    return DELTAFS_OK;
}

const char *token_show(const char *text, const struct token *t, char *out)
{
    size_t used = 0;

    for (uint32_t i = 0; i < t->length; i++) {
        unsigned char c = (unsigned char)text[t->offset + i];
        if (used + sizeof "\\x00..." > TOKEN_SHOWN) {
            memcpy(out + used, "...", 4);
            return out;
        }
        used += (size_t)sprintf(out + used, c >= ' ' && c < 0x7f ? "%c" : "\\x%02x", c);
    }
    out[used] = '\0';
    return out;
}
