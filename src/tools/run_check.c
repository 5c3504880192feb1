/* deltafs run --check: what of a program a preloaded library would not see. It looks at the file of the program, or of
 * the interpreter of a script; not at libraries. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "tools/run_parts.h"
#include "tools/text.h"

#define SCRIPTS_MAX 4   /* scripts that are interpreters of scripts; the kernel allows as many */
#define LINE_ROOM   256 /* of the first line of a script, of which the kernel reads as much */

struct check {
    int scripts, escapes;
};

static int check_file(struct check *c, const char *path);

/* ---- Printing ---- */

static void say_escape(struct check *c, const char *path, const char *why)
{
    c->escapes++;
    text_say("%s: %s", path, why);
}

/* ---- Finding ---- */

/* The file that a shell would start. */
static int find(const char *program, char path[static PATH_MAX])
{
    const char *list = getenv("PATH");

    if (strchr(program, '/')) {
        if (snprintf(path, PATH_MAX, "%s", program) < PATH_MAX && access(path, X_OK) == 0)
            return EXIT_OK;
        return text_fail(EXIT_TROUBLE, "run: %s cannot be started: %s", program, strerror(errno));
    }
    for (size_t n; list; list = list[n] != '\0' ? list + n + 1 : NULL) {
        n = strcspn(list, ":");
        int length = snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, list, n > 0 ? "/" : "", program);
        if (length < PATH_MAX && access(path, X_OK) == 0)
            return EXIT_OK;
    }
    return text_fail(EXIT_TROUBLE, "run: %s cannot be started: it is not on the PATH", program);
}

static int check_program(struct check *c, const char *program)
{
    char path[PATH_MAX];
    int code = find(program, path);

    return code == EXIT_OK ? check_file(c, path) : code;
}

/* ---- Scripts ---- */

/* The program that "env ARGUMENT..." starts. */
static const char *program_of_env(char *arguments)
{
    char *rest, *word = strtok_r(arguments, " \t", &rest);

    while (word && (*word == '-' || strchr(word, '='))) {
        int takes_next = strcmp(word, "-u") == 0 || strcmp(word, "-C") == 0;
        if (strncmp(word, "-S", 2) == 0 && word[2] != '\0')
            return word + 2;
        word = strtok_r(NULL, " \t", &rest);
        if (takes_next)
            word = strtok_r(NULL, " \t", &rest);
    }
    return word;
}

/* A script of which `line` is the first line, behind "#!". */
static int check_script(struct check *c, const char *path, char *line)
{
    char *arguments, *name;
    const char *interpreter = strtok_r(line, " \t", &arguments);

    if (!interpreter)
        return text_fail(EXIT_TROUBLE, "run: %s: a script whose first line names no interpreter", path);
    name = strrchr(interpreter, '/');
    if (name && strcmp(name, "/env") == 0)
        interpreter = program_of_env(arguments);
    if (!interpreter)
        return text_fail(EXIT_TROUBLE, "run: %s: a script whose first line names no program for env", path);
    return check_program(c, interpreter);
}

/* ---- Programs ---- */

/* The loader preloads nothing into a program that gets rights by which it differs from its user. */
static int gets_rights(int fd, const struct stat *st)
{
    return ((st->st_mode & S_ISUID) && st->st_uid != getuid()) || ((st->st_mode & S_ISGID) && st->st_gid != getgid()) ||
           (getuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

static int check_binary(struct check *c, const char *path, const struct run_elf *elf)
{
    if (elf->is_foreign) {
        say_escape(c, path, "is for another kind of processor, or of another word size, than DeltaFS");
        return EXIT_OK;
    }
    if (elf->is_go)
        say_escape(c, path, "is a Go program, which calls the kernel without the C library");
    if (elf->is_static) {
        say_escape(c, path, "is linked statically: nothing can be preloaded");
        return EXIT_OK;
    }
    if (!elf->has_libc)
        say_escape(c, path, "does not use the GNU C library (libc.so.6)");
    if (elf->has_io_uring)
        say_escape(c, path, "uses io_uring, by which the kernel reads and writes files without the C library");
    if (elf->has_syscall)
        text_say("%s: calls syscall(): DeltaFS does not see a call that names a file in this way", path);
    return EXIT_OK;
}

static int check_open_file(struct check *c, const char *path, int fd)
{
    struct stat st;
    struct run_elf elf;
    char line[LINE_ROOM];
    const char *wrong = run_elf_read(fd, &elf);
    ssize_t n = pread(fd, line, sizeof line - 1, 0);

    if (n < 0 || fstat(fd, &st) != 0)
        return text_fail(EXIT_TROUBLE, "run: %s: %s", path, strerror(errno));
    if (wrong)
        return text_fail(EXIT_TROUBLE, "run: %s %s", path, wrong);
    line[n] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (elf.is_elf && gets_rights(fd, &st))
        say_escape(c, path,
                   "runs with other rights than its user (setuid, setgid or capabilities): nothing is preloaded");
    if (elf.is_elf)
        return check_binary(c, path, &elf);
    if (c->scripts++ == SCRIPTS_MAX)
        return text_fail(EXIT_TROUBLE, "run: %s: too many scripts that are interpreters of scripts", path);
    return strncmp(line, "#!", 2) == 0 ? check_script(c, path, line + 2) : check_program(c, "/bin/sh");
}

static int check_file(struct check *c, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return text_fail(EXIT_TROUBLE, "run: %s: %s", path, strerror(errno));
    int code = check_open_file(c, path, fd);
    close(fd);
    return code;
}

int run_check(const char *program)
{
    struct check c = {0};
    int code = check_program(&c, program);

    if (code != EXIT_OK)
        return code;
    text_say("%s: %s%s", program, c.escapes > 0 ? "escapes DeltaFS" : "reaches DeltaFS",
             c.scripts > 0 ? "; programs that the script starts were not checked" : "");
    return c.escapes > 0 ? EXIT_NOT_FOUND : EXIT_OK;
}
