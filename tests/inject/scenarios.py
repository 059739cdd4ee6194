# SPDX-License-Identifier: MIT
"""The commands that inject.py lets fail: what goes before each, its arguments, and what must be true after it."""
import os
import subprocess
import time

TTL_MS = 10000
PATIENCE_S = 30


class Broken(Exception):
    """What must not happen has happened."""


def must(condition, *words):
    if not condition:
        raise Broken(" ".join(str(word) for word in words))


class Scenario:
    """One dlock command: what goes before it, its arguments, and what must be true after it."""

    status = 0
    nodes = 1
    may_leave = False  # a lock behind, for as long as the manual says
    may_be = ()  # further exit statuses, which the manual gives for a fault of this command

    def __init__(self, bench):
        self.bench = bench
        self.servers = bench.servers[: self.nodes]
        self.key = "job"

    def arguments(self):
        raise NotImplementedError

    def prepare(self):
        pass

    def meanwhile(self, process):
        pass

    def after(self, result):
        """Is what the exit status said true?"""

    # What they are made of.

    def urls(self):
        return [word for path in self.bench.sockets[: self.nodes] for word in ("-N", path)]

    def plain(self, *words):
        done = subprocess.run([self.bench.dlock, *words, *self.urls()], capture_output=True, text=True, check=False)
        must(done.returncode == 0, "plain dlock", words, "failed:", done.stderr)
        return done.stdout.strip()

    def take(self):
        self.token = self.plain("acquire", "-t", "%dms" % TTL_MS, self.key)

    def holders(self):
        return [server.get(self.key) for server in self.servers]

    def held_by(self, token):
        return sum(holder == token.encode() for holder in self.holders()) > self.nodes // 2

    def clean(self):
        for server in self.servers:
            server.delete(self.key)

    def is_free(self):
        return not any(self.holders())


class Acquire(Scenario):
    def arguments(self):
        return ["acquire", "-t", "%dms" % TTL_MS, self.key]

    def after(self, result):
        if result.status == 0:
            must(len(result.out) == 23 and self.held_by(result.out.strip()), "printed no token that holds")
            if self.nodes > 1:  # where a late server still has the attempt to carry out, a DEL would come too early
                self.plain("release", self.key, result.out.strip())
            self.clean()
        else:
            must(result.out == "", "printed something")


class AcquireTcp(Acquire):
    """By a name that is looked up, and over TCP."""

    def urls(self):
        return ["-N", "localhost:%d" % self.bench.port]


class Config(Acquire):
    """Everything comes from a file."""

    may_be = (78,)

    def arguments(self):
        path = os.path.join(self.bench.folder, "config")
        with open(path, "w", encoding="utf-8") as file:
            file.write("# a comment\nttl %dms\nnode %s\nlabel from a file\n" % (TTL_MS, self.bench.sockets[0]))
        return ["acquire", "--config", path, self.key]

    def urls(self):
        return []


class Wait(Acquire):
    """Behind a holder that gives the lock back as soon as somebody waits."""

    may_be = (75,)
    may_leave = True  # a hand-over that went wrong, for its window

    def prepare(self):
        self.take()

    def arguments(self):
        return ["acquire", "-w", "10s", "-t", "%dms" % TTL_MS, self.key]

    def meanwhile(self, process):
        end = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < end:
            if self.servers[0].zcard("{%s}:dlock:waiting" % self.key):
                break
            time.sleep(0.0005)
        self.plain("release", self.key, self.token)


class Release(Scenario):
    def prepare(self):
        self.take()

    def arguments(self):
        return ["release", self.key, self.token]

    def after(self, result):
        if result.status == 0:
            must(self.is_free() or (self.nodes > 1 and not self.held_by(self.token)), "it was not released")
        self.clean()


class Renew(Release):
    def arguments(self):
        return ["renew", "-t", "%dms" % (2 * TTL_MS), self.key, self.token]

    def after(self, result):
        if result.status == 0:
            longer = [server.pttl(self.key) > TTL_MS for server in self.servers]
            must(sum(longer) > self.nodes // 2, "it was not renewed")
        self.clean()


class Status(Release):
    """Of one lock that is held."""

    def arguments(self):
        return ["status", "--json", self.key]

    def after(self, result):
        must(self.held_by(self.token), "the lock is gone")
        if result.status == 0:
            must('"state":"held"' in result.out.replace(" ", ""), "it says something else than held")
        self.clean()


class StatusFive(Status):
    """Of all locks, by five nodes."""

    nodes = 5

    def arguments(self):
        return ["status", "--json"]


class Break(Release):
    def arguments(self):
        return ["break", "--force", self.key]


class Run(Scenario):
    """COMMAND prints what each node holds while it runs."""

    options = ("-t", "%dms" % TTL_MS)
    line = ":"
    may_be = (126, 76)

    def arguments(self):
        self.witness = os.path.join(self.bench.folder, "witness")
        self.report = os.path.join(self.bench.folder, "report")
        for path in (self.witness, self.report):
            if os.path.exists(path):
                os.unlink(path)
        look = "; ".join("redis-cli -s %s get %s" % (path, self.key) for path in self.bench.sockets[: self.nodes])
        line = "{ echo $DLOCK_TOKEN; %s; } >%s.new; %s; mv %s.new %s" % (
            look.replace("redis-cli", os.environ.get("REDIS_CLI", "redis-cli")),
            self.witness,
            self.line,
            self.witness,
            self.witness,
        )
        return ["run", *self.options, self.key, "sh", "-c", line]

    def after(self, result):
        seen = None
        for path in (self.witness, self.witness + ".new"):
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    seen = file.read().split()
                os.unlink(path)
                must(path == self.witness or result.status != 0, "COMMAND did not end")
        if seen:
            token, holders = seen[0], seen[1:]
            must(holders.count(token) > self.nodes // 2, "COMMAND ran unprotected:", seen)
        else:
            must(result.status != 0, "COMMAND did not run")


class RunRenewing(Run):
    """Long enough to be renewed by the thread."""

    options = ("-t", "2s")
    line = "sleep 0.8"


class RunReport(Run):
    """The outcome is written to a file and to standard output; a report that can't be written is a warning."""

    def arguments(self):
        self.options = ("-t", "%dms" % TTL_MS, "--json", "--report", os.path.join(self.bench.folder, "report"))
        return super().arguments()

    def after(self, result):
        super().after(result)
        if result.status == 0 and not os.path.exists(self.report):
            must("report" in result.err, "the report is missing, and nothing says so")


def five(scenario):
    """The same with five nodes."""
    return type(scenario.__name__ + "Five", (scenario,), {"nodes": 5})


SCENARIOS = {
    "acquire": Acquire,
    "acquire-five": five(Acquire),
    "acquire-tcp": AcquireTcp,
    "break": Break,
    "break-five": five(Break),
    "config": Config,
    "release": Release,
    "release-five": five(Release),
    "renew": Renew,
    "renew-five": five(Renew),
    "run": Run,
    "run-five": five(Run),
    "run-renewing": RunRenewing,
    "run-report": RunReport,
    "status": Status,
    "status-five": StatusFive,
    "wait": Wait,
    "wait-five": five(Wait),
}
