#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "tools/cmd.h"

/* ---- Parsers ---- */

const char *cmd_parse_text(const char *text, void *out)
{
    *(const char **)out = text;
    return NULL;
}

const char *cmd_parse_path(const char *text, void *out)
{
    *(const char **)out = text_path(text);
    return *text_path(text) != '\0' ? NULL : "is no name of a file or directory";
}

const char *cmd_parse_number(const char *text, void *out)
{
    struct command_number *n = out;

    n->is_given = 1;
    return text_number(text, &n->value) == 0 ? NULL : "is no number (decimal, or hexadecimal after 0x)";
}

/* What is `wrong` with a range, or NULL. */
static const char *parse_range(const char *text, struct command_range *r, const char *wrong)
{
    char first[32];
    const char *colon = strchr(text, ':'), *last = colon ? colon + 1 : text;
    size_t n = colon ? (size_t)(colon - text) : strlen(text);

    *r = (struct command_range){1, {0, UINT64_MAX}};
    if (n >= sizeof first || *text == '\0' || strcmp(text, ":") == 0)
        return wrong;
    memcpy(first, text, n);
    first[n] = '\0';
    if ((n > 0 && text_number(first, &r->range.first) != 0) ||
        (*last != '\0' && text_number(last, &r->range.last) != 0) || r->range.first > r->range.last)
        return wrong;
    return NULL;
}

const char *cmd_parse_range(const char *text, void *out)
{
    return parse_range(text, out, "is no range of labels; give A, A:B, A: or :B, with A <= B");
}

const char *cmd_parse_keys(const char *text, void *out)
{
    return parse_range(text, out, "is no range of keys; give A, A:B, A: or :B, with numbers A <= B");
}

/* ---- The library's options ---- */

const char *const cmd_takes_all[] = {NULL};

const char *cmd_option(const deltafs_options *o, const char *name)
{
    const char *value = "";

    deltafs_options_get(o, name, &value);
    return value;
}

int cmd_check_key(const deltafs_options *o, const char *command)
{
    const char *key = cmd_option(o, "key");

    if (*key == '\0' || strchr(key, '/') || *cmd_option(o, "schema") != '\0')
        return EXIT_OK;
    return text_fail(EXIT_USAGE,
                     "%s: --key: '%s' has no '/': give the path of the HDF5 datasets with the IDs, such as '/%s' or "
                     "'/Step#*/*/%s'; or, for files of records, also --schema",
                     command, key, key, key);
}

/* Its number; there are fewer than 64. */
static size_t library_option_find(const char *name)
{
    const struct deltafs_option_info *info;
    size_t i = 0;

    while ((info = deltafs_option_at(i)) && strcmp(info->name, name) != 0)
        i++;
    return i;
}

int cmd_is_given(const struct command_call *c, const char *name)
{
    return c->given >> library_option_find(name) & 1;
}

/* ---- Options and operands ---- */

struct parser {
    const struct command *command;
    struct command_call *call;
    char **argv;
    int argc, at; /* `at`: the next argument */
};

static const struct command_option *option_find(const struct command *c, const char *name, char letter)
{
    for (const struct command_option *o = c->option; o && o->name; o++)
        if (name ? strcmp(o->name, name) == 0 : o->letter == letter)
            return o;
    return NULL;
}

/* How many characters must be changed, left out or put in to make `b` of `a`; WORD_MAX if they are too long. */
#define WORD_MAX 32
static size_t word_distance(const char *a, const char *b)
{
    size_t n = strlen(b), row[WORD_MAX + 1];

    if (n > WORD_MAX || strlen(a) > WORD_MAX)
        return WORD_MAX;
    for (size_t k = 0; k <= n; k++)
        row[k] = k;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0]++;
        for (size_t k = 0; k < n; k++) {
            size_t change = diagonal + (a[i] != b[k]), least = row[k] < row[k + 1] ? row[k] + 1 : row[k + 1] + 1;
            diagonal = row[k + 1];
            row[k + 1] = change < least ? change : least;
        }
    }
    return row[n];
}

/* Keep `candidate` in *best if it is nearer to `word` than that; two mistakes are the most, and one in short words. */
static void word_consider(const char *word, const char *candidate, const char **best)
{
    size_t most = strlen(word) > 4 ? 2 : 1, distance = word_distance(word, candidate);

    if (distance <= most && (!*best || distance < word_distance(word, *best)))
        *best = candidate;
}

/* Whether the command takes this option of the library. */
static int option_is_library(const struct command *c, const char *name)
{
    const struct deltafs_option_info *info;

    for (size_t i = 0; c->refused && c->refused[i]; i++)
        if (strcmp(c->refused[i], name) == 0)
            return 0;
    for (size_t i = 0; c->refused && (info = deltafs_option_at(i)); i++)
        if (strcmp(info->name, name) == 0)
            return 1;
    return 0;
}

static int parse_unknown(const struct command *c, const char *name)
{
    const struct deltafs_option_info *info;
    const char *best = NULL;

    for (const struct command_option *o = c->option; o && o->name; o++)
        word_consider(name, o->name, &best);
    for (size_t i = 0; c->refused && (info = deltafs_option_at(i)); i++)
        if (option_is_library(c, info->name))
            word_consider(name, info->name, &best);
    return text_fail(EXIT_USAGE, "%s: unknown option '--%s'%s%s%s", c->name, name, best ? "; did you mean '--" : "",
                     best ? best : "", best ? "'?" : "");
}

/* Take an option; `text` is the value that came with it, or NULL. */
static int parse_option(struct parser *p, const char *name, const char *text)
{
    const struct command_option *o = option_find(p->command, name, 0);
    const char *command = p->command->name, *wrong = NULL;
    void *out = o ? (char *)p->call->values + o->at : NULL;

    if (!o && !option_is_library(p->command, name))
        return parse_unknown(p->command, name);
    if (o && !o->parse) {
        *(int *)out = 1;
        return text ? text_fail(EXIT_USAGE, "%s: --%s takes no value", command, name) : EXIT_OK;
    }
    if (!text && p->at < p->argc)
        text = p->argv[p->at++];
    if (!text)
        return text_fail(EXIT_USAGE, "%s: --%s needs a value", command, name);
    if (!o)
        p->call->given |= UINT64_C(1) << library_option_find(name);
    if (!o && deltafs_options_set(p->call->options, name, text) != DELTAFS_OK)
        return text_fail(EXIT_USAGE, "%s: %s", command, deltafs_errmsg(NULL));
    if (o)
        wrong = o->parse(text, out);
    return wrong ? text_fail(EXIT_USAGE, "%s: --%s: '%s' %s", command, name, text, wrong) : EXIT_OK;
}

/* --NAME, --NAME VALUE or --NAME=VALUE. */
static int parse_long(struct parser *p, const char *argument)
{
    char name[64];
    size_t n = strcspn(argument, "=");

    snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name, argument);
    return parse_option(p, name, argument[n] == '=' ? argument + n + 1 : NULL);
}

/* Letters, of which the last may take a value: -lV or -l V. */
static int parse_letters(struct parser *p, const char *letter)
{
    int code = EXIT_OK;

    for (; *letter != '\0' && code == EXIT_OK; letter++) {
        const struct command_option *o = option_find(p->command, NULL, *letter);
        if (!o)
            return text_fail(EXIT_USAGE, "%s: unknown option '-%c'", p->command->name, *letter);
        code = parse_option(p, o->name, o->parse && letter[1] != '\0' ? letter + 1 : NULL);
        if (o->parse)
            break;
    }
    return code;
}

/* Options may come before, between and after operands, up to "--". A number below 0 is an operand. */
static int parse(struct parser *p)
{
    int is_end = 0, code = EXIT_OK;

    while (p->at < p->argc && code == EXIT_OK) {
        char *argument = p->argv[p->at++];
        if (is_end || argument[0] != '-' || argument[1] == '\0' || isdigit((unsigned char)argument[1]))
            p->call->operand[p->call->count++] = argument;
        else if (strcmp(argument, "--") == 0)
            is_end = 1;
        else
            code = argument[1] == '-' ? parse_long(p, argument + 2) : parse_letters(p, argument + 1);
    }
    if (code == EXIT_OK &&
        (p->call->count < p->command->least || (p->command->most > 0 && p->call->count > p->command->most)))
        code = text_fail(EXIT_USAGE, "%s: %s", p->command->name, p->command->missing);
    return code;
}

/* ---- Help ---- */

/* `before`: the name of the command that it is a part of, and a blank. */
static void help_one(const char *before, const struct command *c)
{
    char left[64];

    printf("%s %s%s %s\n    %s\n", text_program, before, c->name, c->usage, c->text);
    for (const struct command_option *o = c->option; o && o->name; o++) {
        snprintf(left, sizeof left, "%c%c%s--%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                 o->letter ? ", " : "  ", o->name, o->takes ? " " : "", o->takes ? o->takes : "");
        printf("    %-20s %s\n", o->letter ? left : left + 4, o->text);
    }
    if (c->in_namespace)
        printf("    With NS:/PATH this is '%s ns %s', which has options of its own.\n", text_program, c->name);
}

static void help_command(const struct command *c)
{
    char before[32];

    if (c->run || c->each)
        help_one("", c);
    snprintf(before, sizeof before, "%s ", c->name);
    for (const struct command *const *sub = c->sub; sub && *sub; sub++)
        help_one(before, *sub);
}

static void help_options(void)
{
    const struct deltafs_option_info *o;

    puts("Options, for deltafs_options_set, MPI_Info (deltafs_NAME), the environment (DELTAFS_NAME)\n"
         "and deltafs-mpi (--NAME):\n");
    for (size_t i = 0; (o = deltafs_option_at(i)); i++)
        printf("  %-12s %s\n               takes %s; default '%s'\n", o->name, o->text, o->takes, o->default_value);
}

static void help_all(const struct program *p)
{
    printf("%s %s\n\n", text_program, p->text);
    for (const struct command *const *c = p->command; *c; c++)
        help_command(*c);
    printf("%s help [COMMAND | options]\n%s --version\n\nExit codes: %s.\n", text_program, text_program, p->codes);
}

static const struct command *command_find(const struct program *p, const char *name)
{
    for (const struct command *const *c = p->command; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

/* Name the commands: "WHAT NAME; there are A, B, LAST". */
static int fail_command(const struct program *p, const char *what, const char *last)
{
    char names[256] = "";
    size_t used = 0;

    for (const struct command *const *c = p->command; *c && used < sizeof names; c++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s, ", (*c)->name);
    return text_fail(EXIT_USAGE, "%s %s%s", what, names, last);
}

/* "NO_WHAT 'NAME'; did you mean 'OTHER'? There ..." */
static void say_unknown(const struct program *p, const char *no_what, const char *name, const char *there, char *out,
                        size_t room)
{
    const char *best = NULL;

    for (const struct command *const *c = p->command; *c; c++)
        word_consider(name, (*c)->name, &best);
    snprintf(out, room, "%s '%.64s'; %s%s%s%s", no_what, name, best ? "did you mean '" : there, best ? best : "",
             best ? "'? There " : "", best ? there + strlen("there ") : "");
}

static void list_option(const struct command_option *o)
{
    printf("--%s%s\n", o->name, o->parse ? "=" : "");
}

/* For completion in shells: the commands, or the options of one, one on a line; those with a value end in '='. */
static int list(const struct program *p, const char *name)
{
    const struct command *one = name ? command_find(p, name) : NULL;
    const struct command *other = one ? one->in_namespace : NULL;
    const struct deltafs_option_info *info;

    for (const struct command *const *c = p->command; !name && *c; c++)
        puts((*c)->name);
    if (!name)
        puts("help");
    for (const struct command_option *o = one ? one->option : NULL; o && o->name; o++)
        list_option(o);
    for (const struct command_option *o = other ? other->option : NULL; o && o->name; o++)
        if (!option_find(one, o->name, 0))
            list_option(o);
    for (size_t i = 0; one && one->refused && (info = deltafs_option_at(i)); i++)
        if (option_is_library(one, info->name) && !option_find(one, info->name, 0))
            printf("--%s=\n", info->name);
    return EXIT_OK;
}

static int help(const struct program *p, const char *topic)
{
    char what[192];

    if (topic && strcmp(topic, "options") != 0 && !command_find(p, topic)) {
        say_unknown(p, "no help on", topic, "there is help on", what, sizeof what);
        return fail_command(p, what, "options");
    }
    if (text_is_silent)
        return EXIT_OK;
    if (!topic)
        help_all(p);
    else if (strcmp(topic, "options") == 0)
        help_options();
    else
        help_command(command_find(p, topic));
    return EXIT_OK;
}

/* ---- Running ---- */

int cmd_each(const struct command_call *c, command_each *each)
{
    int code = EXIT_OK;

    for (int i = 0; i < c->count; i++) {
        int one = each(c->values, text_path(c->operand[i]));
        code = one != EXIT_OK ? one : code;
    }
    return code;
}

static int run(const struct program *p, const struct command *c, int argc, char **argv)
{
    struct command_call call = {.values = calloc(1, c->size + 1), .operand = argv};
    struct parser parser = {c, &call, argv, argc, 0};
    int code = call.values ? EXIT_OK : text_fail(EXIT_TROUBLE, "%s: no memory", c->name);

    if (code == EXIT_OK && c->refused && deltafs_options_create(&call.options) != DELTAFS_OK)
        code = text_fail(EXIT_USAGE, "%s: %s", c->name, deltafs_errmsg(NULL));
    if (code == EXIT_OK)
        code = parse(&parser);
    /* The environment may be wrong, or memory short, on one rank alone. */
    if (p->agree)
        code = p->agree(code);
    if (code == EXIT_OK)
        code = c->run ? c->run(&call) : cmd_each(&call, c->each);
    if (code == EXIT_USAGE && !text_is_silent)
        fprintf(stderr, "Try '%s help %s'.\n", text_program, c->name);
    deltafs_options_destroy(call.options);
    free(call.values);
    return code;
}

/* The command that does the work: another one if an operand is in a namespace. */
static const struct command *command_for(const struct command *c, int argc, char **argv)
{
    int is_end = 0;

    for (int i = 0; c->in_namespace && i < argc; i++) {
        if ((is_end || argv[i][0] != '-') && text_is_in_namespace(argv[i]))
            return c->in_namespace;
        is_end |= strcmp(argv[i], "--") == 0;
    }
    return c;
}

/* A command that consists of others is a program of its own. */
static int dispatch(const struct program *p, int argc, char **argv);

/* Options of the command may come before the name of the one that does the work, which takes them, too. */
static void put_name_first(const struct command *c, int argc, char **argv)
{
    const struct command_option *o;
    int at = 1;

    while (at < argc && strncmp(argv[at], "--", 2) == 0) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[at] + 2, "="), argv[at] + 2);
        o = option_find(c, name, 0);
        if (!o)
            return;
        at += o->parse && !strchr(argv[at], '=') ? 2 : 1;
    }
    if (at >= argc)
        return;
    char *first = argv[at];
    memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof *argv);
    argv[1] = first;
}

static int dispatch_sub(const struct program *p, const struct command *c, int argc, char **argv)
{
    const struct program sub = {.text = c->text, .codes = p->codes, .command = c->sub, .agree = p->agree};
    const char *program = text_program;
    char name[64];

    put_name_first(c, argc, argv);
    snprintf(name, sizeof name, "%s %s", program, c->name);
    text_program = name;
    int code = dispatch(&sub, argc, argv);
    text_program = program;
    return code;
}

/* Whether the command's part does the work, if `name` follows it. */
static int is_for_sub(const struct command *c, const char *name)
{
    const struct program sub = {.command = c->sub};

    return c->sub && (!c->run || (name && command_find(&sub, name)));
}

static int dispatch(const struct program *p, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "", *next = argc > 2 ? argv[2] : NULL;
    const struct command *c = command_find(p, name);
    char what[192];

    if (c && next && (strcmp(next, "--help") == 0 || strcmp(next, "-h") == 0))
        return help(p, name);
    if (c && is_for_sub(c, next))
        return dispatch_sub(p, c, argc - 1, argv + 1);
    if (c)
        return run(p, command_for(c, argc - 2, argv + 2), argc - 2, argv + 2);
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(p, next);
    if (strcmp(name, "--version") == 0) {
        if (!text_is_silent)
            printf("%s %s\n", text_program, deltafs_version());
        return EXIT_OK;
    }
    if (strcmp(name, "--list") == 0)
        return list(p, next);
    say_unknown(p, "no command", name, "there are", what, sizeof what);
    int code = fail_command(p, argc > 1 ? what : "a command is missing; there are", "help");
    if (!text_is_silent)
        fprintf(stderr, "Try '%s help'.\n", text_program);
    return code;
}

int cmd_main(const struct program *p, int argc, char **argv)
{
    int code = dispatch(p, argc, argv), finished = text_finish();

    return finished != EXIT_OK ? finished : code;
}
