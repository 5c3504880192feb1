"""Signals to "deltafs run": run_signals.py COMMAND...

COMMAND... is "deltafs run ... --"; a shell is started with it.
"""
import os
import pty
import signal
import subprocess
import sys

COMMAND = sys.argv[1:]
LOOP = "echo ready; while :; do sleep 0.01; done"
CAUGHT = "trap 'echo caught; exit 9' HUP INT QUIT TERM USR1 USR2; " + LOOP


def start(script, **more):
    child = subprocess.Popen(COMMAND + ["sh", "-c", script], stdout=subprocess.PIPE, **more)
    line = child.stdout.readline()
    assert line == b"ready\n", line
    return child


def check(what, got, wanted):
    assert got == wanted, f"{what}: {got!r} instead of {wanted!r}"


def sent_to_the_command():
    for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
        number = getattr(signal, "SIG" + name)
        child = start(CAUGHT)
        child.send_signal(number)
        check(f"{name} that is caught", (child.communicate()[0], child.returncode), (b"caught\n", 9))
        child = start(LOOP)
        child.send_signal(number)
        check(f"{name} that kills", (child.communicate()[0], child.returncode), (b"", 128 + number))


def blocked_or_ignored():
    """The program finds the signals as the command did."""
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])

    out = subprocess.run(COMMAND + ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"], preexec_fn=ignore,
                         stdout=subprocess.PIPE, check=True).stdout
    plain = subprocess.run(["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"], preexec_fn=ignore,
                           stdout=subprocess.PIPE, check=True).stdout
    check("signals of the program", out, plain)


def killed():
    """A program does not survive the command: its end closes the pipe."""
    child = start("echo ready; exec sleep 600")
    child.kill()
    child.communicate(timeout=60)


def from_a_terminal():
    """A terminal sends the signal to both; the program gets it once."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(COMMAND[0], COMMAND + ["sh", "-c", "trap 'echo caught; n=x$n' INT; " +
                                         "echo ready; while [ -z \"$n\" ]; do sleep 0.01; done; " +
                                         "for i in 1 2 3 4 5; do sleep 0.01; done; echo end $n; exit 5"])
    text = b""
    sent = False
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # of Linux, at the end
            break
        if not more:
            break
        text += more
        if b"ready" in text and not sent:
            os.write(terminal, b"\x03")
            sent = True
    status = os.waitpid(pid, 0)[1]
    check("Ctrl-C", (b"end x\r\n" in text, os.WIFEXITED(status), os.WEXITSTATUS(status)), (True, True, 5))


sent_to_the_command()
blocked_or_ignored()
killed()
from_a_terminal()
