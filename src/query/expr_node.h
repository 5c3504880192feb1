/* A parsed expression: its nodes, operands before what takes them. */
#ifndef DELTAFS_QUERY_EXPR_NODE_H
#define DELTAFS_QUERY_EXPR_NODE_H

#include "query/expr.h"

enum node_kind {
    NODE_INTEGER,
    NODE_REAL,
    NODE_NAME,
    NODE_INDEX, /* name[a] */
    NODE_NEGATE,
    NODE_NOT,
    NODE_SQRT,
    NODE_ABS,
    NODE_FLOOR,
    NODE_LOG,
    NODE_EXP,
    NODE_SIN,
    NODE_COS,
    NODE_ADD,
    NODE_SUB,
    NODE_MUL,
    NODE_DIV,
    NODE_FLOORDIV,
    NODE_MOD,
    NODE_POW,
    NODE_MIN,
    NODE_MAX,
    NODE_ATAN2,
    NODE_LT,
    NODE_LE,
    NODE_GT,
    NODE_GE,
    NODE_EQ,
    NODE_NE,
    NODE_AND,
    NODE_OR
};

struct node {
    enum node_kind kind;
    uint32_t offset; /* in the text, of the operator or the operand */
    uint32_t a, b;   /* numbers of nodes */
    union {
        uint64_t integer;
        double real;
        const char *name; /* in expr.names */
    };
};

struct expr {
    struct node *node;
    size_t count, capacity;
    char *names; /* the text, with a NUL behind each name */
};

#endif
