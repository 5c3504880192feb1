/* Part of posix_functions: streams. */
#include "tests/posix/posix_functions.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void show_stream(const char *what, FILE *f)
{
    printf("%s: %s\n", what, f ? "a stream" : strerror(errno));
    errno = 0;
}

void stream_modes(void)
{
    static const char *const modes[] = {"r", "r+", "w", "w+", "a", "a+", "wx", "we", "rb+", "q"};

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        char text[8] = "";
        make_file("mode", "0123456789");
        FILE *f = fopen("mode", modes[i]);
        show_stream(modes[i], f);
        if (!f)
            continue;
        SHOW(ftell(f));
        SHOW(fread(text, 1, 3, f));
        printf("%s, end %d, error %d\n", text, feof(f), ferror(f));
        clearerr(f);
        SHOW(fseek(f, 0, SEEK_CUR));
        SHOW(fputs("text", f) >= 0);
        SHOW(fflush(f));
        SHOW(ftell(f));
        SHOW(fcntl(fileno(f), F_GETFL) & (O_ACCMODE | O_APPEND));
        SHOW(fclose(f));
        show_file("mode");
    }
}

void stream_calls(void)
{
    char text[32] = "", *line = NULL;
    size_t room = 0;
    struct stat st;
    FILE *f = fopen("stream", "w+");
    fpos_t place;

    SHOW(fprintf(f, "line %d\nline %d\n", 1, 2));
    show("bytes before fflush", fstat(fileno(f), &st) == 0 ? st.st_size : -1);
    SHOW(fflush(f));
    show("bytes behind fflush", fstat(fileno_unlocked(f), &st) == 0 ? st.st_size : -1);
    rewind(f);
    SHOW(getline(&line, &room, f));
    SHOW(fgetpos(f, &place));
    SHOW(ungetc('x', f));
    SHOW(ungetc('y', f) != EOF);
    SHOW(fgetc(f));
    SHOW(fgetc(f));
    SHOW(ftell(f));
    SHOW(fgets(text, sizeof text, f) != NULL);
    printf("%s", text);
    SHOW(fgetc(f));
    SHOW(feof(f));
    SHOW(fsetpos(f, &place));
    SHOW(fgetc(f));
    SHOW(fseeko(f, -2, SEEK_END));
    SHOW(fputs("3\nmore\n", f) >= 0);
    SHOW(ftello(f));
    SHOW(fseek(f, -100, SEEK_SET));
    SHOW(dprintf(fileno(f), "%s", ""));
    SHOW(fclose(f));
    show_file("stream");
    f = fopen("stream", "a");
    SHOW(setvbuf(f, NULL, _IONBF, 0));
    SHOW(fputs("unbuffered", f) >= 0);
    show_file("stream");
    SHOW(setvbuf(f, text, _IOLBF, sizeof text));
    SHOW(fputs("line\nrest", f) >= 0);
    show_file("stream");
    SHOW(fclose(f));
    int fd = open("stream", O_RDWR);
    show_stream("fdopen", fdopen(-1, "r"));
    show_stream("fdopen", fdopen(fd, "x"));
    f = fdopen(fd, "r+");
    SHOW(fileno(f) == fd);
    SHOW(fscanf(f, "line %d", &fd));
    SHOW(fclose(f));
    fd = open("stream", O_RDONLY);
    show_stream("fdopen to write", fdopen(fd, "w"));
    f = fdopen(fd, "r");
    SHOW(fputc('x', f));
    SHOW(fseek(f, 5, SEEK_SET));
    SHOW(fgetc(f));
    SHOW(lseek(fd, 0, SEEK_CUR) >= 6);
    SHOW(fclose(f));
    fd = open("stream", O_WRONLY);
    f = fdopen(fd, "a");
    SHOW(fcntl(fd, F_GETFL) & O_APPEND);
    SHOW(fputs("added", f) >= 0);
    SHOW(fclose(f));
    show_file("stream");
    fd = open("stream", O_WRONLY | O_TRUNC);
    SHOW(dprintf(fd, "%s %d\n", "formatted", 7));
    SHOW(close(fd));
    show_file("stream");
    f = fopen(".", "r");
    SHOW(fgetc(f));
    SHOW(fclose(f));
    show_stream("fopen to write a folder", fopen(".", "w"));
    show_stream("fopen of nothing", fopen("absent", "r"));
    free(line);
}

void large_stream(void)
{
    unsigned number[1000];
    size_t wrong = 0, n = 0;

    make_large("large");
    FILE *f = fopen("large", "r+");
    for (unsigned i = 0; (n = fread(number, sizeof *number, 1000, f)) > 0; i += (unsigned)n)
        for (size_t j = 0; j < n; j++)
            wrong += number[j] != i + j;
    SHOW(wrong);
    for (unsigned i = 0; i < 100; i++) {
        long at = (long)(i * 7919 % (LARGE / 4)) * 4;
        wrong += fseek(f, at, SEEK_SET) != 0 || fread(number, sizeof *number, 3, f) != 3 || number[0] != at / 4;
    }
    SHOW(wrong);
    SHOW(fseek(f, 4000000, SEEK_SET));
    SHOW(fwrite("changed", 1, 7, f));
    SHOW(fseek(f, 3999996, SEEK_SET));
    SHOW(fread(number, sizeof *number, 4, f));
    printf("%u %.7s %u\n", number[0], (char *)&number[1], number[3]);
    SHOW(fclose(f));
    SHOW(remove("large"));
    f = fopen("written", "w");
    for (unsigned i = 0; i < 1000000; i++)
        wrong += fwrite(&i, sizeof i, 1, f) != 1;
    SHOW(fclose(f));
    f = fopen("written", "r");
    for (unsigned i = 0; i < 1000000; i++)
        wrong += fread(number, sizeof *number, 1, f) != 1 || number[0] != i;
    SHOW(fgetc(f));
    SHOW(fclose(f));
    SHOW(wrong);
}

void opening_again(void)
{
    char text[16] = "";
    FILE *f;

    make_file("again", "first line\n");
    make_file("other", "another line\n");
    f = fopen("again", "r");
    SHOW(fgetc(f));
    f = freopen("other", "r", f);
    SHOW(fgets(text, sizeof text, f) != NULL);
    printf("%s", text);
    f = freopen("other", "w", f);
    SHOW(fputs("written\n", f) >= 0);
    f = freopen("other", "a+", f);
    SHOW(fputs("added\n", f) >= 0);
    SHOW(fseek(f, 0, SEEK_SET));
    SHOW(fgets(text, sizeof text, f) != NULL);
    printf("%s", text);
    SHOW(fclose(f));
    show_file("other");
    f = fopen("other", "w");
    SHOW(fputs("once\n", f) >= 0);
    f = freopen(NULL, "r", f);
    SHOW(f && fgets(text, sizeof text, f) != NULL);
    printf("%s", text);
    f = freopen("/dev/null", "r", f);
    SHOW(fgetc(f));
    f = freopen("other", "r+", f);
    SHOW(fgetc(f));
    SHOW(fseek(f, 0, SEEK_END));
    SHOW(fputs("twice\n", f) >= 0);
    show_stream("freopen of nothing", freopen("absent", "r", f));
    show_file("other");
    f = fopen("/dev/null", "r");
    f = freopen("again", "r", f);
    SHOW(fgets(text, sizeof text, f) != NULL);
    SHOW(fclose(f));
    /* Two streams add to one file. */
    FILE *first = freopen("other", "a", fopen("/dev/null", "w")),
         *second = freopen("other", "a", fopen("/dev/null", "w"));
    SHOW(fputs("first\n", first) >= 0);
    SHOW(fputs("second\n", second) >= 0);
    SHOW(fclose(second));
    SHOW(fclose(first));
    show_file("other");
    f = freopen("other", "w", fopen("/dev/null", "w"));
    SHOW(fputs("0123456789", f) >= 0);
    SHOW(fseek(f, 3, SEEK_SET));
    SHOW(fputs("seek", f) >= 0);
    SHOW(fclose(f));
    show_file("other");
    make_large("large");
    f = freopen("large", "r", fopen("/dev/null", "r"));
    SHOW(fseek(f, 5000000, SEEK_SET));
    SHOW(fread(text, 1, 4, f));
    printf("%u\n", *(unsigned *)(void *)text);
    SHOW(fclose(f));
}
