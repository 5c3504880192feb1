/* What paths of particles mean, and labels of epochs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "posix/locks.h"
#include "posix/particles.h"
#include "posix/particles_parts.h"

/* ---- Numbers ---- */

/* A decimal number of `n` digits. Returns whether it is one. */
static int parse_number(const char *text, size_t n, uint64_t *out)
{
    uint64_t number = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned digit = (unsigned char)text[i] - (unsigned)'0';
        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return 0;
        number = number * 10 + digit;
    }
    *out = number;
    return n > 0;
}

/* ---- Labels ---- */

/* A pattern: what is before the number, the conversion, and what is behind it. */
struct pattern {
    const char *prefix, *suffix;
    size_t prefix_size, suffix_size;
};

static int pattern_parse(const char *text, struct pattern *out)
{
    const char *percent = strchr(text, '%');

    if (!percent)
        return 0;
    const char *kind = percent + 1 + strspn(percent + 1, "0123456789");
    kind += strspn(kind, "lzj");
    if (!*kind || !strchr("diu", *kind) || strpbrk(kind + 1, "%/") || memchr(text, '/', (size_t)(percent - text)))
        return 0;
    *out = (struct pattern){
        .prefix = text, .prefix_size = (size_t)(percent - text), .suffix = kind + 1, .suffix_size = strlen(kind + 1)};
    return 1;
}

int label_is_valid(const char *text)
{
    struct pattern pattern;

    return text[0] == '$' ? text[1] != '\0' : pattern_parse(text, &pattern);
}

/* The number in a name that matches the pattern of labels. */
static int label_of_name(const struct particles *p, const char *name, size_t size, struct label *out)
{
    struct pattern k;

    if (!p->label || *p->label == '$' || !pattern_parse(p->label, &k) || size <= k.prefix_size + k.suffix_size ||
        memcmp(name, k.prefix, k.prefix_size) != 0 || memcmp(name + size - k.suffix_size, k.suffix, k.suffix_size) != 0)
        return 0;
    out->is_given = parse_number(name + k.prefix_size, size - k.prefix_size - k.suffix_size, &out->number);
    return out->is_given;
}

int label_of_environment(const struct particles *p, struct label *out)
{
    *out = (struct label){.is_given = 0};
    if (!p->label || *p->label != '$')
        return 0;
    const char *text = getenv(p->label + 1);
    out->is_given = text && parse_number(text, strlen(text), &out->number);
    if (!out->is_given)
        posix_say("%s: the environment variable %s must have the number of the epoch that ends, and is '%s'", p->target,
                  p->label + 1, text ? text : "");
    return out->is_given ? 0 : EINVAL;
}

/* ---- Places ---- */

static int is_dots(const char *name, size_t size)
{
    return (size == 1 && name[0] == '.') || (size == 2 && name[0] == '.' && name[1] == '.');
}

static int place_particle(struct particles *p, const char *name, size_t size, struct place *out)
{
    out->kind = PLACE_PARTICLE;
    if (size > PARTICLE_NAME_MAX)
        return ENAMETOOLONG;
    if (!atomic_load_explicit(&p->is_known, memory_order_acquire)) {
        lock_take(&p->lock);
        int error = particles_know(p);
        lock_give(&p->lock);
        if (error != 0)
            return error;
    }
    if (!p->is_bytes)
        return parse_number(name, size, &out->key) ? 0 : EINVAL;
    out->name = name;
    out->name_size = size;
    return 0;
}

int place_find(struct particles *p, const char *path, struct place *out)
{
    const char *name = path + (*path == '/');
    const char *slash = strchrnul(name, '/');

    *out = (struct place){.kind = PLACE_FOLDER};
    if (label_of_name(p, name, (size_t)(slash - name), &out->label)) {
        name = slash + (*slash == '/');
        slash = strchrnul(name, '/');
    }
    if (*name == '\0')
        return 0;
    if (*slash == '/' || is_dots(name, (size_t)(slash - name)))
        return ENOENT;
    return place_particle(p, name, (size_t)(slash - name), out);
}
