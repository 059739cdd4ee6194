# SPDX-License-Identifier: MIT
"""What a seed stands for in the world of ZooKeeper: schedule.py has that of Redis, and what both share.

Which server leads, and at which one the holder is, is seen when a fault's time has come.
"""

import random

from schedule import HOLDERS, NETWORK, WAITERS, Event, Scenario

TICK_MS = 250
SYNC_TICKS = 20  # so long, 5 s, a follower that is cut off from the leader goes on answering
POINTS = {"kill at": 3, "stop at": 3, "lose at": 2, "cut at": 2}
SERVERS = {"kill server": 2, "hang server": 2, "kill leader": 2, "hang leader": 3}
SPLITS = {"cut holder's server": 4, "cut servers": 2, "depose leader": 1}
THEMES = {
    "holders": HOLDERS,
    "queue": WAITERS | POINTS | {"kill dlock": 1, "hang server": 1},
    "network": NETWORK,
    "servers": SERVERS | {"kill dlock": 1},
    "pause": {"hang leader": 1},
    "late": {"hang leader late": 1},
    "split": {"cut holder's server": 1},
    "deposed": {"depose leader": 1},
    "lost": {"lose at": 2, "cut at": 2, "lose": 1, "cut": 1},
    "broken": {"delete": 2, "break": 2, "stop dlock": 1, "cut holder's server": 1},
    "clocks": {"jump client": 3, "partition": 1, "kill dlock": 1},
    "storm": HOLDERS | WAITERS | POINTS | NETWORK | SERVERS | SPLITS | {"break": 1, "jump client": 1},
}
LONG = ("pause", "late", "split", "deposed")  # few faults, each of which lasts for longer than a lease

# Points of the protocol; "connect" is also the first half of a renewal.
STEPS = [f"{kind}-{when}" for kind in ("connect", "multi", "getChildren2", "exists", "setData", "closeSession")
         for when in ("sent", "reply")]
WAYS = ["both", "to leader", "from leader"]


def fault(rng, s, at, what):
    e = Event(round(at, 3), what)
    if what in NETWORK and what != "isolate holder":
        e.nodes = sorted(rng.sample(["n1", "n2", "n3"], rng.choice([1, 1, 2, 3])))
        e.side = rng.choice(["a", "b", "ab"])
    if what == "delay":
        e.amount = round(rng.uniform(0.02, s.node_timeout), 2)
    elif what in ("lose", "cut", "before"):
        e.amount = rng.choice([0.1, 0.3, 1])
    if what == "jump client":
        e.seconds = rng.choice([-7200, -5, 5, 7200, 0])
        return e
    if what.endswith(" at"):
        e.step = rng.choice(STEPS)
    if what == "cut holder's server":
        e.step = rng.choice(WAYS)
    e.bait = s.theme in LONG or what in HOLDERS and rng.random() < 0.6 or what == "isolate holder"
    e.seconds = round(rng.choice([rng.uniform(0.1, 1), rng.uniform(0.5, 2.5)]), 2)
    if what == "depose leader":  # until the new leader has ended the sessions of who is at the old one
        e.seconds = round(s.ttl + rng.uniform(3.5, 5), 2)
    elif what in SPLITS or what == "hang leader":
        e.seconds = round(rng.uniform(1.2, 2.2) * s.ttl, 2)
    elif what == "hang leader late":  # longer than what is left of a lease that was renewed a third of it before
        e.seconds = round(rng.uniform(0.78, 0.86) * s.ttl, 2)
    return e


def scenario(seed, theme=None, seconds=None):
    rng = random.Random(f"zookeeper {seed}")
    chosen = rng.choice(list(THEMES))
    s = Scenario(seed=seed, theme=theme or chosen, nodes=3, seconds=seconds or 20, ttl=rng.choice([2, 3, 4]),
                 node_timeout=rng.choice([0.3, 0.6]), guard=False, contenders=rng.choice([4, 6, 8]),
                 long=rng.choice([0.1, 0.3]), world="zookeeper")
    if s.theme == "late":
        s.ttl = 4
    kinds = THEMES[s.theme]
    rate = 0.3 if s.theme in LONG else rng.choice([0.5, 1, 2])
    at = rng.uniform(0.2, 0.6)
    while at < s.seconds:
        what = rng.choices(list(kinds), list(kinds.values()))[0]
        s.events.append(fault(rng, s, at, what))
        at += max(rng.expovariate(rate), s.events[-1].seconds if s.theme in LONG else 0)
    return s
