#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server of zkfake.py that lies.

    zkservers.py DIR

Its port is written to DIR/port; then "READY" is printed.  What it does wrong is in DIR/lie, and is read again for each
request; without that file it does nothing wrong, but that sessions never expire.  A lie is KIND=NAME: the answer to KIND
(an operation in zkwire.py, "connect", or "word" of four letters) is that one of LIES below.

    zkservers.py --lies    the names of all
"""

import asyncio
import functools
import inspect
import random
import signal
import socket
import struct
import sys

import zkfake
import zkproxy
from ensemble import write_ports
from zkwire import XID_EVENT, XID_PING, frame, pack_text, take_text

LONG_LEASE = b"dlock 1\nttl_ms 999999999999999999\nsince_ms 999999999999999999\nkept min-hold\n"
OK_END = struct.pack(">i?i", -1, True, -1)
STAT_SIZE = 68
STRANGER = b"_c_\x1b[2J\xff\n-lock-0000000000"
FAR_NUMBER = b"x--2147483648"


def stat(data=b"0123456789", czxid=1, owner=0, time_ms=1):
    node = zkfake.Node(data, [], czxid, owner)
    node.ctime = node.mtime = time_ms
    return node.stat()


class Liar(zkfake.Link):
    def __init__(self, folder, *ends):
        super().__init__(*ends)
        self.folder, self.held, self.body = folder, b"", b""

    async def answer(self, xid, kind, body):
        self.body = body
        await super().answer(xid, kind, body)

    def lie(self, kind):
        try:
            with open(f"{self.folder}/lie", encoding="ascii") as file:
                name = dict(word.split("=") for word in file.read().split()).get(kind)
        except FileNotFoundError:
            return None
        return LIES[name] if name else None

    async def send(self, kind, xid, good):
        held, self.held = self.held, b""
        lie = self.lie(kind)
        if self.session:
            self.session.deadline = float("inf")
        reply = lie(self, xid, good) if lie else good
        self.writer.write(held + (await reply if inspect.isawaitable(reply) else reply))

    def reply(self, xid, body=b"", code=0):
        return frame(struct.pack(">iqi", xid, self.tree.zxid, code), body)


# -- Lies: each makes of a good answer what is sent instead -----------------------


def endless(make):
    async def lie(talk, xid, _good):
        while True:
            talk.writer.write(make(talk, xid))
            await talk.writer.drain()
    return lie


async def nothing(talk, _xid, _good):
    await talk.reader.read()
    return b""


def with_the_next(talk, _xid, good):
    talk.held = good
    return b""


def reset(talk, _xid, _good):
    talk.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    talk.writer.close()
    return b""


def once_refused(talk, xid, _good):
    """As enforce.auth does, for the first request: the error, and the end of the connection."""
    talk.writer.write(talk.reply(xid, b"", -124))
    talk.writer.close()
    return b""


async def in_parts(talk, xid, good):
    for byte in good[:-1]:
        talk.writer.write(bytes([byte]))
        await asyncio.sleep(0.02)
    return await nothing(talk, xid, good)


def at_random(talk, xid, good):
    rng = random.Random(len(good) + xid)
    return frame(good[4:20], rng.randbytes(rng.randrange(200)))


def with_length(length):
    return lambda talk, xid, good: struct.pack(">i", length) + good[4:]


def with_code(code):
    return lambda talk, xid, good: talk.reply(xid, b"", code)


def with_body(body):
    return lambda talk, xid, good: talk.reply(xid, body)


def session(length=6000, number=None, password=None):
    def lie(talk, _xid, good):
        given, = struct.unpack_from(">q", good, 12)
        return frame(struct.pack(">iiq", 0, length, given if number is None else number), password or good[20:-1], b"\0")
    return lie


def entry(name, owner=None):
    """The list with one name more; its node is only there if it is said whose it is."""
    def lie(talk, xid, good):
        if owner:
            path = take_text(talk.body.ljust(4, b"\0"), 0)[0] + b"/" + name
            talk.tree.nodes[path] = zkfake.Node(b"{}", zkfake.OPEN, 1, owner)
        count, = struct.unpack(">i", good[20:24].rjust(4, b"\0"))
        return talk.reply(xid, struct.pack(">I", count + 1) + good[24:-STAT_SIZE] + pack_text(name) + good[-STAT_SIZE:])
    return lie


def with_stat(data=None, **values):
    """Of a node that is the client's."""
    text = b"" if data is None else pack_text(data)
    return lambda talk, xid, good: talk.reply(xid, text + stat(**{"owner": talk.session.number, **values}))


def result(op, code=0):
    return struct.pack(">i?i", op, False, code)


LIES = {
    # frames
    "nothing": nothing,
    "parts": in_parts,
    "close": lambda talk, xid, good: talk.writer.close() or b"",
    "reset": reset,
    "negative": with_length(-5),
    "huge": with_length(2147483647),
    "large": with_length(200 << 20),
    "zero": with_length(0),
    "with-next": with_the_next,
    "half": lambda talk, xid, good: frame(good[4:4 + max(len(good) // 2 - 4, 0)]),
    "header": lambda talk, xid, good: frame(good[4:12]),
    "more": lambda talk, xid, good: frame(good[4:], bytes(1 << 20)),
    "twice": lambda talk, xid, good: good + good,
    "random": at_random,
    "xid": lambda talk, xid, good: talk.reply(xid + 7, good[20:]),
    "pings": endless(lambda talk, xid: talk.reply(XID_PING) * 100),
    "events": endless(lambda talk, xid: talk.reply(XID_EVENT, struct.pack(">ii", 3, 3) + pack_text(b"/x")) * 100),
    "event": lambda talk, xid, good: talk.reply(XID_EVENT, b"\xff\xff") + good,
    "leaderless": lambda talk, xid, good: b"This ZooKeeper instance is not currently serving requests\n",
    "unlisted": lambda talk, xid, good: b"srvr is not executed because it is not in the whitelist.\n",
    # sessions
    "expired": session(length=0, number=0, password=pack_text(bytes(16))),
    "other": session(number=77),
    "no-time": session(length=0),
    "negative-time": session(length=-1),
    "long-time": session(length=2147483647),
    "no-password": session(password=struct.pack(">i", -1)),
    "long-password": session(password=pack_text(bytes(5000))),
    "bad-password": session(password=struct.pack(">i", 2000000000)),
    # values
    "unknown-error": with_code(-99999),
    "positive-error": with_code(1),
    "unimplemented": with_code(-6),
    "throttled": with_code(-127),
    "expired-reply": with_code(-112),
    "no-node": with_code(-101),
    "bad-version": with_code(-103),
    "enforce-auth": once_refused,
    "count": with_body(struct.pack(">i", 2147483647) + stat()),
    "negative-count": with_body(struct.pack(">i", -2) + stat()),
    "text": with_body(struct.pack(">ii", 1, 2000000000) + stat()),
    "negative-text": with_body(struct.pack(">ii", 1, -7) + stat()),
    "nobody": with_body(struct.pack(">i", 0) + stat()),
    "stranger": entry(STRANGER),
    "strange-holder": entry(STRANGER, 5),
    "far-holder": entry(FAR_NUMBER, 5),
    "long-name": entry(b"n" * 100000 + b"-0000000000"),
    "far-number": entry(FAR_NUMBER),
    "digits": entry(b"0" * 300),
    "no-name": entry(b""),
    "path": entry(b"../../x-0000000000"),
    "short-stat": lambda talk, xid, good: talk.reply(xid, stat()[:40]),
    "no-fence": with_stat(czxid=0),
    "negative-fence": with_stat(czxid=-1),
    "far-fence": with_stat(czxid=(1 << 63) - 1),
    "first-time": with_stat(LONG_LEASE, time_ms=-(1 << 63)),
    "last-time": with_stat(LONG_LEASE, time_ms=(1 << 63) - 1),
    "not-ours": with_stat(owner=5),
    "long-data": with_stat(b"[" * 2000000),
    "bad-data": with_stat(b"dlock 1\nowner \x1b[2J%1B\xff\nlabel %0A\nttl_ms 5\nhold \x01\n"),
    "many-holds": with_stat(b"dlock 1\nhold first\n" + b"".join(b"hold %d\n" % n for n in range(63))),
    "no-results": with_body(OK_END),
    "many-results": with_body((result(1) + pack_text(b"/x0000000001")) * 500 + OK_END),
    "no-end": with_body(result(1) + pack_text(b"/x0000000001")),
    "other-results": with_body(result(13) * 3 + OK_END),
    "other-path": with_body((result(1) + pack_text(b"\x1b/no number")) * 3 + OK_END),
    "failed-results": with_body((result(-1, -2) + struct.pack(">i", -2)) * 3 + OK_END),
}


def main():
    folder = sys.argv[1]
    if folder == "--lies":
        print(*LIES, sep="\n")
        return
    ensemble = zkfake.Ensemble(zkproxy.Network())
    ensemble.link = functools.partial(Liar, folder)
    ensemble.start()
    write_ports(f"{folder}/port", ensemble.ports()[:1])
    print("READY", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
