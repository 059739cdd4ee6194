#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run a command on a terminal of its own, as somebody at a keyboard would.

    terminal.py STEP... -- COMMAND [ARG...]

    expect=TEXT    wait until TEXT appears after what was expected before
    send=TEXT      type TEXT; \\n, \\x03 (^C) and so on as in Python
    wait=SECONDS   do nothing for so long
    file=PATH      wait until PATH exists
    hangup         close the terminal

What appeared goes to standard output; the exit status is COMMAND's, 128+n for a signal,
or 99 if a step took longer than a minute, of each look at it 300 ms at most.
"""

import os
import pty
import select
import signal
import sys
import time

LIMIT = 60


class Terminal:
    def __init__(self, command):
        self.seen = b""
        self.read_to = 0
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(command[0], command)

    def more(self, seconds):
        """Read what there is; false at the end."""
        if self.master is None:
            return False
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        self.seen += data
        return bool(data)

    def until(self, condition):
        left, open_ = LIMIT, True
        while not condition():
            if left < 0 or not open_:
                raise TimeoutError
            start = time.monotonic()
            open_ = self.more(0.02)
            left -= min(time.monotonic() - start, 0.3)

    def expect(self, text):
        self.until(lambda: text in self.seen[self.read_to:])
        self.read_to = self.seen.index(text, self.read_to) + len(text)

    def send(self, text):
        os.write(self.master, text)

    def file(self, path):
        self.until(lambda: os.path.exists(path))

    def wait(self, seconds):
        end = time.monotonic() + float(seconds)
        while time.monotonic() < end:
            self.more(0.02)

    def hangup(self, _):
        os.close(self.master)
        self.master = None

    def state(self):
        """What the command does: see proc(5); R computes, D and S wait, T is stopped, Z has ended."""
        with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().strip()

    def end(self):
        """Wait for the command; its status."""
        left = LIMIT
        while left > 0:
            start = time.monotonic()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                while self.more(0.05) and select.select([self.master], [], [], 0)[0]:
                    pass
                return os.waitstatus_to_exitcode(status)
            if not self.more(0.02):
                time.sleep(0.02)
            left -= min(time.monotonic() - start, 0.3)
        raise TimeoutError


def main():
    split = sys.argv.index("--")
    terminal = Terminal(sys.argv[split + 1:])
    step = "the end"
    try:
        for step in sys.argv[1:split]:
            verb, _, text = step.partition("=")
            data = text.encode().decode("unicode_escape").encode("latin-1")
            getattr(terminal, verb)(text if verb == "file" else data)
        step = "the end"
        code = terminal.end()
        code = code if code >= 0 else 128 - code
    except TimeoutError:
        print(f"timed out waiting for: {step} ({terminal.state()})", file=sys.stderr)
        os.kill(terminal.pid, signal.SIGKILL)
        code = 99
    sys.stdout.buffer.write(terminal.seen.replace(b"\r\n", b"\n"))
    sys.stdout.flush()
    sys.exit(code)


main()
