# SPDX-License-Identifier: MIT
"""What a lock keeps in Redis: while it is held, while one waits, and when all is over."""

from lib.lab import until
from lib.locks import OnRedis
from lib.waiters import Crowd, Holder, wait_for

STATES = ("held", "held, one waits", "over")


def keys(redis):
    """Of all keys that are there: how many, bytes, seconds to live of the longest; and the names."""
    names = redis.call("KEYS", "*")
    size = sum(redis.call("MEMORY", "USAGE", name) or 0 for name in names)
    return len(names), size, max((redis.call("PTTL", name) for name in names), default=0) / 1000


def look(bench, lock):
    redis, found = lock.servers[0].connection, []
    redis.call("FLUSHALL")
    holder = Holder(bench.lab, lock)
    found.append(keys(redis))
    crowd = Crowd(bench.lab, lock, 1, ("/bin/true",))
    wait_for(lock, 1)
    found.append(keys(redis))
    holder.let_go()
    crowd.end()
    holder.end()
    until(lambda: lock.waiting() in (None, 0, -1), "the end of all")
    found.append(keys(redis))
    return found


def main(bench, report):
    rows = []
    for lock in bench.peers.all():
        if not isinstance(lock, OnRedis) or lock.name == "dlock, TCP":
            continue
        for state, (count, size, seconds) in zip(STATES, look(bench, lock)):
            rows.append([lock.name, state, count, size, f"{seconds:.0f}" if count else "-"])
            report.figure(f"{state} {lock.name}", size)
    report.text("""One Redis of each lock, a key named `key`: how many keys there are, their bytes (MEMORY USAGE), and
        the seconds that the longest of them has to live. What stays behind is the fence's memory and the
        history.""")
    report.table(["lock", "state", "keys", "bytes", "seconds to live"], rows)
