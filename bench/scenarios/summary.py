# SPDX-License-Identifier: MIT
"""In short."""

from lib.plot import number
from lib.report import figures

NAMES = ("flock", "dlock, unix socket", "dlock, TCP", "dlock, five nodes", "redis-cli script", "etcdctl lock",
         "redis-py", "node-redlock", "kazoo, ZooKeeper")
COLUMNS = (
    ("`true` under it, ms", "ms"),
    ("ratio to flock", "wall"),
    ("CPU ms", "cpu"),
    ("hand-off ms", "handoff ms"),
    ("ms each, 50 in line", "each 50"),
    ("requests each", "requests 50"),
    ("KiB PSS, holding", "holding pss"),
    ("waiting", "waiting pss"),
)


def main(bench, report):
    measured = figures(bench.options.out)
    rows = []
    for name in NAMES:
        cells = [measured.get(f"{what} {name}") for _, what in COLUMNS]
        if any(cell is not None for cell in cells):
            rows.append([name, *("-" if cell is None else number(cell) for cell in cells)])
    report.text("Medians; what each means is with its table below.")
    report.table(["lock", *(head for head, _ in COLUMNS)], rows)
