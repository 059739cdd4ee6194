#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers that speak ZooKeeper's protocol, and lie.

    zkservers.py DIR

Listens on a free port of 127.0.0.1, which is written to DIR/port, and prints "READY".  What it does wrong is in DIR/lie,
and is read again for each request; without that file it is a ZooKeeper of one client with one lock, which grants all.
A lie is KIND=NAME: the answer to KIND (an operation in zkwire.py, or "connect") is that one of LIES below.
"""

import os
import random
import socket
import struct
import sys
import time

from servers import exactly, serve, write_port
from zkwire import NAMES, XID_EVENT, XID_PING, frame, pack_text, take_text

SESSION = 0x1234567890abcdef
ZXID = 0x500000001
LONG_LEASE = b"dlock 1\nttl_ms 999999999999999999\nsince_ms 999999999999999999\nkept min-hold\n"
OK_END = struct.pack(">i?i", -1, True, -1)


def stat(czxid=ZXID, owner=SESSION, version=0, length=10, children=0, time_ms=1):
    return struct.pack(">qqqqiiiqiiq", czxid, czxid, time_ms, time_ms, version, 0, 0, owner, length, children, czxid)


def texts(count, *words):
    return struct.pack(">i", count) + b"".join(pack_text(word) for word in words)


class Conversation:
    """One connection; the names that its client has made."""

    def __init__(self, conn, folder):
        self.conn, self.folder = conn, folder
        self.names, self.data, self.number = [], b"{}", 0
        self.held = b""

    def lie(self, kind):
        try:
            with open(os.path.join(self.folder, "lie"), encoding="ascii") as file:
                words = file.read().split()
        except OSError:
            return None
        for word in words:
            for_kind, _, name = word.partition("=")
            if for_kind in (kind, "any"):
                return LIES[name]
        return None

    def request(self):
        head = exactly(self.conn, 4)
        if head == b"srvr":
            self.conn.sendall(b"This ZooKeeper instance is not currently serving requests\n")
            raise OSError
        return exactly(self.conn, struct.unpack(">i", head)[0])

    def converse(self):
        request = self.request()
        length, = struct.unpack_from(">i", request, 12)
        good = frame(struct.pack(">iiq", 0, length, SESSION), pack_text(b"p" * 16), b"\0")
        self.answer("connect", 0, good)
        while True:
            request = self.request()
            xid, op = struct.unpack_from(">ii", request)
            kind = NAMES.get(op, str(op))
            self.answer(kind, xid, self.good(kind, xid, request[8:]))
            if kind == "closeSession":
                return

    def answer(self, kind, xid, good):
        lie = self.lie(kind)
        held, self.held = self.held, b""
        self.conn.sendall(held + (lie(self, xid, good) if lie else good))

    def reply(self, xid, body=b"", code=0):
        return frame(struct.pack(">iqi", xid, ZXID, code), body)

    def good(self, kind, xid, body):
        if kind == "multi":
            return self.reply(xid, self.multi(body))
        if kind == "getChildren2":
            return self.reply(xid, texts(len(self.names), *self.names) + stat(children=len(self.names)))
        if kind == "getData":
            return self.reply(xid, pack_text(self.data) + stat())
        if kind in ("exists", "setData"):
            return self.reply(xid, stat())
        if kind in ("createContainer", "create", "create2"):
            path, _ = take_text(body, 0)
            return self.reply(xid, pack_text(path) + (b"" if kind == "create" else stat()))
        return self.reply(xid)

    def multi(self, body):
        results, at = b"", 0
        while True:
            op, done, _ = struct.unpack_from(">i?i", body, at)
            at += 9
            if done or op == -1:
                return results + OK_END
            path, at = take_text(body, at)
            if NAMES.get(op, "").startswith("create"):
                self.data, at = take_text(body, at)
                for _ in range(struct.unpack_from(">i", body, at)[0]):
                    _, beyond = take_text(body, at + 8)
                    _, at = take_text(body, beyond)
                    at -= 4
                at += 8
                path += b"%010d" % self.number
                self.number += 1
                self.names.append(path.rpartition(b"/")[2])
                results += struct.pack(">i?i", op, False, 0) + pack_text(path)
            else:
                at += 4
                results += struct.pack(">i?i", op, False, 0)


# -- Lies: each makes of a good answer what is sent instead -----------------------


def endless(make):
    def lie(talk, xid, _good):
        while True:
            talk.conn.sendall(make(talk, xid))
    return lie


def nothing(_talk, _xid, _good):
    time.sleep(3600)


def with_the_next(talk, _xid, good):
    talk.held = good
    return b""


def reset(talk, _xid, _good):
    talk.conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    talk.conn.close()
    return b""


def once_refused(talk, xid, _good):
    """As enforce.auth does, for the first request: the error, and the end of the connection."""
    talk.conn.sendall(talk.reply(xid, b"", -124))
    talk.conn.close()
    return b""


def in_parts(talk, _xid, good):
    for byte in good[:-1]:
        talk.conn.sendall(bytes([byte]))
        time.sleep(0.02)
    time.sleep(3600)


def at_random(talk, xid, good):
    rng = random.Random(len(good) + xid)
    return frame(good[4:20], rng.randbytes(rng.randrange(200)))


def with_length(length):
    return lambda talk, xid, good: struct.pack(">i", length) + good[4:]


def with_code(code):
    return lambda talk, xid, good: talk.reply(xid, b"", code)


def with_body(body):
    return lambda talk, xid, good: talk.reply(xid, body)


def session(length=6000, number=SESSION, password=pack_text(b"p" * 16), version=0, end=b"\0"):
    return lambda talk, xid, good: frame(struct.pack(">iiq", version, length, number), password, end)


def entry(name):
    """A list with our names and one more."""
    return lambda talk, xid, good: talk.reply(xid, texts(len(talk.names) + 1, *talk.names, name) + stat(children=9))


LIES = {
    # frames
    "nothing": nothing,
    "parts": in_parts,
    "close": lambda talk, xid, good: talk.conn.close() or b"",
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
    "positive-error": with_code(5),
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
    "stranger": entry(b"_c_\x1b[2J\xff\n-lock-0000000000"),
    "long-name": entry(b"n" * 100000 + b"-0000000000"),
    "far-number": entry(b"x--2147483648"),
    "digits": entry(b"0" * 300),
    "no-name": entry(b""),
    "path": entry(b"../../x-0000000000"),
    "short-stat": lambda talk, xid, good: talk.reply(xid, stat()[:40]),
    "no-fence": lambda talk, xid, good: talk.reply(xid, stat(czxid=0)),
    "negative-fence": lambda talk, xid, good: talk.reply(xid, stat(czxid=-1)),
    "far-fence": lambda talk, xid, good: talk.reply(xid, stat(czxid=(1 << 63) - 1)),
    "first-time": lambda talk, xid, good: talk.reply(xid, pack_text(LONG_LEASE) + stat(time_ms=-(1 << 63))),
    "last-time": lambda talk, xid, good: talk.reply(xid, pack_text(LONG_LEASE) + stat(time_ms=(1 << 63) - 1)),
    "not-ours": lambda talk, xid, good: talk.reply(xid, stat(owner=5)),
    "long-data": lambda talk, xid, good: talk.reply(xid, pack_text(b"[" * 2000000) + stat()),
    "bad-data": lambda talk, xid, good: talk.reply(
        xid, pack_text(b"dlock 1\nowner \x1b[2J%1B\xff\nlabel %0A\nttl_ms 5\nhold \x01\n") + stat()),
    "many-holds": lambda talk, xid, good: talk.reply(
        xid, pack_text(b"dlock 1\nhold first\n" + b"".join(b"hold %d\n" % n for n in range(63))) + stat()),
    "no-results": with_body(OK_END),
    "many-results": with_body((struct.pack(">i?i", 1, False, 0) + pack_text(b"/x0000000001")) * 500 + OK_END),
    "no-end": with_body(struct.pack(">i?i", 1, False, 0) + pack_text(b"/x0000000001")),
    "other-results": with_body((struct.pack(">i?i", 13, False, 0)) * 3 + OK_END),
    "other-path": with_body((struct.pack(">i?i", 1, False, 0) + pack_text(b"\x1b/no number")) * 3 + OK_END),
    "failed-results": with_body((struct.pack(">i?ii", -1, False, -2, -2)) * 3 + OK_END),
}


def main():
    folder = sys.argv[1]
    if folder == "--lies":
        print(*LIES, sep="\n")
        return
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    write_port(os.path.join(folder, "port"), listener)
    print("READY", flush=True)
    serve(listener, lambda conn: Conversation(conn, folder).converse())


if __name__ == "__main__":
    main()
