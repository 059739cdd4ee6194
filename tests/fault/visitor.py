#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command that contenders run under the lock: it says all the time that it is inside.

    visitor.py HISTORY WHO SECONDS CODE MANNERS

It, and a process that it forks and that lives a little longer, write a line into HISTORY every few milliseconds.  A
line is one write(2) to the end of the file, so the order of the lines is the order in which they were written.  If
HISTORY.linger exists it stays for two and a half leases at least.  It ends with the exit status CODE; one of the
MANNERS "stubborn" ignores SIGTERM.
"""

import os
import signal
import sys
import time

BEAT = 0.004


def main():
    path, who, seconds, code, manners = sys.argv[1:]
    fence, token = os.environ["DLOCK_FENCE"], os.environ["DLOCK_TOKEN"]
    history = os.open(path, os.O_WRONLY | os.O_APPEND)

    def say(words):
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        os.write(history, f"{now * 1e6:.0f} {who} {words}\n".encode())
        return now

    def stay(begin, length):
        now = begin
        while now - begin < length:
            time.sleep(BEAT)
            now = say(f"at {fence}")

    length = float(seconds)
    if os.path.exists(f"{path}.linger"):
        length = max(length, 2.5 * int(os.environ["DLOCK_TTL_MS"]) / 1000)
    slot = os.environ.get("DLOCK_SLOT") or 0
    begin = say(f"in {fence} token={token[:8]} slot={slot} command={os.getpid()} dlock={os.getppid()} "
                f"seconds={length:.3f}")
    if manners == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        stay(begin, length * 1.1)
        os._exit(0)
    stay(begin, length)
    say(f"out {code}")
    os._exit(int(code))


main()
