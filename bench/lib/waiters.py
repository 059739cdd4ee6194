# SPDX-License-Identifier: MIT
"""Holders that let go when they are told to, and crowds that wait for them."""

import os
import random
import subprocess
import time

from lib.lab import Failure, until

# What a waiter of a lock that tells nobody of it gets to begin waiting.
SETTLE = 0.3


class Holder:
    """The lock is held by a command that ends when it is told to."""

    count = 0

    def __init__(self, lab, lock):
        Holder.count += 1
        self.lab, path = lab, lab.path(f"fifo{Holder.count}")
        os.mkfifo(path)
        self.process = lab.start(lock.argv(lab.spawn, "hold", path), stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"held\n":
            raise Failure(f"{lock.name} did not get its lock")
        self.fifo = os.open(path, os.O_WRONLY)
        os.unlink(path)

    def let_go(self):
        os.write(self.fifo, b"\n")

    def end(self):
        """The instant at which the command ended, in nanoseconds."""
        os.close(self.fifo)
        return instant(self.lab.finish(self.process), "freed")


def instant(output, what):
    for line in output.decode().splitlines():
        word, _, value = line.partition(" ")
        if word == what:
            return int(value)
    raise Failure(f"no word of {what}")


def wait_for(lock, count):
    """Until so many wait."""
    if lock.waiting() is None:
        time.sleep(SETTLE)
    else:
        until(lambda: lock.waiting() >= count, f"{count} waiters of {lock.name}")


class Crowd:
    """COUNT processes that want the lock for COMMAND; each has its number in $N."""

    def __init__(self, lab, lock, count, command, gate=False):
        self.lab = lab
        self.process = lab.start([lab.spawn, "many", str(count), *lock.argv(*command)], stdout=subprocess.PIPE,
                                 stdin=subprocess.PIPE if gate else subprocess.DEVNULL, bufsize=0)

    def admit(self):
        """With a gate: the next one may come."""
        self.process.stdin.write(b"\n")

    def pids(self):
        """Of those that are there."""
        pid = self.process.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
                return f.read().split()
        except OSError:
            return []  # not every kernel tells

    def end(self):
        """The instants of the first one's start and the last one's end."""
        output = self.lab.finish(self.process, 600)
        return instant(output, "begun"), instant(output, "ended")


def herd(lab, lock, count, command=("/bin/sleep", "0.001")):
    """Milliseconds from the first one's start to the last one's end, of a crowd that comes to a free lock."""
    begun, ended = Crowd(lab, lock, count, command).end()
    return (ended - begun) / 1e6


def drain(lab, lock, count, command=("/bin/sleep", "0.001"), look=lambda crowd: None):
    """Milliseconds from the end of the holder's command to the last one's end, of a crowd that all waits.

    While all wait, look() is called with the crowd.
    """
    holder = Holder(lab, lock)
    crowd = Crowd(lab, lock, count, command)
    wait_for(lock, count)
    look(crowd)
    holder.let_go()
    _, ended = crowd.end()
    return (ended - holder.end()) / 1e6


def requests(lab, lock, count):
    """Requests to one server for each acquisition of a herd; None where nobody counts."""
    stop = lock.listen()
    herd(lab, lock, count)
    heard = stop()
    return None if heard is None else heard / count / lock.nodes


def order(lab, lock, count):
    """Kendall's tau of coming and being served, of a drain whose crowd came one by one."""
    served, holder = lab.path("served"), Holder(lab, lock)
    crowd = Crowd(lab, lock, count, ("/bin/sh", "-c", f"echo $N >>{served}"), gate=True)
    for i in range(count):
        crowd.admit()
        if lock.waiting() is not None:
            wait_for(lock, i + 1)
        elif i == count - 1 or i % 10 == 0:
            time.sleep(SETTLE)
    holder.let_go()
    crowd.end()
    holder.end()
    with open(served, encoding="ascii") as f:
        came = [int(line) for line in f]
    os.unlink(served)
    inversions = sum(came[j] > came[i] for i in range(count) for j in range(i))
    return 1 - 4 * inversions / (count * (count - 1))


def in_turn(locks, rounds, budget, measure):
    """What measure(lock) returns, for each lock a dictionary by round, in random order within the round.

    A slow lock takes part in each so many'th round.  There are fewer rounds when the budget's seconds are over.
    """
    results, end = {lock.name: {} for lock in locks}, time.monotonic() + budget
    for i in range(rounds):
        if i > 0 and time.monotonic() > end:
            break
        for lock in random.sample(locks, len(locks)):
            if i % min(lock.every, max(rounds // 2, 1)) == 0:
                results[lock.name][i] = measure(lock)
    return results


def ratios(mine, base):
    """Round by round."""
    return [mine[i] / base[i] for i in mine if i in base]
