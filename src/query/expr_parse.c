/* The parser: precedence climbing. Recursion is limited by EXPR_DEPTH_MAX; the first error ends the text. */
#include <stdlib.h>
#include <string.h>
#include "base/memory.h"
#include "query/expr_token.h"

struct parser {
    const char *text;
    struct token token; /* the next one */
    struct expr *x;
    unsigned depth;
    int status;
    struct error *e;
};

static const struct {
    char name[8];
    enum node_kind node;
    unsigned arguments; /* of min and max: at least */
} functions[] = {
    {"sqrt", NODE_SQRT, 1}, {"abs", NODE_ABS, 1}, {"floor", NODE_FLOOR, 1}, {"log", NODE_LOG, 1}, {"exp", NODE_EXP, 1},
    {"sin", NODE_SIN, 1},   {"cos", NODE_COS, 1}, {"atan2", NODE_ATAN2, 2}, {"min", NODE_MIN, 2}, {"max", NODE_MAX, 2},
};

static uint32_t parse_level(struct parser *p, enum level level);

static void parse_stop(struct parser *p, int status)
{
    p->status = error_first(p->status, status);
    p->token = (struct token){.kind = TOKEN_END};
}

/* What those write who know other languages. */
static const char *parse_hint(const struct parser *p)
{
    static const struct {
        char byte;
        const char *hint;
    } hints[] = {{'=', "; compare with '=='"},
                 {'&', "; write 'and'"},
                 {'|', "; write 'or'"},
                 {'!', "; write 'not'"},
                 {'^', "; write '**'"}};

    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (token_is(p->text, &p->token, hints[i].byte))
            return hints[i].hint;
    return "";
}

static void parse_expected(struct parser *p, const char *what)
{
    char shown[TOKEN_SHOWN];
    const struct token *t = &p->token;

    if (p->status != DELTAFS_OK)
        return;
    if (t->kind == TOKEN_END)
        parse_stop(p, error_set(p->e, DELTAFS_ERR_INVALID, "offset %u: expected %s, found the end", t->offset, what));
    else
        parse_stop(p, error_set(p->e, DELTAFS_ERR_INVALID, "offset %u: expected %s, found '%s'%s", t->offset, what,
                                token_show(p->text, t, shown), parse_hint(p)));
}

static void parse_next(struct parser *p)
{
    int status;

    if (p->status != DELTAFS_OK)
        return;
    status = token_read(p->text, p->token.offset + p->token.length, &p->token, p->e);
    if (status != DELTAFS_OK)
        parse_stop(p, status);
}

static void parse_byte(struct parser *p, char byte, const char *what)
{
    if (token_is(p->text, &p->token, byte))
        parse_next(p);
    else
        parse_expected(p, what);
}

static uint32_t parse_node(struct parser *p, struct node n)
{
    struct expr *x = p->x;

    if (p->status == DELTAFS_OK && x->count == EXPR_NODES_MAX)
        parse_stop(p, error_set(p->e, DELTAFS_ERR_INVALID, "offset %u: more than %d operations and operands", n.offset,
                                EXPR_NODES_MAX));
    if (p->status == DELTAFS_OK)
        p->status = memory_extend(NULL, &x->node, x->count, &x->capacity, sizeof n, "an expression", p->e);
    if (p->status != DELTAFS_OK) {
        parse_stop(p, p->status);
        return 0;
    }
    x->node[x->count] = n;
    return (uint32_t)x->count++;
}

static uint32_t parse_two(struct parser *p, enum node_kind kind, uint32_t offset, uint32_t a, uint32_t b)
{
    return parse_node(p, (struct node){.kind = kind, .offset = offset, .a = a, .b = b});
}

/* What follows `f(`. */
static uint32_t parse_arguments(struct parser *p, size_t f, uint32_t offset)
{
    enum node_kind kind = functions[f].node;
    unsigned count = 1;
    uint32_t left = parse_level(p, LEVEL_OR);

    while (token_is(p->text, &p->token, ',')) {
        parse_next(p);
        left = parse_two(p, kind, offset, left, parse_level(p, LEVEL_OR));
        count++;
    }
    parse_byte(p, ')', "',' or ')'");
    int fits = count == functions[f].arguments || (count > 2 && (kind == NODE_MIN || kind == NODE_MAX));
    if (p->status == DELTAFS_OK && !fits)
        parse_stop(p,
                   error_set(p->e, DELTAFS_ERR_INVALID, "offset %u: '%s' takes %s, found %u", offset, functions[f].name,
                             functions[f].arguments == 1 ? "one value"
                             : kind == NODE_ATAN2        ? "two values"
                                                         : "two or more values",
                             count));
    return count == 1 ? parse_two(p, kind, offset, left, left) : left;
}

/* What follows `name(`. */
static uint32_t parse_call(struct parser *p, const char *name, uint32_t offset)
{
    const size_t count = sizeof functions / sizeof functions[0];
    size_t f = 0;

    while (f < count && strcmp(name, functions[f].name) != 0)
        f++;
    if (f < count)
        return parse_arguments(p, f, offset);
    parse_stop(p, error_set(p->e, DELTAFS_ERR_INVALID,
                            "offset %u: no function is named '%s'; the functions are sqrt, abs, floor, log, exp, sin, "
                            "cos, atan2, min, max",
                            offset, name));
    return 0;
}

static uint32_t parse_name(struct parser *p)
{
    struct token t = p->token;
    struct node n = {.kind = NODE_NAME, .offset = t.offset};
    int is_quoted = p->text[t.offset] == '`';
    char *name = p->x->names + t.offset + is_quoted;

    parse_next(p);
    name[t.length - 2 * (uint32_t)is_quoted] = '\0'; /* what follows has been read from the text itself */
    if (token_is(p->text, &p->token, '(') && !is_quoted) {
        parse_next(p);
        return parse_call(p, name, t.offset);
    }
    n.name = name;
    if (token_is(p->text, &p->token, '[')) {
        parse_next(p);
        n.kind = NODE_INDEX;
        n.a = parse_level(p, LEVEL_OR);
        parse_byte(p, ']', "']'");
    }
    return parse_node(p, n);
}

static uint32_t parse_operand(struct parser *p)
{
    struct token t = p->token;
    uint32_t inside;

    switch (t.kind) {
    case TOKEN_INTEGER:
        parse_next(p);
        return parse_node(p, (struct node){.kind = NODE_INTEGER, .offset = t.offset, .integer = t.integer});
    case TOKEN_REAL:
        parse_next(p);
        return parse_node(p, (struct node){.kind = NODE_REAL, .offset = t.offset, .real = t.real});
    case TOKEN_NAME:
        return parse_name(p);
    default:
        parse_byte(p, '(', "a number, a name or '('");
        inside = parse_level(p, LEVEL_OR);
        parse_byte(p, ')', "')'");
        return inside;
    }
}

static uint32_t parse_prefix(struct parser *p, enum level level)
{
    struct token t = p->token;

    if (t.kind == TOKEN_NOT && level <= LEVEL_NOT) {
        parse_next(p);
        uint32_t a = parse_level(p, LEVEL_NOT);
        return parse_two(p, NODE_NOT, t.offset, a, a);
    }
    if (!token_is(p->text, &t, '-') && !token_is(p->text, &t, '+'))
        return parse_operand(p);
    parse_next(p);
    uint32_t a = parse_level(p, LEVEL_PREFIX);
    return token_is(p->text, &t, '-') ? parse_two(p, NODE_NEGATE, t.offset, a, a) : a;
}

/* a < b <= c: every comparison of the chain. */
static uint32_t parse_comparisons(struct parser *p, uint32_t left)
{
    uint32_t all = 0;

    for (unsigned i = 0; p->token.kind == TOKEN_OPERATOR && p->token.level == LEVEL_COMPARISON; i++) {
        struct token t = p->token;
        parse_next(p);
        uint32_t right = parse_level(p, LEVEL_SUM);
        uint32_t one = parse_two(p, t.node, t.offset, left, right);
        all = i == 0 ? one : parse_two(p, NODE_AND, t.offset, all, one);
        left = right;
    }
    return all;
}

/* All that binds as `level` or closer. */
static uint32_t parse_level(struct parser *p, enum level level)
{
    uint32_t left = 0;

    if (p->depth == EXPR_DEPTH_MAX && p->status == DELTAFS_OK)
        parse_stop(p, error_set(p->e, DELTAFS_ERR_INVALID,
                                "offset %u: more than %d levels of parentheses, prefixes and "
                                "powers",
                                p->token.offset, EXPR_DEPTH_MAX));
    if (p->status != DELTAFS_OK)
        return 0;
    p->depth++;
    left = parse_prefix(p, level);
    while (p->token.kind == TOKEN_OPERATOR && p->token.level >= level) {
        struct token t = p->token;
        if (t.level == LEVEL_COMPARISON) {
            left = parse_comparisons(p, left);
            continue;
        }
        parse_next(p);
        /* x ** y ** z is x ** (y ** z); of all others the left comes first. */
        left = parse_two(p, t.node, t.offset, left, parse_level(p, t.level == LEVEL_POWER ? t.level : t.level + 1));
    }
    p->depth--;
    return left;
}

static int parse_all(struct parser *p)
{
    parse_next(p);
    parse_level(p, LEVEL_OR);
    if (p->token.kind != TOKEN_END)
        parse_expected(p, "an operator");
    return p->status;
}

int expr_parse(const char *text, struct expr **out, struct error *e)
{
    size_t length = strnlen(text, EXPR_TEXT_MAX + 1);

    if (length > EXPR_TEXT_MAX)
        return error_set(e, DELTAFS_ERR_INVALID, "offset %d: the expression is longer than %d bytes", EXPR_TEXT_MAX,
                         EXPR_TEXT_MAX);
    struct parser p = {.text = text, .x = calloc(1, sizeof *p.x), .e = e};
    if (p.x)
        p.x->names = strdup(text);
    int status = p.x && p.x->names ? parse_all(&p) : error_no_memory(e, length + 1, "an expression");
    if (status != DELTAFS_OK) {
        expr_destroy(p.x);
        return status;
    }
    *out = p.x;
    return DELTAFS_OK;
}

void expr_destroy(struct expr *x)
{
    if (!x)
        return;
    free(x->node);
    free(x->names);
    free(x);
}
