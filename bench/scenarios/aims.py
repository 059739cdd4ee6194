# SPDX-License-Identifier: MIT
"""What dlock is meant to reach, and whether it did, by the figures that the other scenarios left."""

from lib.report import figures

UNIX, TCP, FIVE = "dlock, unix socket", "dlock, TCP", "dlock, five nodes"
ENSEMBLE = "dlock, ZooKeeper"
LEAST = ["the least, unix socket", "the least, TCP"]

# What, the figures (all have to hold), the most that is allowed, and the figures of a program that does nothing else.
AIMS = [
    ("`run true` on TCP, ratio to flock in pairs", [f"pair C.UTF-8 {TCP}"], 1.08,
     [f"pair C.UTF-8 {LEAST[1]}"]),
    ("`run true` on a unix socket, ratio to flock in pairs", [f"pair C.UTF-8 {UNIX}"], 1.03,
     [f"pair C.UTF-8 {LEAST[0]}"]),
    ("`run true` in pairs, repeated: spread of the ratio in percent", [f"spread {UNIX}", f"spread {TCP}"], 3),
    ("server CPU of acquire and release, ratio to redis-py's form",
     ["server cpu 50 dlock", "server cpu 500 dlock"], 1.5, ["server cpu 50 limit", "server cpu 500 limit"]),
    ("time of acquire and release on a busy server, ratio to redis-py's form",
     ["server time 50 dlock", "server time 500 dlock"], 68 / 60, ["server time 50 limit", "server time 500 limit"]),
    ("five nodes, ratio to one", ["to one: five nodes"], 1.3),
    ("one hung of five, ratio to healthy", ["to five: five, one hung"], 1.1),
    ("two hung of five, ratio to healthy", ["to five: five, two hung"], 1.1),
    ("one refused of five, ratio to healthy", ["to five: five, one refused"], 1.1),
    ("two refused of five, ratio to healthy", ["to five: five, two refused"], 1.1),
    ("hand-off on a unix socket, ratio to flock", [f"handoff {UNIX}"], 1.1, [f"handoff {LEAST[0]}"]),
    ("hand-off on TCP, ratio to flock", [f"handoff {TCP}"], 1.1, [f"handoff {LEAST[1]}"]),
    ("200 contenders at once, ratio to flock", [f"herd 200 {UNIX}", f"herd 200 {TCP}"], 1.15,
     [f"herd 200 {name}" for name in LEAST]),
    ("200 in line, ratio to flock", [f"drain 200 {UNIX}", f"drain 200 {TCP}"], 1.1,
     [f"drain 200 {name}" for name in LEAST]),
    ("200 in line, requests each", [f"requests 200 {UNIX}", f"requests 200 {TCP}", f"requests 200 {FIVE}"], 4.0,
     [f"requests 200 {name}" for name in LEAST]),
    ("500 waiting, time for each against 200", [f"flat 500 {UNIX}", f"flat 500 {TCP}"], 1.1),
    ("2,000 waiting, time for each against 200", [f"flat 2000 {UNIX}", f"flat 2000 {TCP}"], 1.1),
    ("10,000 waiting, time for each against 200", [f"flat 10000 {UNIX}", f"flat 10000 {TCP}"], 1.1),
    ("holding, KiB resident", [f"holding rss {name}" for name in (UNIX, TCP, FIVE)], 2048,
     [f"holding rss {name}" for name in LEAST]),
    ("holding, KiB proportional", [f"holding pss {name}" for name in (UNIX, TCP, FIVE)], 300,
     [f"holding pss {name}" for name in LEAST]),
    ("waiting, KiB resident", [f"waiting rss {name}" for name in (UNIX, TCP, FIVE)], 2048,
     [f"waiting rss {name}" for name in LEAST]),
    ("waiting, KiB proportional", [f"waiting pss {name}" for name in (UNIX, TCP, FIVE)], 300,
     [f"waiting pss {name}" for name in LEAST]),
    ("`run true` on ZooKeeper, ratio to etcdctl lock", [f"zookeeper wall {ENSEMBLE}"], 0.45),
    ("hand-off on ZooKeeper, ratio to etcdctl lock", [f"zookeeper handoff {ENSEMBLE}"], 0.7),
    ("50 in line on ZooKeeper, ratio to etcdctl lock", [f"zookeeper line {ENSEMBLE}"], 1.1),
    ("holding on ZooKeeper, KiB resident", [f"zookeeper rss {ENSEMBLE}"], 2048),
    ("holding on ZooKeeper, KiB proportional", [f"zookeeper pss {ENSEMBLE}"], 260),
]


def shown(value):
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def cell(values):
    return "not measured" if None in values else ", ".join(map(shown, values))


def main(bench, report):
    measured, rows = figures(bench.options.out), []
    for what, names, most, *least in AIMS:
        found = [measured.get(name) for name in names]
        limits = [measured.get(name) for name in sum(least, [])]
        reached = "not measured" if None in found else "reached" if max(found) <= most else "**not reached**"
        if reached == "**not reached**" and limits and None not in limits and max(limits) > most:
            reached += "; the limit is above it"
        rows.append([what, f"at most {shown(most)}", cell(found), cell(limits) if limits else "-", reached])
    for name in (UNIX, TCP, FIVE):
        bursts, renewals = measured.get(f"holding bursts {name}"), measured.get(f"holding requests {name}")
        reached = "not measured" if renewals is None else "reached" if bursts <= renewals else "**not reached**"
        rows.append([f"{name}: how often it wakes while holding", "the renewals" if renewals is None else
                     f"the {renewals:.0f} renewals", "-" if bursts is None else bursts, "-", reached])
    report.text("""Medians of ratios in one run. Where there are several figures, they are in the order of unix socket,
        TCP, five nodes, and the worst counts. What a lock takes of memory is that of all its processes. The limit is
        what a program takes that does nothing else, and has none of dlock's safety: `bench/least.c`, or for the server
        the cheaper one of two forms of the smallest scripts. "-": there is no such program.""")
    report.table(["aim", "wanted", "measured", "the limit", ""], rows)
