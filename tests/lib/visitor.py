#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A command for dlock run that says all the time that it is inside.

    visitor.py FOLDER LONG

It, and a process that it forks, write a line into FOLDER/history about every millisecond: the time (CLOCK_BOOTTIME, in
microseconds) and its fence.  FOLDER/inside says who it is: fence, dlock, command, length of the visit, which is LONG
seconds if FOLDER/linger exists.  Every other one ignores SIGTERM.
"""

import os
import signal
import sys
import time

folder, long = sys.argv[1:]
dlock = os.getppid()
fence = os.environ["DLOCK_FENCE"]
history = os.open(f"{folder}/history", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def live(seconds):
    now = begin = time.clock_gettime(time.CLOCK_BOOTTIME)
    while True:
        os.write(history, f"{now * 1e6:.0f} {fence}\n".encode())
        if now - begin >= seconds:
            return
        time.sleep(0.001)
        now = time.clock_gettime(time.CLOCK_BOOTTIME)


live(0)
if os.getpid() % 2 == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
length = float(long) if os.path.exists(f"{folder}/linger") else 0.02
with open(f"{folder}/inside.{fence}", "w", encoding="ascii") as f:
    f.write(f"{fence} {dlock} {os.getpid()} {length}\n")
if os.fork() == 0:
    live(length * 1.1)
    os._exit(0)
os.rename(f"{folder}/inside.{fence}", f"{folder}/inside")
live(length)
