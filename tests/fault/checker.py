#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Judges a history: which of dlock's promises does it break?

    checker.py HISTORY

It knows nothing but the lines of the history, see README.md.  The order of the lines of those who are inside is the
order in which they acted; times are only for what is promised within a time.
"""

import bisect
import dataclasses
import sys

LONGEST = 4  # a lease or a hand-over's window: so long nodes may disagree after one of them has lost something
SLACK = 3  # seconds, for what is promised within a time
LATE = 0.1  # seconds, by which a machine is so late that a lock may be lost for that alone
ANYTHING = ("all", "key", "metadata")  # that a node may have lost
COMMAND_ENDS = {"KILL": 137, "TERM": 143}


@dataclasses.dataclass
class Visit:
    who: str
    way: str = "run"
    ttl: float = 0
    wait: float = 0
    nested: bool = False  # its command is a dlock that enters the lock again
    min_hold: float = 0
    replace: bool = False
    ended: list = dataclasses.field(default_factory=list)  # numbers and times: who asked it to end learned that it had
    start: float = 0
    begun: int = -1  # the number of the line with "in"
    begun_at: float = 0
    fence: int = 0
    slot: int = 0  # 0: the lock itself
    shared: bool = False  # a reader
    lines: list = dataclasses.field(default_factory=list)  # numbers and times of all lines from inside
    code: int = None  # with which the command ended by itself
    status: int = None
    outcome: str = ""
    waited: float = 0
    end: float = None
    end_line: int = None
    abandoned: bool = False
    acquired: int = None  # the status of acquire, of a script
    hits: list = dataclasses.field(default_factory=list)  # (time, signal, targets)
    hung: bool = False

    def was_hit(self, name, target):
        return any(sent == name and target in targets for _, sent, targets in self.hits)


class Span:
    """Times at which something is the case: from one time to another."""

    def __init__(self):
        self.open = None
        self.parts = []

    def change(self, at, on):
        if on and self.open is None:
            self.open = at
        elif not on and self.open is not None:
            self.parts.append((self.open, at))
            self.open = None

    def meets(self, start, end):
        parts = self.parts + ([(self.open, float("inf"))] if self.open is not None else [])
        return any(a <= end and b >= start for a, b in parts)


class Story:
    """The lines of a history, sorted into visits and into what befell the nodes."""

    def __init__(self, lines):
        self.terms = {}
        self.visits = {}
        self.trouble = {}
        self.lost = []  # (time, node, what)
        self.left = []
        self.skewed = False
        self.late = 0.0
        self.back = 0.0  # by how much clocks of nodes jumped back, and leases became longer
        self.faults = 0
        self.calm = self.end = None
        for number, line in enumerate(lines):
            at, who, what, *words = line.split()
            if who == "fault":
                self.faults += 1
            elif not self.note(int(at) / 1e6, who, what, words) and (who in self.visits or what in ("start", "in")):
                self.note_visit(self.visits.setdefault(who, Visit(who)), number, int(at) / 1e6, what, words)
        self.inside = sorted((v for v in self.visits.values() if v.begun >= 0), key=lambda v: v.begun)

    def note(self, at, who, what, words):
        """A line about the scenario or about a node; false if it is none."""
        if what == "begins":
            self.terms = dict(word.split("=") for word in words)
        elif what == "calm":
            self.calm = at
        elif what == "ends":
            self.end = at
        elif what in ("trouble", "well"):
            self.trouble.setdefault(who, Span()).change(at, what == "trouble")
        elif what == "lost":
            self.lost.append((at, who, words[0]))
            if "(clock" in words:
                self.skewed = True
                self.back += max(-float(words[2]), 0)
        elif what == "jump":
            self.skewed = True
        elif what == "left":
            self.left.append((who, *words))
        elif what == "late":
            self.late = max(self.late, float(words[0]))
        else:
            return False
        return True

    def note_visit(self, v, number, at, what, words):
        """A line about a visit."""
        terms = dict(word.split("=") for word in words if "=" in word)
        if what == "start":
            v.start, v.way = at, words[0]
            v.ttl, v.wait = float(terms["ttl"]), float(terms["wait"])
            v.shared = terms.get("shared") == "1"
            v.nested, v.min_hold = terms.get("nested") == "1", float(terms.get("min_hold", 0))
            v.replace = terms.get("replace") == "1"
        elif what == "in":
            v.begun, v.begun_at, v.fence = number, at, int(words[0])
            v.slot = int(terms.get("slot", 0))
        elif what == "out":
            v.code = int(words[0])
        elif what == "acquired":
            v.acquired = int(words[0])
        elif what == "ended":
            v.ended.append((number, at))
        elif what == "abandons":
            v.abandoned = True
        elif what == "end":
            v.end, v.end_line, v.status, v.outcome = at, number, int(words[0]), words[1]
            v.waited = float(terms.get("waited", 0))
        elif what == "hit":
            v.hits.append((at, words[0], words[1].split("+")))
        elif what == "hung":
            v.hung = True
        if what in ("in", "at") or what == "out" and v.way == "run":
            v.lines.append((number, at))

    # What follows from it.

    @property
    def nodes(self):
        return int(self.terms["nodes"])

    @property
    def slots(self):
        return int(self.terms.get("slots", 0))

    @property
    def each(self):
        """The visits of each slot, or of the exclusive lock: what is promised for a lock is promised for each slot."""
        return [[v for v in self.inside if v.slot == slot] for slot in sorted({v.slot for v in self.inside})]

    @property
    def slack(self):
        return SLACK + 10 * self.late + self.back

    def kept_beyond(self, v):
        """Can v have found the lock kept (--min-hold) for longer than it would wait?  Then it gives up at once."""
        return any(w.min_hold and w.begun_at < v.end and w.begun_at + w.min_hold + self.slack > v.start + v.wait
                   for w in self.inside)

    def troubled(self, start, end):
        return {node for node, span in self.trouble.items() if span.meets(start, end)}

    def losses(self, start, end, kinds):
        return {node for at, node, kind in self.lost if start <= at <= end and kind in kinds}

    def may_have_lost(self, v, until):
        """Could a majority have forgotten a visit's lock: some node did, the others may never have had it?

        Those are the ones that were out of reach, and those that had lost the lock before, for then others may still
        know an older holder, and a majority is no more than that.
        """
        lost = self.losses(v.start, until, ("all", "key"))
        weak = self.losses(v.start - LONGEST, until, ("all", "key")) | self.troubled(v.start - LONGEST, until)
        return bool(lost) and len(weak) > self.nodes // 2


@dataclasses.dataclass
class Verdict:
    complaints: list
    figures: dict


def overlaps(story):
    """Who acted after another had come in, with the first and the last line that shows it: (who, other, line, last)."""
    found = []
    for inside in story.each:
        for i, a in enumerate(inside):
            for b in inside[i + 1:]:
                if b.begun > a.lines[-1][0]:
                    break
                if a.shared and b.shared:
                    continue
                first = bisect.bisect(a.lines, (b.begun, 0))
                found.append((a, b, a.lines[first], a.lines[-1]))
    return found


def check_slots(story):
    """With at most one in each slot, and no slot but 1 to N, at most N are inside."""
    for v in story.inside:
        if not bool(story.slots) <= v.slot <= story.slots:
            yield f"slots: {v.who} came in with slot {v.slot} of {story.slots} (line {v.begun + 1})"


def check_exclusion(story):
    for a, b, first, _ in overlaps(story):
        earlier = a if a.fence < b.fence else b  # whoever came in first, as lines do not show who got the lock first
        if story.may_have_lost(earlier, b.begun_at):
            continue
        yield (f"two inside: {a.who} (fence {a.fence}) acted in line {first[0] + 1}, after {b.who} (fence {b.fence}) "
               f"had come in in line {b.begun + 1}")


def check_asked(story):
    """Who asked a holder to end does not learn of the end before it."""
    for v in story.inside:
        for number, at in v.ended:
            if number < v.lines[-1][0] and not story.may_have_lost(v, at):
                yield f"asked: {v.who} acted in line {v.lines[-1][0] + 1}, but was said to have ended in line {number + 1}"


def check_fences(story):
    """Each that comes in has a greater fence than all before it, as section 3 of the protocol says; a reader than all
    writers before it."""
    for inside in story.each:
        yield from check_fences_of(story, [v for v in inside if not v.shared])
        for reader in [v for v in inside if v.shared]:
            before = [v for v in inside if not v.shared and v.begun < reader.begun]
            after = [v for v in inside if not v.shared and v.begun > reader.begun]
            yield from check_fences_of(story, [*before[-1:], reader, *after[:1]])


def check_fences_of(story, inside):
    greatest = None
    for v in inside:
        if greatest is not None and v.fence <= greatest.fence and not fence_excused(story, greatest, v):
            yield (f"fences: {v.who} came in with {v.fence} (line {v.begun + 1}) after {greatest.who} with "
                   f"{greatest.fence} (line {greatest.begun + 1})")
        if greatest is None or v.fence > greatest.fence:
            greatest = v


def fence_excused(story, a, b):
    """Did a node lose its metadata while clocks were wrong?  Or was the lock b's first and was lost before it came in?"""
    if story.skewed and story.losses(a.start, b.begun_at, ("all", "metadata")):
        return True
    return (b.fence < a.fence and b.start < a.begun_at and b.begun_at - a.begun_at < b.ttl and
            story.may_have_lost(b, b.begun_at))


def check_resource(story):
    """A resource that refuses fences below the greatest it has seen takes nothing of a visit after a later one's."""
    for inside in story.each:
        yield from check_resource_of(story, inside)


def check_resource_of(story, inside):
    excused = {(a.who, b.who) for a in inside for b in inside
               if a.begun < b.begun and b.fence <= a.fence and fence_excused(story, a, b)}
    writes = sorted(((number, v) for v in inside for number, _ in v.lines), key=lambda write: write[0])
    greatest, last, over = 0, None, set()
    for number, v in writes:
        if v.fence < greatest:
            continue
        greatest = v.fence
        if v is not last:
            if v.who in over and not (v.shared and last.shared) and not any(v.who in pair for pair in excused):
                yield (f"a late write: the resource took one of {v.who} (fence {v.fence}) in line {number + 1}, "
                       f"after {last.who}")
            if last is not None and not (v.shared and last.shared):
                over.add(last.who)
            last = v


def check_ends(story):
    for v in story.visits.values():
        if v.hung:
            yield f"starved: {v.who} had not ended long after the last fault"
        elif v.status is None:
            yield f"{v.who} has no end"
        elif v.lines and v.lines[-1][0] > v.end_line and v.status != -9:
            yield f"{v.who} acted in line {v.lines[-1][0] + 1}, after its dlock had ended in line {v.end_line + 1}"
        else:
            yield from check_run(story, v) if v.way == "run" else check_script(story, v)


def check_run(story, v):
    """Does the exit status of a dlock run tell the truth?"""
    truth = None
    if v.status < 0:
        name = {-9: "KILL", -15: "TERM"}.get(v.status)
        # One that gets no processor for some milliseconds at the end of its validity is killed by its timer.
        if not v.was_hit(name, "dlock") and not (name == "KILL" and story.late > 0):
            truth = "but nobody had sent it that signal"
    elif v.outcome == "ran":
        truth = check_ran(v)
    elif v.outcome == "asked":
        truth = None if v.status == 76 else "but the status of that is 76"
    elif v.outcome == "lost":
        truth = None if v.status == 76 else "but the lock was lost"
    elif v.outcome in ("held", "no-quorum"):
        expected = 75 if v.outcome == "held" else 69
        if v.status != expected:
            truth = f"but the status of that is {expected}"
        elif v.begun >= 0:
            truth = f"but its command had run, see line {v.begun + 1}"
        elif v.outcome == "held" and v.waited < v.wait - 0.1 and not v.replace and not story.kept_beyond(v):
            truth = f"but it waited {v.waited} s of {v.wait} s"
    elif v.outcome == "exec-failed" or v.outcome == "-":
        truth = None if v.begun < 0 and v.status in (69, 71, 76) else "for no reason"
    if truth:
        yield f"status: {v.who} ended with {v.status} ({v.outcome}), {truth}"


def check_ran(v):
    if v.code is not None and v.status == v.code:
        return None
    if v.nested and (v.status == 76 or v.status in (69, 75) and v.begun < 0):
        return None  # so the dlock in between ended
    # A signal may also come between the command's last line and its end.
    for name, status in COMMAND_ENDS.items():
        if v.status == status and (v.was_hit(name, "command") or v.was_hit(name, "dlock")):
            return None
    if v.code is not None:
        return f"but its command had ended with {v.code}"
    return "but its command never came to its end"


def check_script(story, v):
    if v.acquired not in (0, 69, 75, -9, -15):
        yield f"status: the acquire of {v.who} ended with {v.acquired}"
    if v.acquired == 0 and v.status not in (0, 1, 69, -9, -15):
        yield f"status: the release of {v.who} ended with {v.status}"
    if v.acquired == 75 and v.end - v.start < v.wait - 0.1 and not story.kept_beyond(v):
        yield f"status: the acquire of {v.who} gave up before its wait was over"


def check_protected(story):
    """A holder whose exit status is good must have been alone, unless the nodes that knew better could not be asked."""
    for a, b, _, last in overlaps(story):
        earlier, later = (a, b) if a.fence < b.fence else (b, a)
        well = earlier.outcome == "ran" if earlier.way == "run" else earlier.status == 0 and not earlier.abandoned
        if not well or earlier.end is None or story.troubled(last[1] - 0.1, earlier.end):
            continue
        yield (f"status: {earlier.who} ended with {earlier.status} ({earlier.outcome}), but {later.who} had come in in "
               f"line {later.begun + 1}")


def check_lost_for_nothing(story):
    """No fault, no loss."""
    if story.late > LATE:
        return
    for v in story.visits.values():
        if v.outcome != "lost" or v.hits or story.troubled(v.start - v.ttl, v.end):
            continue
        if not story.losses(v.start - v.ttl, v.end, ANYTHING):
            yield f"status: {v.who} lost the lock for no reason"


def check_freed(story):
    """A holder that crashed keeps others out for the rest of its lease, and no longer."""
    for v in story.inside:
        crash = max((at for at, sent, targets in v.hits if sent == "KILL" and "dlock" in targets), default=0)
        if crash < v.begun_at or v.status != -9:
            continue
        limit = crash + v.ttl + story.slack
        if v.shared and any(w.shared and w.lines[-1][1] > crash for w in story.inside if w is not v):
            continue  # others hold it, too
        if limit > (story.end or 0) or story.troubled(crash - 1, limit) or story.lost:
            continue
        waited = [w for w in story.visits.values() if w.way == "run" and w.start < crash and not w.hits and
                  (w.end is None or w.end > limit) and (w.begun < 0 or w.begun_at > limit)]
        if waited and not any(crash < w.begun_at <= limit for w in story.inside if w.slot == v.slot):
            yield (f"not freed: {v.who} was killed at {crash:.3f}, and {waited[0].who} still waited "
                   f"{v.ttl + story.slack:.1f} s later")


def check_min_hold(story):
    for a, b in (pair for inside in story.each for pair in zip(inside, inside[1:])):
        if (a.min_hold and a.outcome == "ran" and not story.losses(a.start - LONGEST, b.begun_at, ANYTHING) and
                not story.troubled(a.lines[-1][1] - 0.1, a.end)):  # else it may end with its lease
            kept = b.begun_at - (a.start + a.waited)  # it may have been longer
            if kept < a.min_hold:
                yield f"min-hold: {b.who} came in {kept:.3f} s after {a.who} had got the lock, not {a.min_hold:g} s"


def check_left(story):
    for node, name, kind, left in story.left:
        if not name.endswith((":dlock", ":dlock:waiting", ":dlock:holds", ":dlock:history")):
            yield f"left behind: {name} ({kind}, for {left} ms) on {node}"
        elif int(left) == -1:
            yield f"left behind for ever: {name} on {node}"


CHECKS = [check_exclusion, check_asked, check_slots, check_fences, check_resource, check_ends, check_protected,
          check_lost_for_nothing, check_freed, check_min_hold, check_left]


def check(lines):
    story = Story(lines)
    complaints = [complaint for one in CHECKS for complaint in one(story)]
    if story.end is None:
        complaints.append("the history has no end")
    figures = {"acquisitions": len(story.inside), "faults": story.faults, "visits": len(story.visits),
               "lost": sum(1 for v in story.visits.values() if v.outcome == "lost"),
               "overlaps": len(overlaps(story)), "complaints": len(complaints)}
    return Verdict(complaints, figures)


def main():
    with open(sys.argv[1], encoding="ascii") as file:
        verdict = check(file.read().splitlines())
    for complaint in verdict.complaints:
        print(complaint)
    print(verdict.figures)
    return 1 if verdict.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
