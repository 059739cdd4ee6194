# SPDX-License-Identifier: MIT
"""Contenders for the lock, and what can be done to their processes.

Most contenders run `dlock run` with visitor.py as the command, again and again, some with a second dlock between that
enters the lock again, some with --min-hold.  Every fourth is a script that uses `dlock acquire`, `renew` and `release`,
and is the harness itself in between.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

KEY = "the-lock"
LONG_WAIT = 300  # longer than any scenario: who waits so long has to have a turn
HERE = os.path.dirname(os.path.abspath(__file__))
VISITOR = os.path.join(HERE, "visitor.py")
CODES = [0, 0, 0, 0, 7, 64, 75, 76]


def locks(scenario):
    """The names of the locks: that of each slot, or the only one."""
    slot = f"{KEY}/leases/slot-" if scenario.world == "zookeeper" else f"{{{KEY}}}:slot-"
    return [f"{slot}{i + 1}" for i in range(scenario.slots)] or [KEY]


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def parents():
    """The parent of each process."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read()
        except OSError:
            continue
        found[int(pid)] = int(stat.rpartition(")")[2].split()[1])
    return found


def family(dlock):
    """The processes of a dlock run: {"dlock": [...], "command": [...]}, the command's children with it."""
    table, members = parents(), {dlock}
    while True:
        more = {pid for pid, parent in table.items() if parent in members} - members
        if not more:
            break
        members |= more
    members.discard(dlock)
    return {"dlock": [dlock], "command": sorted(members)}


class Visit:
    """One turn of a contender, from the start of its dlock to that one's end."""

    def __init__(self, who, way):
        self.who = who
        self.way = way
        self.side = "ab"[int(who[1:].partition(".")[0]) % 2]
        self.process = None
        self.inside = threading.Event()


class Crowd:
    def __init__(self, folder, scenario, history, address, shift):
        self.folder = folder
        self.scenario = scenario
        self.history = history
        self.address = address  # what contenders of a side have as DLOCK_NODES
        self.dlock = os.environ["DLOCK"]
        with open(self.dlock, "rb") as file:  # with AddressSanitizer nothing can be preloaded, and all clocks are right
            self.shift = shift if b"__asan_init" not in file.read() else None
        self.slots = ["--slots", str(scenario.slots)] if scenario.slots else []
        self.over = threading.Event()
        self.mutex = threading.Lock()
        self.timers = []
        self.reading = threading.Lock()
        self.reader = open(history.path, "rb")  # as far as it was looked at for who is inside
        self.inside, self.stays = None, 0
        self.baits = 0
        self.current = {}  # visits by the number of their dlock
        self.known = {}  # the same, also those that are over
        self.threads = [threading.Thread(target=self.contend, args=(i,), daemon=True)
                        for i in range(scenario.contenders)]

    # -- Contending ------------------------------------------------------------

    def environment(self, side):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DLOCK_")}
        environment["DLOCK_NODES"] = self.address(side)
        if self.shift and side == "a":
            environment.update(LD_PRELOAD=self.shift, FAULT_CLOCK=f"{self.folder}/a.clock")
        return environment

    def timeout(self):
        return ["-v", "--node-timeout", f"{self.scenario.node_timeout:g}"]

    def options(self, ttl, wait):
        return [*self.timeout(), "--ttl", f"{ttl:g}", "--wait", f"{wait:g}",
                "--restart-guard", f"{self.scenario.guard_seconds:g}", *self.slots]

    def shared(self, rng):
        """The option of a reader; most are, where there are any."""
        return ["--shared"] if self.scenario.shared and rng.random() < 0.6 else []

    def contend(self, number):
        rng = random.Random(f"{self.scenario.seed} {number}")
        with open(f"{self.folder}/c{number}.log", "ab") as log:
            turn = 0
            while not self.over.is_set():
                turn += 1
                who = f"c{number}.{turn}"
                log.write(f"---- {who}\n".encode())
                log.flush()
                environment = self.environment("ab"[number % 2])
                good = (self.script if number % 4 == 3 else self.run)(who, rng, environment, log)
                self.over.wait(rng.uniform(0, 0.05) if good else rng.uniform(0.05, 0.2))

    def begin(self, visit, argv, environment, **streams):
        with self.mutex:  # whoever looks for a process finds its visit
            visit.process = subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, start_new_session=True,
                                             **streams)
            self.current[visit.process.pid] = self.known[visit.process.pid] = visit

    def finish(self, visit):
        status = visit.process.wait()
        with self.mutex:
            self.current.pop(visit.process.pid, None)
        return status

    def length(self, rng, ttl):
        """Most visits are short, some have to be renewed."""
        if rng.random() < self.scenario.long:
            return rng.uniform(0.8, 2.5) * ttl
        return rng.uniform(*self.scenario.visit)

    def run(self, who, rng, environment, log):
        ttl = self.scenario.ttl
        wait = rng.choice([LONG_WAIT] * 4 + [0, 1])
        code, manners = rng.choice(CODES), rng.choice(["polite", "stubborn"])
        length = self.length(rng, ttl)
        nested, min_hold = rng.random() < 0.15, 0.5 if rng.random() < 0.1 else 0
        report = f"{self.folder}/{who}.report"
        visit = Visit(who, "run")
        nested = nested and not self.slots  # it would take a further slot
        shared = self.shared(rng)
        min_hold = 0 if shared else min_hold  # others may come in meanwhile
        replace = self.scenario.asks and rng.random() < 0.5
        inner = [self.dlock, "run", *self.options(ttl, 1), *shared, KEY, "--"] if nested else []
        command = [sys.executable, "-I", "-S", VISITOR, self.history.path, who, f"{length:.3f}", str(code), manners]
        argv = [self.dlock, "run", *self.options(ttl, wait), *shared, "--min-hold", f"{min_hold:g}", "--report", report,
                *["--replace"] * replace, KEY, "--", *inner, *command]
        self.history.say(who, f"start run ttl={ttl:g} wait={wait:g} nested={nested:d} min_hold={min_hold:g} "
                              f"shared={len(shared)} replace={replace:d}")
        self.begin(visit, argv, environment, stdout=log, stderr=log)
        status = self.finish(visit)
        self.history.say(who, f"end {status} {self.read_report(report)}")
        return status not in (69, -9)

    @staticmethod
    def read_report(path):
        try:
            with open(path, encoding="ascii") as file:
                report = json.load(file)
            os.unlink(path)
        except (OSError, ValueError):
            return "-"
        return f"{report['outcome']} fence={report['fence'] or 0} waited={report['waited_ms'] / 1000:.3f}"

    def call(self, visit, log, environment, *argv):
        self.begin(visit, [self.dlock, *argv], environment, stdout=subprocess.PIPE, stderr=log)
        out = visit.process.stdout.read()
        visit.process.stdout.close()
        return self.finish(visit), out

    def script(self, who, rng, environment, log):
        ttl = max(self.scenario.ttl, 3)
        wait = rng.choice([LONG_WAIT, LONG_WAIT, 0, 1])
        visit = Visit(who, "script")
        shared = self.shared(rng)
        self.history.say(who, f"start script ttl={ttl:g} wait={wait:g} shared={len(shared)}")
        status, out = self.call(visit, log, environment, "acquire", "--json", *self.options(ttl, wait), *shared, KEY)
        self.history.say(who, f"acquired {status}")
        if status == 0:
            grant = json.loads(out)
            status = self.visit(visit, rng, environment, log, grant, now() + grant["valid_ms"] / 2000)
        self.history.say(who, f"end {status} script")
        return status not in (69, -9)

    def visit(self, visit, rng, environment, log, grant, until):
        """Relies on half of the lease only, since the harness may be held up as any program."""
        token, fence = grant["token"], grant["fence"]
        ttl = max(self.scenario.ttl, 3)
        leave = min(now() + self.length(rng, ttl), until + ttl)
        self.history.say(visit.who, f"in {fence} token={token[:8]} slot={grant.get('slot', 0)}")
        while now() < min(until, leave):
            self.history.say(visit.who, f"at {fence}")
            time.sleep(0.003)
            if until - now() < ttl / 5 < leave - now():
                sent = now()
                status, _ = self.call(visit, log, environment, "renew", *self.timeout(), "--ttl", f"{ttl:g}",
                                      grant["key"], token)
                self.history.say(visit.who, f"renewed {status}")
                if status == 1:
                    break
                until = sent + ttl / 2 if status == 0 else until
        self.history.say(visit.who, "out 0")
        if rng.random() < 0.1 and not self.scenario.strict:
            self.history.say(visit.who, "abandons")
            return 0
        status, _ = self.call(visit, log, environment, "release", *self.timeout(), grant["key"], token)
        return status

    def ask(self):
        """An operator asks the holder to end, and learns that it has."""
        argv = [self.dlock, "break", "--ask", "--wait", "10", "--json", *self.timeout()[1:], KEY]
        done = subprocess.run(argv, env=self.environment("b"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            owner = json.loads(done.stdout)["owner"]
            visit = self.known.get(owner["pid"]) if owner and owner["command"] == "run" else None
            if visit:
                self.history.say(visit.who, "ended for who asked")

    # -- Who is there --------------------------------------------------------------

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self, seconds):
        """No more turns.  Who has not ended its last one after so long is named in the history, and killed."""
        self.over.set()
        end = time.monotonic() + seconds
        for thread in self.threads:
            thread.join(max(end - time.monotonic(), 0))
        for visit in self.left():
            self.history.say(visit.who, "hung")
        self.kill()
        for thread in self.threads:
            thread.join()

    def left(self):
        with self.mutex:
            return list(self.current.values())

    def kill(self):
        """Whoever is left."""
        for visit in self.left():
            for pids in family(visit.process.pid).values():
                for pid in pids:
                    send(pid, signal.SIGKILL)

    def holder(self, least=0):
        """The `dlock run` whose command wrote last that it had begun, if that one still runs, and stays for so long."""
        with self.mutex:
            running = {visit.who: visit for visit in self.current.values() if visit.way == "run"}
        with self.reading:
            for line in self.reader:  # what is new
                words = line.split()
                if len(words) > 2 and (words[2] == b"in" or words[2] in (b"out", b"end") and
                                       (not (self.slots or self.scenario.shared) or
                                                              words[1].decode() == self.inside)):
                    self.inside = words[1].decode() if words[2] == b"in" else None
                    self.stays = float(words[-1].partition(b"=")[2]) if words[-1].startswith(b"seconds=") else 0
            return running.get(self.inside) if self.stays >= least else None

    def bait(self, seconds):
        """A holder that stays for longer than its lease, or any, or None if there is none for so long."""
        with self.mutex:
            self.baits += 1
            with open(f"{self.history.path}.linger", "wb"):
                pass
        end = time.monotonic() + seconds
        while (visit := self.holder(2 * self.scenario.ttl)) is None and time.monotonic() < end:
            time.sleep(0.005)
        with self.mutex:
            self.baits -= 1
            if self.baits == 0:
                os.unlink(f"{self.history.path}.linger")
        return visit or self.holder()

    def waiter(self, rng):
        holder = self.holder()
        waiting = [visit for visit in self.left() if visit is not holder]
        return rng.choice(waiting) if waiting else None

    def pids(self):
        with self.mutex:
            return list(self.current)

    def who(self, pid):
        with self.mutex:
            return self.current.get(pid)

    # -- Attacks --------------------------------------------------------------------

    def hit(self, visit, sent, targets, seconds=0, words=""):
        """Send a signal to some of a visit's processes.  What is stopped goes on after so many seconds."""
        members = family(visit.process.pid) if targets != ["dlock"] else {"dlock": [visit.process.pid]}
        pids = [pid for target in targets for pid in members[target]]
        name = signal.Signals(sent).name[3:]
        self.history.say(visit.who, f"hit {name} {'+'.join(targets)}{words}")
        for pid in pids:
            send(pid, sent)
        if sent == signal.SIGSTOP:
            timer = threading.Timer(seconds, self.go_on, (visit, pids, targets))
            self.timers.append(timer)
            timer.start()

    def go_on(self, visit, pids, targets):
        self.history.say(visit.who, f"hit CONT {'+'.join(targets)}")
        for pid in pids:
            send(pid, signal.SIGCONT)

    def act_at(self, what, seconds, pid, point):
        """What a point of the protocol has for a client; false if that is none of ours."""
        visit = self.who(pid)
        if visit is None:
            return False
        if what == "kill":
            self.hit(visit, signal.SIGKILL, ["dlock"], 0, f" at {point}")
        elif what == "stop":
            self.hit(visit, signal.SIGSTOP, ["dlock"], seconds, f" at {point}")
        else:
            self.history.say(visit.who, f"loses a reply at {point}")
        return True


def send(pid, sent):
    try:
        os.kill(pid, sent)
    except ProcessLookupError:
        pass
