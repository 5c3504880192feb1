/* Parts of expressions, and what they compute as a number. */
#include <stdlib.h>
#include <string.h>
#include "base/hash.h"
#include "base/memory.h"
#include "query/expr_code.h"
#include "query/expr_node.h"

/* Nodes that are operands of the root, directly or not: operands have smaller numbers. */
static void part_mark(const struct expr *x, uint32_t root, uint8_t *is_part)
{
    is_part[root] = 1;
    for (uint32_t i = root + 1; i-- > 0;) {
        const struct node *n = &x->node[i];
        if (!is_part[i] || n->kind < NODE_INDEX)
            continue;
        is_part[n->a] = 1;
        if (n->kind >= NODE_ADD)
            is_part[n->b] = 1;
    }
}

int expr_part(const struct expr *x, uint32_t root, struct expr **out, struct error *e)
{
    uint8_t *is_part = calloc(root + 1, 1);
    uint32_t *number = calloc(root + 1, sizeof *number);
    struct expr *part = calloc(1, sizeof *part);
    int status = is_part && number && part ? DELTAFS_OK : error_no_memory(e, root * sizeof *number, "an expression");

    if (status == DELTAFS_OK)
        part_mark(x, root, is_part);
    for (uint32_t i = 0; i <= root && status == DELTAFS_OK; i++) {
        if (!is_part[i])
            continue;
        status = memory_extend(NULL, &part->node, part->count, &part->capacity, sizeof *part->node, "an expression", e);
        if (status != DELTAFS_OK)
            break;
        struct node *n = &part->node[part->count];
        *n = x->node[i];
        if (n->kind >= NODE_INDEX) {
            n->a = number[n->a];
            n->b = number[n->b];
        }
        number[i] = (uint32_t)part->count++;
    }
    free(is_part);
    free(number);
    if (status == DELTAFS_OK)
        *out = part;
    else
        expr_destroy(part);
    return status;
}

/* ---- Fingerprints ---- */

static uint64_t mix(uint64_t hash, uint64_t next)
{
    return hash_key(hash * 31 + next);
}

uint64_t expr_fingerprint(const struct expr_bound *b)
{
    uint64_t hash = mix(b->count, b->result);

    for (size_t i = 0; i < b->count; i++) {
        const struct step *s = &b->step[i];
        hash = mix(hash, s->code);
        hash = mix(hash, s->signs);
        hash = mix(hash, (uint64_t)s->a << 32 | s->b);
        hash = mix(hash, s->out);
        hash = mix(hash, s->code == CODE_CONSTANT ? s->bits : 0);
        if (s->code >= CODE_LOAD_F4 && s->code <= CODE_LOAD_WIDE)
            hash = mix(hash, b->column[s->item]);
        else if (s->code == CODE_GATHER)
            hash = mix(hash, hash_bytes(b->array[s->item].values, b->array[s->item].count * sizeof(double)));
    }
    return hash;
}
