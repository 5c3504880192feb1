/* The words of an expression's text. */
#ifndef DELTAFS_QUERY_EXPR_TOKEN_H
#define DELTAFS_QUERY_EXPR_TOKEN_H

#include "query/expr_node.h"

enum token_kind {
    TOKEN_END,
    TOKEN_INTEGER,
    TOKEN_REAL,
    TOKEN_NAME,
    TOKEN_NOT,
    TOKEN_OPERATOR, /* of two operands */
    TOKEN_OTHER     /* one byte: a parenthesis, a bracket, a comma, or what no expression has */
};

/* How an operator binds: the higher, the earlier. */
enum level {
    LEVEL_OR = 1,
    LEVEL_AND,
    LEVEL_NOT,
    LEVEL_COMPARISON,
    LEVEL_SUM,
    LEVEL_PRODUCT,
    LEVEL_PREFIX,
    LEVEL_POWER
};

struct token {
    enum token_kind kind;
    uint32_t offset, length;
    enum node_kind node; /* TOKEN_OPERATOR */
    enum level level;
    uint64_t integer;
    double real;
};

/* The token at `at`, behind spaces. A number that cannot be read: DELTAFS_ERR_INVALID. */
int token_read(const char *text, uint32_t at, struct token *t, struct error *e);

/* A token as a message has it, in `out` of TOKEN_SHOWN bytes. */
#define TOKEN_SHOWN 128
const char *token_show(const char *text, const struct token *t, char *out);

static inline int token_is(const char *text, const struct token *t, char byte)
{
    return t->length == 1 && text[t->offset] == byte;
}

#endif
