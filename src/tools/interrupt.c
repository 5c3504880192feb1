#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tools/interrupt.h"
#include "tools/text.h"

/* The message, and room for the next one: a signal may come at any time. */
static char messages[2][1024];
static const char *_Atomic shown = messages[0];
static int is_set;

static void interrupt_handle(int signal_number)
{
    const char *message = shown;
    ssize_t written = write(STDERR_FILENO, message, strlen(message));

    (void)written;
    raise(signal_number); /* whose action is the default again */
}

static void interrupt_set(const struct sigaction *action)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction old;

    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], action, NULL);
}

void interrupt_say(const char *fmt, ...)
{
    const struct sigaction action = {.sa_handler = interrupt_handle, .sa_flags = (int)SA_RESETHAND};
    char text[900], *message = messages[shown == messages[0]];
    va_list args;

    if (text_is_silent)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(message, sizeof messages[0], "\n%s: %s\n", text_program, text);
    shown = message;
    if (!is_set)
        interrupt_set(&action);
    is_set = 1;
}

void interrupt_end(void)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};

    if (!text_is_silent)
        interrupt_set(&action);
    is_set = 0;
}
