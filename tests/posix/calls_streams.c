/* Part of posix_calls: streams. */
#include "tests/posix/posix_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void say_content(const char *path)
{
    char text[256] = "";
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;

    printf("%s has %zu: %s\n", path, n, f ? text : strerror(errno));
    if (f)
        say("fclose", fclose(f));
}

static void open_modes(void)
{
    static const char *const modes[] = {"r", "w", "a", "r+", "w+", "a+", "wx", "rb", "we", "z", "w+x", "ab+"};
    char text[16];

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        make_file("modes", "12345");
        FILE *f = fopen("modes", modes[i]);
        say_pointer(modes[i], f);
        if (!f)
            continue;
        int fd = fileno(f);
        say("mode of open", fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND));
        say("closed on exec", fcntl(fd, F_GETFD));
        say("at", ftell(f));
        say("read", (long long)fread(text, 1, 2, f));
        say("error", ferror(f) != 0);
        clearerr(f);
        fseek(f, 1, SEEK_SET);
        say("write", fputs("XY", f));
        say("flush", fflush(f));
        say("then at", ftell(f));
        say("fclose", fclose(f));
        say_content("modes");
    }
    say_pointer("fopen of none", fopen("none", "r"));
    say_pointer("fopen of a folder", fopen(".", "w"));
}

static void write_and_look(void)
{
    FILE *f = fopen("stream", "w+");
    struct stat st;
    char line[64];

    fprintf(f, "line %d\nline %d\n", 1, 2);
    fflush(f);
    say("size behind fflush", fstat(fileno(f), &st) == 0 ? st.st_size : -1);
    rewind(f);
    say_text("fgets", fgets(line, sizeof line, f));
    say("ungetc", ungetc('Z', f));
    say_text("fgets", fgets(line, sizeof line, f));
    say("feof", feof(f));
    say("getc", getc(f) == EOF);
    say("feof", feof(f) != 0);
    say("fseek", fseek(f, -3, SEEK_END));
    say("getc", getc(f));
    say("ftell", ftell(f));
    fseek(f, 100, SEEK_SET);
    fputc('!', f);
    say("fclose", fclose(f));
    say("size", stat("stream", &st) == 0 ? st.st_size : -1);
    f = fopen("stream", "r");
    say("setvbuf", setvbuf(f, NULL, _IONBF, 0));
    say("getc", getc(f));
    say("lseek", lseek(fileno(f), 0, SEEK_CUR));
    say("fclose", fclose(f));
}

static void open_descriptors(void)
{
    int fd = open("byfd", O_RDWR | O_CREAT | O_TRUNC, 0644);
    FILE *f = fdopen(fd, "w");

    say("fileno", fileno(f) == fd);
    say("fileno_unlocked", fileno_unlocked(f) == fd);
    fputs("by a descriptor", f);
    say("fclose", fclose(f));
    say("the descriptor", fcntl(fd, F_GETFD));
    say_content("byfd");
    fd = open("byfd", O_RDONLY);
    say_pointer("fdopen for writing", fdopen(fd, "w"));
    f = fdopen(fd, "r");
    say("getc", getc(f));
    fclose(f);
    fd = open("byfd", O_WRONLY);
    f = fdopen(fd, "a");
    fputs(" and more", f);
    fclose(f);
    say_content("byfd");
}

static void open_again(void)
{
    FILE *f = fopen("first", "w");
    char text[16];

    fputs("one", f);
    f = freopen("second", "w", f);
    fputs("two", f);
    say("fclose", fclose(f));
    say_content("first");
    say_content("second");
    f = fopen("first", "r");
    say("getc", getc(f));
    f = freopen("second", "r", f);
    say_text("fgets", fgets(text, sizeof text, f));
    f = freopen("/dev/null", "r", f);
    say("getc", getc(f) == EOF);
    say("fclose", fclose(f));
    f = fopen("/dev/null", "w");
    f = freopen("third", "w", f);
    fputs("three", f);
    fclose(f);
    say_content("third");
}

/* More than what a file of a mount has in memory. */
static void large_streams(void)
{
    FILE *f = fopen("large", "w");
    unsigned long long sum = 0;
    unsigned x;
    int n = 0;

    for (unsigned i = 0; i < 3000000; i++)
        fwrite(&i, sizeof i, 1, f);
    say("fclose", fclose(f));
    f = fopen("large", "r");
    while (fread(&x, sizeof x, 1, f) == 1) {
        sum += x;
        n++;
    }
    say("numbers", n);
    say("sum", (long long)sum);
    say("fseek", fseek(f, 4 * 1234567, SEEK_SET));
    say("fread", (long long)fread(&x, sizeof x, 1, f));
    say("number", x);
    fclose(f);
    unlink("large");
}

void check_streams(void)
{
    open_modes();
    write_and_look();
    open_descriptors();
    open_again();
    large_streams();
    FILE *f = fopen("unclosed", "w");
    fputs("at the end of the program\n", f); /* which the caller looks at */
}
