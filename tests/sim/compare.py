# SPDX-License-Identifier: MIT
"""
compare.py SOCKET DLOCK_SIM SOURCE SECONDS [SEED]

Hold the simulation's stand-in for Redis against a real one: random commands, and dlock's scripts with random arguments,
go to the server at SOCKET and to "DLOCK_SIM --serve"; what they answer must be the same, but for the time that passes
between the two.  SOURCE is the folder with the scripts.
"""
import pathlib
import random
import re
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))

from servers import Peer  # noqa: E402

KEYS = ["k", "{k}:dlock", "{k}:dlock:holds", "{k}:dlock:wake", "{k}:dlock:waiting", "leave"]
TOKENS = ["A" * 22, "B" * 22, "C" * 22, ""]
HOLDS = TOKENS[:3] + ["A" * 22 + ".x", "A" * 22 + ".y", "B" * 22 + ".x"]
WRITER, READER = "w" * 21 + "A", "r" * 21 + "B"
TOLERANCE_MS = 5000  # between the two answers, on a busy machine


def error_class(text):
    """Of an error the first word counts; Redis words the rest as it likes, and adds where a script was."""
    return re.match(r"-\w+", text).group() if text.startswith("-") else text


def plain(text):
    """A run_id is each server's own; holds are listed in the order of their ends, which may be the same on one side."""
    if re.fullmatch("[0-9a-f]{40}", text):
        return ""
    words = text.split(" ")
    return " ".join(sorted(map(" ".join, zip(words[::2], words[1::2])))) if len(words) > 3 else text


def numbers(text):
    """A text in which times stand as well, taken apart."""
    return re.split(r"(\d{4,})", text)


def both_wrong(a, b, command):
    """Of several mistakes in one command either may be named; not so of what scripts do."""
    return command[0] != "EVAL" and all(isinstance(x, str) and x.startswith("-") for x in (a, b))


def timeless(holder):
    """Without how long it has been held, and how long ago a command ended or a lock was broken."""
    return holder[:6] + holder[7:12] + [re.sub(r"^\d+ ", "", str(x)) for x in holder[12:14]] + holder[14:]


def same(a, b):
    if isinstance(a, list) and isinstance(b, list):
        if len(a) == 2 and a[0] == b[0] == -1:
            return True  # how long each has been up
        if len(a) == len(b) and len(a) in (13, 15) and all(isinstance(x[6], int) for x in (a, b)):
            if abs(a[6] - b[6]) <= TOLERANCE_MS:
                a, b = timeless(a), timeless(b)
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, int) and isinstance(b, int):
        span = TOLERANCE_MS * 1000 if abs(a) > 10**14 else TOLERANCE_MS if abs(a) > 3000 else 0
        return abs(a - b) <= span
    if isinstance(a, str) and isinstance(b, str):
        a, b = plain(error_class(a)), plain(error_class(b))
        x, y = numbers(a), numbers(b)
        return a == b or (len(x) == len(y) and all(
            (i % 2 == 0 and p == q) or (i % 2 == 1 and same(int(p), int(q)))
            for i, (p, q) in enumerate(zip(x, y))))
    return a == b


def nameless(answer, command, name):
    """Members that end at the same moment may stand in either order, and so may waiters with one ticket."""
    if name == "history" and isinstance(answer, list):
        return [*answer[:-1], sorted(answer[-1])]
    if "WITHSCORES" not in command or not isinstance(answer, list):
        return answer
    timed = [re.fullmatch(r"-?\d{12,}", str(score)) for score in answer[1::2]]
    return [x if i % 2 or not timed[i // 2] else "" for i, x in enumerate(answer)]


def any_command(r):
    key, member = r.choice(KEYS), r.choice(["a", "b", "c", ""])
    number = r.choice(["0", "1", "-1", "2", "5", "x", "01", "1.5"])
    bound = r.choice(["-inf", "+inf", "0", "1", "2", "(1", "(2", "-1", "x"])
    long = r.choice(["100000", "3600000", "900000"])
    return r.choice([
        ["SET", key, member], ["SET", key, member, "PX", long], ["SET", key, member, "NX", "PX", long],
        ["SET", key, member, "NX"], ["SET", key, member, "PX", "0"], ["SET", key, member, "PX"],
        ["GET", key], ["DEL", key], ["DEL", key, r.choice(KEYS)], ["EXISTS", key], ["TYPE", key],
        ["PEXPIRE", key, long], ["PEXPIRE", key, "0"], ["PEXPIRE", key, "x"], ["PTTL", key],
        ["HSET", key, member, number], ["HSET", key, "a", "1", "b", "2"], ["HSET", key, "a"], ["HGET", key, member],
        ["HMGET", key, "a", "b", member], ["HINCRBY", key, member, number], ["HLEN", key], ["HKEYS", key],
        ["RPUSH", key, member], ["LPUSH", key, member, "z"], ["LPOP", key], ["LINDEX", key, number], ["LLEN", key],
        ["LSET", key, number, member], ["LTRIM", key, "0", r.choice(["-1", "0", "1"])],
        ["LRANGE", key, number, number],
        ["ZADD", key, number, member], ["ZADD", key, "NX", number, member], ["ZADD", key, "1", "b", "1", "a"],
        ["ZREM", key, member], ["ZCARD", key], ["ZSCORE", key, member], ["ZCOUNT", key, bound, "+inf"],
        ["ZRANGEBYSCORE", key, bound, bound], ["ZRANGEBYSCORE", key, "-inf", "+inf", "WITHSCORES", "LIMIT", "0", "2"],
        ["ZRANGEBYSCORE", key, "-inf", bound, "LIMIT", number, number],
        ["ZREVRANGE", key, number, number], ["ZREVRANGE", key, "0", "0", "WITHSCORES"],
        ["ZREMRANGEBYSCORE", key, bound, bound], ["BLPOP", key, "leave", "0.001"], ["NOSUCH", key], ["GET"],
        ["EVAL", "return {1, 'x', false, {ok='FINE'}, 2.9, nil, 3}", "0"],
        ["EVAL", "return redis.pcall('GET', KEYS[1])", "1", key],
        ["EVAL", "return redis.call('HSET', KEYS[1], 'a', 1, 'b', 1.5, 'c', 2^53)", "1", key],
        ["EVAL", "return redis.call('ZADD', KEYS[1], ARGV[1] + 1, 'n')", "1", key, "7"],
        ["EVAL", "local r = redis.call('ZREVRANGE', KEYS[1], 0, -1, 'WITHSCORES'); return #r", "1", key],
    ])


def script_call(r, scripts):
    """One of dlock's scripts, as dlock calls it, or nearly so."""
    k, metadata, holds, wake, waiting, leave = KEYS
    now = int(time.time() * 1000000)
    history = f"{metadata}:history"
    token, other, hold = r.choice(TOKENS[:3]), r.choice(TOKENS), r.choice(HOLDS)
    fence = r.choice([1000, 2**52, now, now + 50 * 10**9])
    long = r.choice([200000, 600000, 3000000])
    name, keys, args = r.choice([
        ("acquire", [k, metadata, holds, wake, waiting, history],
         [token, long, r.choice([now, 5, now + 7200000000]), "o", "l", r.choice([0, 0, 10**12]), 0, other,
          r.choice(["", "w1", "w2"]), r.choice([0, 400000]), r.choice([0, 1, 2]), 0, 2, r.choice([0, 1])]),
        ("release", [k, metadata, holds, wake, waiting, history],
         [hold, r.choice([0, 0, 500000]), r.choice([0, 1]), r.choice([0, 1]), 300000, r.choice([0, 0, 1]), other,
          r.choice(["min-hold", "once-per"]), r.choice(["", "", "u@h:1"])]),
        ("renew", [k, metadata, holds, history], [hold, r.choice([0, long]), fence]),
        ("heal", [k, metadata, holds],
         [hold, long, fence, now // 1000 + r.choice([-100000, 100000]), "o", "l", 5,
          r.choice(["", "A" * 22 + ".y 100000", "B" * 22 + " 200000 A" + "A" * 21 + ".x 150000"])]),
        ("fence", [k, metadata, history], [token, fence]),
        ("leave", [k, waiting, leave], [r.choice(["w1", "w2"]), r.choice([0, 1])]),
        ("pass", [k, metadata, wake], [token]),
        ("undo", [k, history], [token]),
        ("share", [k, metadata, holds, wake, waiting, history],
         [token, long, now, "o", "l", 0, 0, other, r.choice(["", "w1", WRITER, READER]), r.choice([0, 400000]), 0, 0, 2]),
        ("unshare", [k, metadata, holds, wake, waiting, history], [token, 0, 0, r.choice([0, 1]), 300000]),
        ("invite", [k, metadata, waiting], []),
        ("slots", [waiting, k, metadata, leave, metadata], [r.choice(["", "w1", "w2"]), 400000, r.choice([0, 1])]),
        ("inspect", [k, metadata, holds, waiting], []),
        ("history", [k, metadata, waiting, history], r.choice([[], [1]])),
    ])
    return ["EVAL", scripts[name], len(keys), *keys, *args], name


def main():
    path, program, source, seconds = sys.argv[1:5]
    seed = int(sys.argv[5]) if len(sys.argv) > 5 else random.randrange(10**9)
    r = random.Random(seed)
    scripts = {p.stem: p.read_text().partition("\n")[2] for p in pathlib.Path(source, "src/lua").glob("*.lua")}
    for name in scripts:  # as build-aux/embed-lua.sh does
        scripts[name] = re.sub(r"-- include (\w+)\.lua", lambda m: scripts[m.group(1)], scripts[name])
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    real = Peer(server.makefile("rb"), server.makefile("wb"))
    stand_in = subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ours = Peer(stand_in.stdout, stand_in.stdin)
    end, count, counts = time.monotonic() + float(seconds), 0, {}
    while time.monotonic() < end:
        history, share = [], r.choice([0.2, 1.0])
        for peer in (real, ours):
            peer.ask("FLUSHALL")
        for _ in range(60):
            command, name = script_call(r, scripts) if r.random() < share else (any_command(r), None)
            asked = time.monotonic()
            answers = [peer.ask(*command) for peer in (real, ours)]
            shown = [name] + command[2:] if name else command
            history.append(f"{shown} -> {answers[0]}")
            if not same(*(nameless(x, command, name) for x in answers)) and not both_wrong(*answers, command):
                print("\n".join(history[-60:]))
                sys.exit(f"seed {seed}: {shown}: Redis says {answers[0]}, the stand-in {answers[1]}")
            if name == "leave":  # it leaves a key for a second, which may end here and not yet there
                there = [peer.ask("DEL", KEYS[5]) for peer in (real, ours)]
                assert there[0] == there[1] or time.monotonic() - asked > 0.9
            counts[name] = counts.get(name, 0) + 1
            count += 1
    print(f"{count} commands answered alike, {count - counts.get(None, 0)} of them scripts (seed {seed})")


main()
