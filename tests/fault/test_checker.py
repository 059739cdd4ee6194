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


def history(*lines, nodes=3):
    """A line each tenth of a second, unless it begins with a time in seconds; a beginning and an end are put to it."""
    out, now = [], 10.0
    for line in [BEGIN.replace("nodes=3", f"nodes={nodes}"), *lines, *END]:
        first, _, rest = line.partition(" ")
        if first.replace(".", "").isdigit():
            now, line = float(first), rest
        now += 0.1
        out.append(f"{now * 1e6:.0f} {line}")
    return out


def complaints(*lines, nodes=3):
    return checker.check(history(*lines, nodes=nodes)).complaints


START = {who: f"{who} start run ttl=1 wait=300" for who in ("a.1", "b.1", "c.1")}


def visit(who, fence, code=0, status=None):
    """A visit from its first line to its last."""
    return [START[who], f"{who} in {fence} token=T command=1 dlock=2", f"{who} at {fence}", f"{who} out {code}",
            f"{who} end {code if status is None else status} ran fence={fence} waited=0.010"]


class Judged(unittest.TestCase):
    def assert_fine(self, *lines, nodes=3):
        self.assertEqual(complaints(*lines, nodes=nodes), [])

    def assert_found(self, word, *lines, nodes=3):
        found = complaints(*lines, nodes=nodes)
        self.assertTrue(any(word in complaint for complaint in found), f"no {word!r} in {found}")

    # Two are inside; and how the first one has to end then.
    overlap = [START["a.1"], START["b.1"], "a.1 in 5 token=A", "b.1 in 6 token=B", "a.1 at 5", "b.1 out 0",
               "b.1 end 0 ran fence=6 waited=0.1"]
    ended = "a.1 end 76 lost fence=5 waited=0.0"


class Stories(Judged):
    # What it is, the word of the complaint ("": there is none), and the lines.
    STORIES = (
        ("one after the other", "", *visit("a.1", 5), *visit("b.1", 6)),
        ("two inside", "two inside", *Judged.overlap, Judged.ended),
        ("who was killed may die a little later", "", START["a.1"], "a.1 in 5 token=A", "a.1 hit KILL dlock",
         "a.1 end -9 -", "a.1 at 5"),
        ("equal", "fences", *visit("a.1", 5), *visit("b.1", 5)),
        ("falling", "fences", *visit("a.1", 6), *visit("b.1", 5)),
        ("falling later", "fences", *visit("a.1", 6), *visit("b.1", 7), *visit("c.1", 6)),
        ("wrong clocks are no excuse", "fences", "clients jump +7200", *visit("a.1", 6), *visit("b.1", 5)),
        ("lost metadata is no excuse", "fences", *visit("a.1", 6), "n1 lost metadata (emptied)", *visit("b.1", 5)),
        ("who got it first but came in later", "", START["a.1"], START["b.1"], "n1 lost key (break)",
         "n2 lost key (break)", "b.1 in 6 token=B", "a.1 in 5 token=A", "b.1 out 0",
         "b.1 end 0 ran fence=6 waited=0.1", "a.1 end 76 lost fence=5 waited=0.1"),
        ("a late write with an equal fence", "a late write", START["a.1"], START["b.1"], "a.1 in 5 token=A",
         "b.1 in 5 token=B", "a.1 at 5", "a.1 end 76 lost", "b.1 out 0", "b.1 end 0 ran"),
        ("another than the commands", "status", *visit("a.1", 5, 7, 0)),
        ("0 though it never came to its end", "never came to its end", START["a.1"], "a.1 in 5 token=A",
         "a.1 end 0 ran fence=5 waited=0.0"),
        ("a command that was killed", "", START["a.1"], "a.1 in 5 token=A", "a.1 hit KILL command",
         "a.1 end 137 ran fence=5 waited=0.0"),
        ("137 though nobody killed it", "status", START["a.1"], "a.1 in 5 token=A",
         "a.1 end 137 ran fence=5 waited=0.0"),
        ("0 though another came in", "b.1 had come in", *Judged.overlap, "a.1 out 0",
         "a.1 end 0 ran fence=5 waited=0.0"),
        ("75 though it ran", "its command had run", START["a.1"], "a.1 in 5 token=A",
         "a.1 end 75 held fence=0 waited=300.0"),
        ("75 before the wait was over", "waited", START["a.1"], "a.1 end 75 held fence=0 waited=2.0"),
        ("75 without a wait", "", "a.1 start run ttl=1 wait=0", "a.1 end 75 held fence=0 waited=0.0"),
        ("lost is never 0", "status", "n1 trouble", START["a.1"], "a.1 in 5 token=A",
         "a.1 end 0 lost fence=5 waited=0.0"),
        ("lost for nothing", "for no reason", START["a.1"], "a.1 in 5 token=A", "a.1 end 76 lost fence=5 waited=0.0"),
        ("a crash", "nobody had sent", START["a.1"], "a.1 end -11 -"),
        ("starved", "starved", START["a.1"], "a.1 hung", "a.1 end -9 -"),
    )

    def test_stories(self):
        for name, word, *lines in self.STORIES:
            with self.subTest(name):
                if word:
                    self.assert_found(word, *lines)
                else:
                    self.assert_fine(*lines)


class Exclusion(Judged):
    def test_what_was_stopped_is_no_excuse(self):
        for stopped in ("command", "dlock", "command+dlock"):
            lines = self.overlap[:3] + [f"a.1 hit STOP {stopped}"] + self.overlap[3:] + [self.ended]
            self.assert_found("two inside", *lines)

    def test_the_only_node_was_emptied(self):
        lines = self.overlap[:3] + ["n1 lost all (emptied)"] + self.overlap[3:] + [self.ended]
        self.assert_fine(*lines, nodes=1)

    def test_a_guarded_node_is_no_excuse(self):
        lines = self.overlap[:3] + ["n1 lost metadata (emptied)"] + self.overlap[3:] + [self.ended]
        self.assert_found("two inside", *lines, nodes=1)

    def test_one_of_three_is_no_majority(self):
        lines = self.overlap[:3] + ["n1 lost key (DEL)"] + self.overlap[3:] + [self.ended]
        self.assert_found("two inside", *lines)

    def test_one_was_emptied_and_another_away(self):
        lines = ["n2 trouble", *self.overlap[:3], "n2 well", "n1 lost all (emptied)", *self.overlap[3:], self.ended]
        self.assert_fine(*lines)

    def test_one_was_emptied_and_another_had_been_before(self):
        lines = ["n2 lost all (emptied)", *self.overlap[:3], "n1 lost all (emptied)", *self.overlap[3:], self.ended]
        self.assert_fine(*lines)
        self.assert_found("two inside", lines[0], f"20 {lines[1]}", *lines[2:])

    def test_trouble_without_loss_is_no_excuse(self):
        lines = ["n1 trouble", "n2 trouble", "n3 trouble", *self.overlap, self.ended]
        self.assert_found("two inside", *lines)

    def test_a_loss_before_it_all_is_no_excuse(self):
        self.assert_found("two inside", "n1 lost all (emptied)", "100 n1 well", *self.overlap, self.ended, nodes=1)

    def test_the_child_of_a_command_counts(self):
        lines = visit("a.1", 5)
        self.assert_found("after its dlock had ended", *lines, "a.1 at 5")


class Slots(Judged):
    def slots(self, a, b, lines=Judged.overlap):
        """The same with two slots, of which a.1 and b.1 take these."""
        taken = {"a": a, "b": b}
        return ["scenario begins seed=1 theme=made-up nodes=3 ttl=1 strict=0 slots=2",
                *(f"{line} slot={taken[line[0]]}" if " in " in line else line for line in lines)]

    good = ["a.1 out 0", "a.1 end 0 ran fence=5 waited=0.0"]

    def test_two_in_two_slots(self):
        self.assert_fine(*self.slots(1, 2), *self.good)

    def test_two_in_one_slot(self):
        self.assert_found("two inside", *self.slots(2, 2), self.ended)
        self.assert_found("b.1 had come in", *self.slots(2, 2), *self.good)

    def test_a_slot_that_there_is_not(self):
        for slot in (0, 3):
            self.assert_found("slots", *self.slots(1, slot), *self.good)
        self.assert_found("slots", START["a.1"], "a.1 in 5 token=A slot=1", *self.good)

    def test_fences_grow_in_each_slot(self):
        lines = [*visit("b.1", 6), *visit("a.1", 5)]
        self.assert_fine(*self.slots(1, 2, lines))
        self.assert_found("fences", *self.slots(2, 2, lines))


class Shared(Judged):
    def shared(self, *lines):
        """a.1 and c.1 are readers, b.1 is a writer."""
        return [f"{line} shared=1" if " start " in line and line[0] in "ac" else line for line in lines]

    def test_readers_together(self):
        lines = [START["a.1"], START["c.1"], "a.1 in 5 token=A", "c.1 in 5 token=A", "a.1 at 5", "c.1 out 0",
                 "c.1 end 0 ran fence=5 waited=0.1", "a.1 at 5", "a.1 out 0", "a.1 end 0 ran fence=5 waited=0.1"]
        self.assert_fine(*self.shared(*lines))
        self.assert_found("two inside", *lines)

    def test_a_writer_beside_a_reader(self):
        self.assert_found("two inside", *self.shared(*self.overlap, self.ended))

    def test_a_killed_reader_beside_another(self):
        lines = [START["a.1"], START["c.1"], START["b.1"], "11 a.1 in 5 token=A", "c.1 in 5 token=A", "a.1 hit KILL dlock",
                 "a.1 end -9 -", "17 c.1 at 5", "c.1 out 0", "c.1 end 0 ran fence=5 waited=0.1", "b.1 in 6 token=B",
                 "b.1 out 0", "b.1 end 0 ran", "30 n1 well"]
        self.assert_fine(*self.shared(*lines))

    def test_fences(self):
        self.assert_fine(*self.shared(*visit("b.1", 4), *visit("a.1", 6), *visit("c.1", 5)))
        self.assert_found("fences", *self.shared(*visit("b.1", 6), *visit("a.1", 6)))
        self.assert_found("fences", *self.shared(*visit("a.1", 6), *visit("b.1", 6)))


class Fences(Judged):
    def test_a_deleted_key_is_no_excuse(self):
        lines = visit("a.1", 6)
        self.assert_found("fences", "clients jump +7200", *lines[:3], "n1 lost key (DEL)", *lines[3:], *visit("b.1", 5))

    def test_lost_metadata_and_wrong_clocks(self):
        lines = visit("a.1", 6)
        self.assert_fine("clients jump +7200", *lines[:3], "n1 lost metadata (emptied)", *lines[3:], *visit("b.1", 5))


class Ends(Judged):
    def run_of(self, *lines):
        return [START["a.1"], *lines]

    def test_the_commands_own(self):
        for code in (0, 7, 69, 75, 76):
            self.assert_fine(*visit("a.1", 5, code))

    def test_a_command_that_was_killed_between_its_last_line_and_its_end(self):
        killed, end = "a.1 hit KILL command", "a.1 end 137 ran fence=5 waited=0.0"
        self.assert_fine(*self.run_of("a.1 in 5 token=A", "a.1 out 0", killed, end))
        self.assert_fine(*self.run_of("a.1 in 5 token=A", killed, "a.1 out 0", end))
        self.assert_fine(*self.run_of("a.1 in 5 token=A", "a.1 out 0", "a.1 hit TERM dlock",
                                      "a.1 end 143 ran fence=5 waited=0.0"))
        self.assert_found("had ended with 0", *self.run_of("a.1 in 5 token=A", "a.1 out 0", end))
        self.assert_found("had ended with 0", *self.run_of("a.1 in 5 token=A", "a.1 out 0", "a.1 hit STOP command", end))
        self.assert_found("had ended with 7", *self.run_of("a.1 in 5 token=A", killed, "a.1 out 7",
                                                           "a.1 end 0 ran fence=5 waited=0.0"))

    def test_0_though_another_came_in_after_a_loss(self):
        lines = self.overlap[:3] + ["n1 lost key (DEL)"] + self.overlap[3:]
        self.assert_found("b.1 had come in", *lines, "a.1 out 0", "a.1 end 0 ran fence=5 waited=0.0", nodes=1)

    def test_killed_while_it_was_stopped(self):
        self.assert_found("nobody had sent", *self.run_of("a.1 end -9 -"))
        self.assert_found("nobody had sent", *self.run_of("a.1 hit STOP dlock at leave-sent", "a.1 end -9 -"))
        self.assert_fine("machine late 0.05", *self.run_of("20 a.1 end -9 -"))

    def test_no_end(self):
        self.assert_found("no end", *self.run_of())
        self.assertIn("the history has no end", checker.check(history()[:-1]).complaints)

    def test_a_script(self):
        lines = ["a.1 start script ttl=3 wait=300", "a.1 acquired 0", "a.1 in 5 token=A", "a.1 at 5", "a.1 out 0"]
        self.assert_fine(*lines, "a.1 end 0 script")
        self.assert_found("status", *lines, "a.1 end 70 script")
        self.assert_found("b.1 had come in", *lines[:3], *visit("b.1", 6), *lines[3:], "a.1 end 0 script")
        lost = [*lines[:3], "n1 lost key (DEL)", *visit("b.1", 6), *lines[3:]]
        self.assert_fine(*lost, "a.1 abandons", "a.1 end 0 script", nodes=1)


    def test_a_dlock_in_between(self):
        lines = ["a.1 start run ttl=1 wait=300 nested=1", "a.1 in 5 token=A", "n1 trouble",
                 "a.1 end 76 ran fence=5 waited=0"]
        self.assert_fine(*lines)
        self.assert_found("never came to its end", *lines[:-1], "a.1 end 75 ran fence=5 waited=0")
        self.assert_fine(lines[0], "a.1 end 69 ran fence=5 waited=0")

    def test_min_hold(self):
        lines = ["a.1 start run ttl=1 wait=300 min_hold=0.5", "11 a.1 in 5 token=A", "11.1 a.1 out 0",
                 "11.2 a.1 end 0 ran fence=5 waited=0.85", START["b.1"]]
        ending = ["b.1 out 0", "b.1 end 0 ran fence=6 waited=0.1"]
        self.assert_fine(*lines, "11.5 b.1 in 6 token=B", *ending)
        self.assert_found("min-hold", *lines, "11.3 b.1 in 6 token=B", *ending)
        self.assert_fine(*lines[:2], "n1 trouble", *lines[2:], "11.3 b.1 in 6 token=B", *ending)

    def test_gave_up_early(self):
        for start in "run", "script":
            waiter = [f"11.3 b.1 start {start} ttl=1 wait=3", "11.4 b.1 acquired 75"]
            if start == "run":
                waiter[1] = "11.4 b.1 end 75 held waited=0.1"
            else:
                waiter.append("11.4 b.1 end 75 script")
            holder = ["11 a.1 in 5 token=A", "11.1 a.1 out 0", "11.2 a.1 end 0 ran fence=5 waited=0"]
            self.assert_found("status: ", START["a.1"], *holder, *waiter)
            self.assert_fine("a.1 start run ttl=1 wait=300 min_hold=0.5", *holder, *waiter)


class Progress(Judged):
    def crash(self, *lines):
        return [START["a.1"], START["b.1"], "a.1 in 5 token=A", "11 a.1 hit KILL dlock", "a.1 end -9 -", *lines]

    def test_freed_in_time(self):
        self.assert_fine(*self.crash("12.5 b.1 in 6 token=B", "b.1 out 0", "b.1 end 0 ran", "30 n1 well"))

    def test_freed_too_late(self):
        self.assert_found("not freed", *self.crash("17 b.1 in 6 token=B", "b.1 out 0", "b.1 end 0 ran", "30 n1 well"))

    def test_not_freed_while_the_nodes_are_away(self):
        self.assert_fine(*self.crash("n1 trouble", "n2 trouble", "17 b.1 in 6 token=B", "b.1 out 0", "b.1 end 0 ran",
                                     "30 n1 well", "n2 well"))

    def test_left_behind(self):
        self.assert_found("left behind", "n1 left the-lock string 400")
        self.assert_found("left behind", "n1 left {the-lock}:dlock:wake list 400")
        self.assert_found("for ever", "n1 left {the-lock}:dlock hash -1")
        self.assert_fine("n1 left {the-lock}:dlock hash 3600000", "n1 left {the-lock}:dlock:waiting zset 9000")


class Others(unittest.TestCase):
    def test_a_seed_means_the_same(self):
        for world in (schedule, zk_schedule):
            for seed in range(50):
                self.assertEqual(str(world.scenario(seed)), str(world.scenario(seed)))
            self.assertEqual({world.scenario(seed).theme for seed in range(200)}, set(world.THEMES))

    def test_messages_are_cut_where_they_end(self):
        whole = b"*3\r\n$4\r\nEVAL\r\n*1\r\n:5\r\n$-1\r\n"
        self.assertEqual(proxy.message_end(whole + b"+OK\r\n", 0), len(whole))
        for size in range(len(whole)):
            self.assertIsNone(proxy.message_end(whole[:size], 0))
        self.assertEqual(proxy.message_end(b"-ERR no\r\n", 0), 9)

    def test_requests_are_known(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/lua")
        for name in ("acquire", "heal", "leave", "pass", "release", "renew"):
            with open(f"{folder}/{name}.lua", "rb") as file:
                self.assertEqual(proxy.kind_of(servers.bulks(b"EVAL", file.read(), b"1")), name)
        self.assertEqual(proxy.kind_of(b"*1\r\n$5\r\nBLPOP\r\n"), "blpop")


if __name__ == "__main__":
    unittest.main()
