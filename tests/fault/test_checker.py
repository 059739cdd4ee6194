#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checker and made-up histories, good ones and bad ones; and that a seed always means the same."""

import os
import unittest

import checker
import proxy
import schedule
import servers  # where proxy found it
import zk_schedule

BEGIN = "scenario begins seed=1 theme=made-up nodes=3 ttl=1 strict=0"
END = ["scenario calm", "scenario ends"]


def history(*lines):
    """A line each tenth of a second, unless it begins with a time in seconds; a beginning and an end are put to it."""
    out, now = [], 10.0
    for line in [BEGIN, *lines, *END]:
        first, _, rest = line.partition(" ")
        if first.replace(".", "").isdigit():
            now, line = float(first), rest
        now += 0.1
        out.append(f"{now * 1e6:.0f} {line}")
    return out


ALONE = BEGIN.replace("nodes=3", "nodes=1")  # instead of the beginning before it
A, B, C = (f"{who} start run ttl=1 wait=300" for who in ("a.1", "b.1", "c.1"))
A_FINE = ["a.1 out 0", "a.1 end 0 ran fence=5 waited=0.0"]
B_FINE = ["b.1 out 0", "b.1 end 0 ran fence=6 waited=0.1"]
KILLED, LOST = "a.1 end 137 ran fence=5 waited=0.0", "a.1 end 76 lost fence=5 waited=0.0"


def visit(who, fence, code=0, status=None):
    """A visit from its first line to its last."""
    return [f"{who} start run ttl=1 wait=300", f"{who} in {fence} token=T command=1 dlock=2", f"{who} at {fence}",
            f"{who} out {code}", f"{who} end {code if status is None else status} ran fence={fence} waited=0.010"]


def a_in(*lines):
    """What becomes of a.1, once it is inside."""
    return [A, "a.1 in 5 token=A", *lines]


def overlap(*lines):
    """a.1 and b.1 are both inside; between, these lines."""
    return [A, B, "a.1 in 5 token=A", *lines, "b.1 in 6 token=B", "a.1 at 5", *B_FINE]


def slots(a, b, lines):
    """The same with two slots, of which a.1 and b.1 take these."""
    return [f"{BEGIN} slots=2", *(f"{line} slot={a if line[0] == 'a' else b}" if " in " in line else line
                                  for line in lines)]


def shared(*lines):
    """a.1 and c.1 are readers, b.1 is a writer."""
    return [f"{line} shared=1" if " start " in line and line[0] in "ac" else line for line in lines]


def crash(*lines):
    return [A, B, "a.1 in 5 token=A", "11 a.1 hit KILL dlock", "a.1 end -9 -", *lines]


def min_hold(at, *lines):
    """b.1 comes in at that time, after a.1 had the lock from 11 s on for half a second at least."""
    return ["a.1 start run ttl=1 wait=300 min_hold=0.5", "11 a.1 in 5 token=A", *lines, "11.1 a.1 out 0",
            "11.2 a.1 end 0 ran fence=5 waited=0.85", B, f"{at} b.1 in 6 token=B", *B_FINE]


def gave_up(holder, *waiter):
    return [f"a.1 start run ttl=1 wait=300{holder}", "11 a.1 in 5 token=A", "11.1 a.1 out 0",
            "11.2 a.1 end 0 ran fence=5 waited=0", *waiter]


SCRIPT = ["a.1 start script ttl=3 wait=300", "a.1 acquired 0", "a.1 in 5 token=A", "a.1 at 5", "a.1 out 0"]
NESTED = ["a.1 start run ttl=1 wait=300 nested=1", "a.1 in 5 token=A", "n1 trouble"]
GAVE_UP = ["11.3 b.1 start run ttl=1 wait=3", "11.4 b.1 end 75 held waited=0.1"]
SCRIPT_GAVE_UP = ["11.3 b.1 start script ttl=1 wait=3", "11.4 b.1 acquired 75", "11.4 b.1 end 75 script"]
READERS = [A, C, "a.1 in 5 token=A", "c.1 in 5 token=A", "a.1 at 5", "c.1 out 0", "c.1 end 0 ran fence=5 waited=0.1",
           "a.1 at 5", *A_FINE]

# What it is, the word of the complaint ("": there is none), and the lines.
STORIES = (
    ("one after the other", "", *visit("a.1", 5), *visit("b.1", 6)),
    ("two inside", "two inside", *overlap(), LOST),
    *((f"the {what} that was stopped is no excuse", "two inside", *overlap(f"a.1 hit STOP {what}"), LOST)
      for what in ("command", "dlock", "command+dlock")),
    ("the only node was emptied", "", ALONE, *overlap("n1 lost all (emptied)"), LOST),
    ("a guarded node is no excuse", "two inside", ALONE, *overlap("n1 lost metadata (emptied)"), LOST),
    ("one of three is no majority", "two inside", *overlap("n1 lost key (DEL)"), LOST),
    ("one was emptied and another away", "", "n2 trouble", *overlap("n2 well", "n1 lost all (emptied)"), LOST),
    ("one was emptied, another before", "", "n2 lost all (emptied)", *overlap("n1 lost all (emptied)"), LOST),
    ("long before", "two inside", "n2 lost all (emptied)", "20 n1 well", *overlap("n1 lost all (emptied)"), LOST),
    ("trouble without loss is no excuse", "two inside", "n1 trouble", "n2 trouble", "n3 trouble", *overlap(), LOST),
    ("a loss before is no excuse", "two inside", ALONE, "n1 lost all (emptied)", "100 n1 well", *overlap(), LOST),
    ("who was killed may die a little later", "", *a_in("a.1 hit KILL dlock", "a.1 end -9 -", "a.1 at 5")),
    ("the child of a command counts", "after its dlock had ended", *visit("a.1", 5), "a.1 at 5"),

    ("two in two slots", "", *slots(1, 2, overlap()), *A_FINE),
    ("two in one slot", "two inside", *slots(2, 2, overlap()), LOST),
    ("0 though another came into the slot", "b.1 had come in", *slots(2, 2, overlap()), *A_FINE),
    *((f"no slot {slot}", "slots", *slots(1, slot, overlap()), *A_FINE) for slot in (0, 3)),
    ("a slot without slots", "slots", A, "a.1 in 5 token=A slot=1", *A_FINE),
    ("fences grow in each slot", "", *slots(1, 2, visit("b.1", 6) + visit("a.1", 5))),
    ("falling in one slot", "fences", *slots(2, 2, visit("b.1", 6) + visit("a.1", 5))),

    ("readers together", "", *shared(*READERS)),
    ("writers together", "two inside", *READERS),
    ("a writer beside a reader", "two inside", *shared(*overlap(), LOST)),
    ("a killed reader beside another", "", *shared(
        A, C, B, "11 a.1 in 5 token=A", "c.1 in 5 token=A", "a.1 hit KILL dlock", "a.1 end -9 -", "17 c.1 at 5",
        "c.1 out 0", "c.1 end 0 ran fence=5 waited=0.1", "b.1 in 6 token=B", *B_FINE, "30 n1 well")),
    ("fences of readers", "", *shared(*visit("b.1", 4), *visit("a.1", 6), *visit("c.1", 5))),
    ("a reader with the writer's", "fences", *shared(*visit("b.1", 6), *visit("a.1", 6))),
    ("a writer with the reader's", "fences", *shared(*visit("a.1", 6), *visit("b.1", 6))),

    ("equal", "fences", *visit("a.1", 5), *visit("b.1", 5)),
    ("falling", "fences", *visit("a.1", 6), *visit("b.1", 5)),
    ("falling later", "fences", *visit("a.1", 6), *visit("b.1", 7), *visit("c.1", 6)),
    ("wrong clocks are no excuse", "fences", "clients jump +7200", *visit("a.1", 6), *visit("b.1", 5)),
    ("lost metadata is no excuse", "fences", *visit("a.1", 6), "n1 lost metadata (emptied)", *visit("b.1", 5)),
    ("a deleted key is no excuse", "fences", "clients jump +7200", *visit("a.1", 6)[:3], "n1 lost key (DEL)",
     *visit("a.1", 6)[3:], *visit("b.1", 5)),
    ("lost metadata and wrong clocks", "", "clients jump +7200", *visit("a.1", 6)[:3], "n1 lost metadata (emptied)",
     *visit("a.1", 6)[3:], *visit("b.1", 5)),
    ("who got it first but came in later", "", A, B, "n1 lost key (break)", "n2 lost key (break)", "b.1 in 6 token=B",
     "a.1 in 5 token=A", *B_FINE, LOST),
    ("a late write with an equal fence", "a late write", A, B, "a.1 in 5 token=A", "b.1 in 5 token=B", "a.1 at 5",
     "a.1 end 76 lost", "b.1 out 0", "b.1 end 0 ran"),

    *((f"the command's own, {code}", "", *visit("a.1", 5, code)) for code in (0, 7, 69, 75, 76)),
    ("another than the commands", "status", *visit("a.1", 5, 7, 0)),
    ("0 though it never came to its end", "never came to its end", *a_in("a.1 end 0 ran fence=5 waited=0.0")),
    ("a command that was killed", "", *a_in("a.1 hit KILL command", KILLED)),
    ("after its last line", "", *a_in("a.1 out 0", "a.1 hit KILL command", KILLED)),
    ("before its last line was seen", "", *a_in("a.1 hit KILL command", "a.1 out 0", KILLED)),
    ("by a signal to dlock", "", *a_in("a.1 out 0", "a.1 hit TERM dlock", "a.1 end 143 ran fence=5 waited=0.0")),
    ("by nobody", "had ended with 0", *a_in("a.1 out 0", KILLED)),
    ("by another signal", "had ended with 0", *a_in("a.1 out 0", "a.1 hit STOP command", KILLED)),
    ("that had ended otherwise", "had ended with 7", *a_in("a.1 hit KILL command", "a.1 out 7",
                                                           "a.1 end 0 ran fence=5 waited=0.0")),
    ("137 though nobody killed it", "status", *a_in(KILLED)),
    ("0 though another came in", "b.1 had come in", *overlap(), *A_FINE),
    ("0 though another came in after a loss", "b.1 had come in", ALONE, *overlap("n1 lost key (DEL)"), *A_FINE),
    ("75 though it ran", "its command had run", *a_in("a.1 end 75 held fence=0 waited=300.0")),
    ("75 before the wait was over", "waited", A, "a.1 end 75 held fence=0 waited=2.0"),
    ("75 without a wait", "", "a.1 start run ttl=1 wait=0", "a.1 end 75 held fence=0 waited=0.0"),
    ("lost is never 0", "status", "n1 trouble", *a_in("a.1 end 0 lost fence=5 waited=0.0")),
    ("lost for nothing", "for no reason", *a_in(LOST)),
    ("a crash", "nobody had sent", A, "a.1 end -11 -"),
    ("killed by nobody", "nobody had sent", A, "a.1 end -9 -"),
    ("killed while it was stopped", "nobody had sent", A, "a.1 hit STOP dlock at leave-sent", "a.1 end -9 -"),
    ("killed by its timer, on a late machine", "", "machine late 0.05", A, "20 a.1 end -9 -"),
    ("starved", "starved", A, "a.1 hung", "a.1 end -9 -"),
    ("no end", "no end", A),
    ("a script", "", *SCRIPT, "a.1 end 0 script"),
    ("a script with another status", "status", *SCRIPT, "a.1 end 70 script"),
    ("a script beside another", "b.1 had come in", *SCRIPT[:3], *visit("b.1", 6), *SCRIPT[3:], "a.1 end 0 script"),
    ("a script that lost its lock", "", ALONE, *SCRIPT[:3], "n1 lost key (DEL)", *visit("b.1", 6), *SCRIPT[3:],
     "a.1 abandons", "a.1 end 0 script"),
    ("a dlock in between", "", *NESTED, "a.1 end 76 ran fence=5 waited=0"),
    ("75 of one in between", "never came to its end", *NESTED, "a.1 end 75 ran fence=5 waited=0"),
    ("69 of one in between", "", NESTED[0], "a.1 end 69 ran fence=5 waited=0"),
    ("behind --min-hold", "", *min_hold(11.5)),
    ("before its end", "min-hold", *min_hold(11.3)),
    ("before its end, with trouble", "", *min_hold(11.3, "n1 trouble")),
    ("gave up early", "status: ", *gave_up("", *GAVE_UP)),
    ("gave up early, before --min-hold", "", *gave_up(" min_hold=0.5", *GAVE_UP)),
    ("a script gave up early", "status: ", *gave_up("", *SCRIPT_GAVE_UP)),
    ("a script gave up early, before --min-hold", "", *gave_up(" min_hold=0.5", *SCRIPT_GAVE_UP)),

    ("freed in time", "", *crash("12.5 b.1 in 6 token=B", *B_FINE, "30 n1 well")),
    ("freed too late", "not freed", *crash("17 b.1 in 6 token=B", *B_FINE, "30 n1 well")),
    ("not freed while the nodes are away", "", *crash("n1 trouble", "n2 trouble", "17 b.1 in 6 token=B", *B_FINE,
                                                      "30 n1 well", "n2 well")),
    ("a lock is left behind", "left behind", "n1 left the-lock string 400"),
    ("a list is left behind", "left behind", "n1 left {the-lock}:dlock:wake list 400"),
    ("for ever", "for ever", "n1 left {the-lock}:dlock hash -1"),
    ("what may be left", "", "n1 left {the-lock}:dlock hash 3600000", "n1 left {the-lock}:dlock:waiting zset 9000"),
)


class Stories(unittest.TestCase):
    def test_stories(self):
        for name, word, *lines in STORIES:
            with self.subTest(name):
                found = checker.check(history(*lines)).complaints
                self.assertTrue(any(word in complaint for complaint in found) if word else not found,
                                f"{word!r} in {found}")
        self.assertIn("the history has no end", checker.check(history()[:-1]).complaints)


class Others(unittest.TestCase):
    def test_a_seed_means_the_same(self):
        for world in (schedule, zk_schedule):
            for seed in range(50):
                self.assertEqual(str(world.scenario(seed)), str(world.scenario(seed)))
            self.assertEqual({world.scenario(seed).theme for seed in range(200)}, set(world.THEMES))

    def test_messages_are_cut_where_they_end(self):
        whole = b"*3\r\n$4\r\nEVAL\r\n*1\r\n:5\r\n$-1\r\n"
        self.assertEqual(proxy.parse(whole + b"+OK\r\n")[1], len(whole))
        for size in range(len(whole)):
            self.assertIsNone(proxy.parse(whole[:size]))
        self.assertEqual(proxy.parse(b"-ERR no\r\n")[1], 9)

    def test_requests_are_known(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/lua")
        for name in ("acquire", "heal", "leave", "pass", "release", "renew"):
            with open(f"{folder}/{name}.lua", "rb") as file:
                self.assertEqual(proxy.kind_of(servers.bulks(b"EVAL", file.read(), b"1")), name)
        self.assertEqual(proxy.kind_of(b"*1\r\n$5\r\nBLPOP\r\n"), "blpop")


if __name__ == "__main__":
    unittest.main()
