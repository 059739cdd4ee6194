# SPDX-License-Identifier: MIT
"""What a seed stands for: the terms of a scenario, and its faults in the order of their times.

The same seed is the same scenario for ever on this version of the file.  When exactly who holds the lock is up to the
machine; so "the holder" of a fault is whoever is inside when its time has come.
"""

import dataclasses
import random

# The faults of each theme, with their weights.
HOLDERS = {"kill dlock": 2, "kill command": 1, "kill both": 1, "stop dlock": 3, "stop command": 2, "stop both": 4,
           "end dlock": 1}
WAITERS = {"kill waiter": 3, "stop waiter": 2, "end waiter": 2}
POINTS = {"kill at": 3, "stop at": 3, "lose at": 1, "cut at": 1}
NETWORK = {"partition": 4, "isolate holder": 3, "delay": 1, "lose": 2, "cut": 1, "before": 1}
NODES = {"kill node": 2, "hang node": 2}
THEMES = {
    "holders": HOLDERS,
    "queue": WAITERS | POINTS | {"kill dlock": 1, "hang node": 1},
    "handoff": {"stop at": 4, "kill at": 1, "partition": 2},
    "network": NETWORK,
    "nodes": NODES | {"kill dlock": 1},
    "guard": {"empty node": 3, "kill node": 1, "partition": 2, "kill dlock": 1, "stop dlock": 1},
    "loss": {"empty node": 2, "delete": 2, "break": 2, "partition": 1, "stop dlock": 1},
    "clocks": {"jump client": 3, "jump node": 3, "partition": 1, "kill dlock": 1},
    "rotate": {},
    "strict": {"lose": 2, "cut": 2, "delay": 1, "lose at": 2, "cut at": 2},
    "idle": {"close idle": 1},
    "mixed": HOLDERS | WAITERS | POINTS | NETWORK | NODES | {"jump client": 1},
    "storm": HOLDERS | WAITERS | POINTS | NETWORK | NODES |
             {"empty node": 1, "delete": 1, "break": 1, "jump client": 1, "jump node": 1},
}
OFTEN = ["mixed", "queue", "holders", "network", "guard"]  # twice as often as the others

# Points of the protocol: what is sent on, and what is answered.
STEPS = ["acquire-sent", "acquire-reply", "blpop-sent", "blpop-reply", "release-sent", "release-reply", "renew-sent",
         "renew-reply", "leave-sent", "leave-reply"]
HANDOFF_STEPS = ["blpop-reply", "blpop-reply", "acquire-sent"]


@dataclasses.dataclass
class Event:
    at: float
    what: str
    seconds: float = 0  # how long it lasts, or by how much a clock jumps
    nodes: list = dataclasses.field(default_factory=list)
    side: str = ""
    step: str = ""
    amount: float = 0  # how slow, or how likely
    bait: bool = False  # it waits for a holder that stays for longer than its lease

    def __str__(self):
        words = [self.what, self.step, "(a long visit)" if self.bait else ""]
        words += ["/".join(self.nodes)] if self.nodes else []
        words += [f"for side {self.side}"] if self.side else []
        if self.amount:
            words += [f"by {self.amount:.2f} s" if self.what == "delay" else
                      f"after {self.amount:.2f} s" if self.what == "close idle" else f"({self.amount:.0%})"]
        if self.what.startswith("jump"):
            words += [f"by {self.seconds:+g} s"]
        elif self.seconds:
            words += [f"for {self.seconds:.2f} s"]
        return f"{self.at:7.3f} s  " + " ".join(word for word in words if word)


@dataclasses.dataclass
class Scenario:
    seed: int
    theme: str
    nodes: int
    seconds: float  # how long there are faults
    ttl: float
    node_timeout: float
    guard: bool
    contenders: int
    long: float  # the share of visits that have to be renewed
    world: str = "redis"
    slots: int = 0  # 0: one lock
    shared: bool = False  # most contenders are readers
    asks: bool = False  # contenders use --replace, and an operator --ask
    events: list = dataclasses.field(default_factory=list)

    @property
    def guard_seconds(self):
        """At least the longest lease."""
        return max(self.ttl, 3) if self.guard else 0

    @property
    def strict(self):
        """Nobody is killed, and the leases outlive the scenario: who fails has to clean up."""
        return self.theme in ("strict", "idle")

    @property
    def visit(self):
        """How long a usual visit lasts, from and to: in the theme idle longer than a connection may be idle."""
        return (0.2, 0.5) if self.theme == "idle" else (0.01, 0.08)

    def __str__(self):
        head = (f"seed {self.seed}: {self.theme}, {self.nodes} nodes{' of ZooKeeper' * (self.world == 'zookeeper')}, lease {self.ttl:g} s, node timeout "
                f"{self.node_timeout:g} s, {self.contenders} contenders, "
                f"{self.long:.0%} long visits" +
                (f", restart guard {self.guard_seconds:g} s" if self.guard else "") +
                (f", {self.slots} slots" if self.slots else "") + ", readers and writers" * self.shared +
                ", holders are asked to end" * self.asks)
        return "\n".join([head] + [str(event) for event in self.events])


def some_nodes(rng, count):
    """Mostly a minority (one, if there is but one)."""
    minority = max((count - 1) // 2, 1)
    most = minority if rng.random() < 0.7 else count
    return sorted(rng.sample([f"n{i + 1}" for i in range(count)], rng.randint(1, most)))


def fault(rng, scenario, at, what):
    e = Event(round(at, 3), what)
    if what in ("partition", "delay", "lose", "cut", "before", "kill node", "hang node", "empty node", "delete",
                "jump node"):
        e.nodes = some_nodes(rng, scenario.nodes)
    if e.nodes and what in NETWORK:
        e.side = rng.choice(["a", "b", "ab"])
        if what == "partition" and rng.random() < 0.3:  # one side is alone
            e.nodes, e.side = [f"n{i + 1}" for i in range(scenario.nodes)], rng.choice("ab")
    if what == "delay":
        e.amount = round(rng.uniform(0.02, 1.5 * scenario.node_timeout), 2)
    elif what in ("lose", "cut", "before"):
        e.amount = rng.choice([0.1, 0.3, 1])
    elif what == "close idle":  # after so long; dlock counts one as idle after 0.1 s
        e.nodes, e.side, e.amount = [f"n{i + 1}" for i in range(scenario.nodes)], "ab", rng.choice([0.12, 0.2, 0.3])
    if what == "jump client":
        e.seconds = rng.choice([-7200, -5, 5, 7200, 0])
    elif what == "jump node":
        e.seconds = rng.choice([-1, -1, 5, 7200])  # back is how much longer leases last: not much
    elif what.endswith(" at"):
        e.step = rng.choice(HANDOFF_STEPS if scenario.theme == "handoff" else STEPS)
    if what in HOLDERS or what in ("isolate holder", "empty node"):
        e.bait = rng.random() < 0.6
    if what == "empty node" and e.bait:
        e.nodes, e.seconds = [f"n{i + 1}" for i in range(scenario.nodes // 2 + 1)], round(rng.uniform(0.02, 0.3), 2)
        return e
    length = rng.choice([rng.uniform(0.1, 1.0), rng.uniform(0.5, 2.5)])
    if what.startswith(("stop", "isolate")) or e.nodes and not what.startswith(("jump", "delete")):
        e.seconds = round(length, 2)
    return e


def rotation(rng, scenario):
    """Another node is away for each visit, so that each majority differs from the one before; clocks are wrong."""
    at = 0.1
    scenario.events.append(Event(0.0, "jump client", 7200))
    while at < scenario.seconds:
        scenario.events.append(Event(round(at, 3), "partition", 0.3, [f"n{rng.randint(1, scenario.nodes)}"], "ab"))
        if rng.random() < 0.2:
            scenario.events.append(Event(round(at, 3), "jump client", rng.choice([-7200, 0, 7200])))
        at += 0.3


def scenario(seed, theme=None, nodes=None, seconds=None):
    rng = random.Random(seed)
    themes = list(THEMES) + OFTEN
    chosen = rng.choice(themes)
    theme = theme or chosen
    count = rng.choice([1, 3, 3, 3, 5])
    strict = theme in ("strict", "idle")
    s = Scenario(seed=seed, theme=theme, nodes=nodes or (3 if theme == "rotate" and count == 1 else count),
                 seconds=seconds or 10, ttl=600 if strict else rng.choice([1, 1, 1, 2]),
                 node_timeout=2 if strict else rng.choice([0.2, 0.4]),
                 guard=theme == "guard", contenders=rng.choice([4, 6, 10]), long=rng.choice([0, 0.1, 0.3]))
    if strict or theme == "rotate":
        s.long = 0
    if theme == "rotate":
        rotation(rng, s)
        return s
    kinds = THEMES[theme]
    rate = rng.choice([0.5, 1, 2]) * {"queue": 2, "handoff": 2, "guard": 0.5}.get(theme, 1)
    at = rng.uniform(0.2, 0.6)
    while at < s.seconds:
        what = rng.choices(list(kinds), list(kinds.values()))[0]
        s.events.append(fault(rng, s, at, what))
        at += rng.expovariate(rate)
    return s
