/* Starting the program of "deltafs run", and waiting for its end. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/run_parts.h"
#include "tools/text.h"

/* A shell's exit status for a program that a signal has killed. */
#define KILLED 128

int run_become(char **argv)
{
    execvp(argv[0], argv);
    return text_fail(EXIT_TROUBLE, "run: %s cannot be started: %s", argv[0], strerror(errno));
}

/* In the child: as this process was found. It does not survive this process, so that a launcher that kills the one
 * process that it knows ends the program. */
static _Noreturn void start(char **argv, pid_t parent, const sigset_t *mask, const struct sigaction *on_child)
{
    sigaction(SIGCHLD, on_child, NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(getppid() == parent ? run_become(argv) : KILLED + SIGKILL);
}

/* Wait for the child, and pass on the signals that were sent to this process alone. A terminal sends its own to the
 * child, too. */
static int wait_for(pid_t child, const sigset_t *signals)
{
    siginfo_t info;
    int status = 0;

    while (waitpid(child, &status, WNOHANG) == 0)
        if (sigwaitinfo(signals, &info) > 0 && info.si_signo != SIGCHLD && info.si_code <= 0)
            kill(child, info.si_signo);
    return WIFSIGNALED(status) ? KILLED + WTERMSIG(status) : WEXITSTATUS(status);
}

int run_and_wait(char **argv)
{
    static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD};
    const struct sigaction by_default = {.sa_handler = SIG_DFL};
    struct sigaction on_child;
    sigset_t signals, mask;
    pid_t self = getpid();

    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        sigaddset(&signals, passed[i]);
    sigprocmask(SIG_BLOCK, &signals, &mask);
    sigaction(SIGCHLD, &by_default, &on_child);
    pid_t child = fork();
    if (child == 0)
        start(argv, self, &mask, &on_child);
    int code = child > 0 ? wait_for(child, &signals)
                         : text_fail(EXIT_TROUBLE, "run: %s cannot be started: %s", argv[0], strerror(errno));
    sigprocmask(SIG_SETMASK, &mask, NULL);
    return code;
}
