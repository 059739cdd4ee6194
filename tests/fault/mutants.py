#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dlocks with a bug each, to show that the harness finds it.

    mutants.py list            the names
    mutants.py build NAME OUT  writes the mutant to OUT
    mutants.py seeds NAME      the options of `fault` that find it

A mutant is an edit of a few lines.  Text that is to be replaced and isn't in the source exactly once is an error: then
the source has changed, and the mutant has to be written anew.  Only what an edit touches is compiled; the rest comes
from the build.  From the environment: top_srcdir, top_builddir, CC, FAULT_FLAGS and FAULT_LIBS, as make has them.
"""

import os
import shlex
import subprocess
import sys
import tempfile

# Name: what is wrong, the scenarios that find it, and the edits: (file, text, what stands there instead).
MUTANTS = {
    "release-any": (
        "a release deletes the lock, whoever holds it",
        "--seeds 3,4,6 --theme holders --seconds 20",
        [("src/lua/release.lua", "if not holder then\n  redis.call('PEXPIRE', key, 1)",
          "if holder and holder ~= token then\n  redis.call('DEL', key)\n  return -1\nend\n"
          "if not holder then\n  redis.call('PEXPIRE', key, 1)")]),
    "setnx-expire": (
        "the lease is set by a second request, as with SETNX and EXPIRE",
        "--seeds 1,2,6 --theme queue",
        [("src/lua/acquire.lua", "redis.call('SET', key, token, 'NX', 'PX', ttl)",
          "redis.call('SET', key, token, 'NX')"),
         ("src/lock/keeper.c", "next_renewal(k, sent_us);\n\tif (!everywhere)",
           "sent_us;\n\tif (!everywhere)")]),
    "renew-late": (
        "validity goes on though a renewal has failed",
        "--seeds 1,3,6 --theme network --seconds 20",
        [("src/run/renewer.c", "keeper_failed(&r->keeper, now, random_u32());",
          "{\n\t\tkeeper_failed(&r->keeper, now, random_u32());\n"
          "\t\tr->keeper.valid_until_us = clock_now_us() + r->keeper.ttl_us;\n"
          "\t\tif (r->keeper.renew_at_us == CLOCK_NEVER)\n\t\t\tr->keeper.renew_at_us = clock_now_us() + 50000;\n"
          "\t\ttether_extend(r->tether, r->keeper.valid_until_us);\n\t}")]),
    "no-undo": (
        "nodes that were silent are not told to undo an attempt",
        "--seeds 3,5,7 --theme strict",
        [("src/redis/rollback.c", "!attempt_perhaps_granted(u->attempt, i)",
          "u->attempt->grants.vote[i] != VOTE_YES")]),
    "release-heard": (
        "a release goes to the nodes only that had answered the attempt",
        "--seeds 3,4,5 --theme strict",
        [("src/redis/try.c", "#define OVERTIME_US 100000", "#define OVERTIME_US 100000\nint mutant_silent[64];"),
         ("src/redis/try.c", "if (status == ST_OK && *step == ATTEMPT_GRANTED) {",
          "if (status == ST_OK && *step == ATTEMPT_GRANTED) {\n\t\tfor (int i = 0; i < t->service->fleet.nodes; i++)\n"
          "\t\t\tmutant_silent[i] = t->attempt.grants.vote[i] != VOTE_YES;"),
         ("src/redis/round.c", "fleet_send_all(f, r->tag, request);",
          "extern int mutant_silent[];\n\tfor (i = 0; i < r->ballot.nodes; i++)\n\t\tif (!mutant_silent[i])\n"
          "\t\t\tfleet_send(f, i, r->tag, request);")]),
    "fence-alone": (
        "a fence that fewer than a majority know is given out",
        "--seeds 1,3,4 --theme rotate",
        [("src/lock/attempt.c", "if (recorded >= quorum_majority(a->terms.nodes))", "if (recorded > 0)")]),
    "minority": (
        "fewer than half of the nodes are enough",
        "--seeds 3,5,6 --theme network --seconds 15",
        [("src/lock/quorum.c", "return nodes / 2 + 1;", "return nodes / 2 + (nodes == 1);")]),
    "no-guard": (
        "a node that has just started empty grants at once",
        "--seeds 73,159,210 --theme guard --seconds 20",
        [("src/lua/acquire.lua", "if up < guard and", "if false and")]),
    "unguarded": (
        "a command goes on while its dlock is stopped",
        "--seeds 3,6,8 --theme holders --seconds 20",
        [("src/run/tether.c", "return clock_timer_set(t->kill, 0, ", "return true || clock_timer_set(t->kill, 0, ")]),
    "orphan": (
        "a command goes on though its dlock was killed",
        "--seeds 1,2,5 --theme holders --seconds 15",
        [("src/run/tether.c", "return fcntl(t->ends[0], F_SETOWN, -group) == 0 &&", "return group != 0 ||"),
         ("src/run/child.c", "if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&", "if (0 &&")]),
    "liar": (
        "the exit status of a lock that was lost is the command's",
        "--seeds 3,4,6 --theme holders",
        [("src/cli/cmd_run.c", "return ST_LOST;", "return command_status(r);")]),
    "closed": (
        "a request is lost with its connection that was closed while nobody used it",
        "--seeds 1,2,3 --theme idle --seconds 5",
        [("src/redis/conn.c", "if (!c->doubtful)", "if (1)"),
         ("src/redis/node.c", "if (p->progress == WRITTEN || p->once ||",
          "if (1 || p->progress == WRITTEN || p->once ||")]),
    "baton-twice": (
        "a baton is taken though KEY is not the baton any more",
        "--seeds 3,7,12,92,164 --theme baton --seconds 20",
        [("src/lua/acquire.lua", "fact[2] == baton and redis.pcall('GET', key) == baton then",
          "fact[2] == baton then")]),
}


def edit(source, copy, edits):
    """Copies of the files that change; their names."""
    texts = {}
    for name, old, new in edits:
        if name not in texts:
            with open(os.path.join(source, name), encoding="utf-8") as file:
                texts[name] = file.read()
        if texts[name].count(old) != 1:
            sys.exit(f"mutants.py: {name} has {texts[name].count(old)} times, not once: {old}")
        texts[name] = texts[name].replace(old, new)
    for name, text in texts.items():
        path = os.path.join(copy, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return list(texts)


def embed(source, copy, changed):
    """The scripts, with those that have changed in the place of the others."""
    folder = os.path.join(source, "src/lua")
    scripts = [os.path.join(copy if f"src/lua/{name}" in changed else source, "src/lua", name)
               for name in sorted(os.listdir(folder)) if name.endswith(".lua")]
    text = subprocess.run(["sh", os.path.join(source, "build-aux/embed-lua.sh"), *scripts], stdout=subprocess.PIPE,
                          check=True).stdout
    with open(os.path.join(copy, "src/scripts.inc"), "wb") as file:
        file.write(text)


def build(name, out):
    source, builddir = os.environ["top_srcdir"], os.environ["top_builddir"]
    compiler = shlex.split(os.environ["CC"])
    flags, libraries = (shlex.split(os.environ[name]) for name in ("FAULT_FLAGS", "FAULT_LIBS"))
    out = os.path.abspath(out)
    with tempfile.TemporaryDirectory() as copy:
        changed = edit(source, copy, MUTANTS[name][2])
        files = [os.path.join(copy, path) for path in changed if path.endswith(".c")]
        if len(files) < len(changed):
            embed(source, copy, changed)
            files.append(os.path.join(source, "src/redis/script.c"))
        # The objects stand before the library, whose members of the same names are then not needed.
        subprocess.run([*compiler, f"-I{copy}/src", *flags, "-w", "-o", out, *files, "src/dlock.o", "src/libdlock.a",
                        *libraries], cwd=builddir, check=True)


def main():
    if sys.argv[1:] == ["list"]:
        for name, (what, _, _) in MUTANTS.items():
            print(f"{name:14} {what}")
    elif len(sys.argv) == 3 and sys.argv[1] == "seeds":
        print(MUTANTS[sys.argv[2]][1])
    elif len(sys.argv) == 4 and sys.argv[1] == "build":
        build(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)


main()
