#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Servers that misbehave, and a proxy that loses what passes through it.

    servers.py DIR MODE...

Each MODE listens on the unix socket DIR/MODE.sock; tcp/MODE on a free TCP port of
127.0.0.1 that is written to DIR/MODE.port.  "READY" is printed when all listen.

    silent       accepts, reads, never says anything
    close        accepts and closes
    http         answers as a web server does
    random       answers with random bytes
    endless      answers with a line that never ends
    bulk         announces a string of 2 GiB
    array        announces an array of two billion elements
    nested       answers with arrays in arrays, 200,000 deep
    truncated    begins an answer and closes
    trickle      answers with a byte every 20 ms that never make a whole reply
    lengths      answers with lengths and numbers that no server may send
    yes          answers +OK to whatever it is asked
    types        answers scripts with a holder whose type would move the cursor
    rounds       answers SCAN with a cursor that never changes
    says         answers each command by what is in DIR/says.COMMAND (EVALSHA by says.EVAL), in which \\x1b and
                 so on are as in Python and {N} is the Nth word of what was asked; others by +OK
    moved        (TCP) a Cluster of one server, which says of every key that it has moved here
    late=PORT    (TCP) passes everything on to that TCP port; what comes back is 40 ms late
    refused      (TCP) a port on which nothing listens
    unanswered   a port that does not answer a SYN, a socket whose queue is full

    proxy=PATH   passes everything on to the Redis on the unix socket PATH.  DIR/rules
                 holds words that say what goes wrong from now on with calls of scripts
                 (EVAL, EVALSHA), and is read again for each; @N makes a rule count for
                 the Nth call only (NOSCRIPT answers do not count):
                     drop[@N]           the reply and all later ones of that connection are lost,
                                        as if half of it were broken; it stays open
                     cut[@N]            the connection is closed instead of the reply
                     before[@N]         the connection is closed, Redis never asked
                     error[@N]          the reply is an error, Redis never asked
                     hold[@N][=WORD]    Redis is asked when the rule is gone; the log says HOLD N before; with
                                        WORD only if that is an argument of the call
                     delay[@N]=SECONDS  the reply comes late, or when the rule is gone
                     trickle[@N]=SECONDS  the reply comes byte by byte, that far apart
                 and one rule that is for all commands:
                     far=SECONDS        the server is that far away: requests and replies take so long
                 DIR/proxy.log has a line for each command that Redis was sent: its
                 name and, of scripts, the number of the call.
"""

import os
import random
import socket
import struct
import sys
import threading
import time


def read_all(conn):
    while conn.recv(65536):
        pass


def sends(data):
    """A server that answers with these bytes, whatever comes, and then with nothing."""
    def mode(conn):
        conn.recv(65536)
        conn.sendall(data)
        read_all(conn)
    return mode


def begins(data):
    """The same, but that it closes the connection then."""
    def mode(conn):
        conn.recv(65536)
        conn.sendall(data)
    return mode


def goes_on(data, pause):
    """A server whose answer is a line that never ends: these bytes, over and over."""
    def mode(conn):
        conn.recv(65536)
        conn.sendall(b"+")
        while True:
            conn.sendall(data)
            time.sleep(pause)
    return mode


def yes(conn):
    while conn.recv(65536):
        conn.sendall(b"+OK\r\n" * 8)


def answer_each(answer):
    """A server that answers each command by what `answer` makes of its words."""
    def mode(conn):
        reader = Reader(conn)
        while True:
            conn.sendall(answer(reader.message()[1]))
    return mode


def says(conn):
    def answer(words):
        name = words[0].decode("latin-1").upper().replace("EVALSHA", "EVAL")
        try:
            with open(os.path.join(sys.argv[1], "says." + name)) as file:
                text = file.read()
        except OSError:
            return b"+OK\r\n"
        text = text.encode().decode("unicode_escape").encode("latin-1")
        for number, word in enumerate(words):
            text = text.replace(b"{%d}" % number, word)
        return text
    answer_each(answer)(conn)


def bulks(*words):
    return b"*%d\r\n" % len(words) + b"".join(
        b":%d\r\n" % w if isinstance(w, int) else b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def typed(words):
    if words[2:3] == [b"1"]:  # break.lua, the only one of one key
        return b"$1\r\n-\r\n"
    return bulks(0, b"t", 20000, 0, b"", b"", -1, 0, 0, b"\x1b[2J\nx", 1, 0)


def moved(conn):
    host, port = conn.getsockname()
    place = bulks(host.encode(), port, b"id")

    def answer(words):
        if words[0] == b"CLUSTER":
            return b"*1\r\n*3\r\n:0\r\n:16383\r\n" + place
        if words[0] == b"ROLE":
            return bulks(b"master", 0, b"")
        if words[0] in (b"EVAL", b"EVALSHA"):
            return b"-MOVED 1 %s:%d\r\n" % (host.encode(), port)
        return b"+OK\r\n"
    answer_each(answer)(conn)


def rounds(words):
    return b"*2\r\n$1\r\n1\r\n*0\r\n" if words[0] == b"SCAN" else b"+OK\r\n"


MODES = {
    "silent": read_all,
    "close": lambda conn: None,
    "http": begins(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 12\r\n"
                   b"Connection: close\r\n\r\nBad Request\n"),
    "random": sends(random.Random(20).randbytes(65536)),
    "endless": goes_on(b"a" * 65536, 0),
    "bulk": sends(b"$2147483647\r\n" + b"a" * 65536),
    "array": sends(b"*2147483647\r\n" + b":1\r\n" * 1000),
    "nested": sends(b"*1\r\n" * 200000),
    "truncated": begins(b"*4\r\n$7\r\ngran"),
    "trickle": goes_on(b"a", 0.02),
    "lengths": sends(b"$-5\r\n*-7\r\n:99999999999999999999999999\r\n$x\r\n"),
    "yes": yes, "types": answer_each(typed), "says": says, "moved": moved, "rounds": answer_each(rounds),
}


def late(port):
    def copy(source, target, delay):
        while True:
            data = source.recv(65536)
            time.sleep(delay)
            if not data:
                target.shutdown(socket.SHUT_WR)
                return
            target.sendall(data)

    def mode(conn):
        with socket.create_connection(("127.0.0.1", port)) as server:
            threading.Thread(target=copy, args=(conn, server, 0), daemon=True).start()
            copy(server, conn, 0.04)

    return mode


class Closed(OSError):
    """The peer has gone."""


def parse(data, at=0):
    """The strings of the RESP message that begins there, in order, and where it ends; None if it isn't complete."""
    line = data.find(b"\r\n", at)
    if line < 0:
        return None
    kind, size, end = data[at:at + 1], data[at + 1:line], line + 2
    if kind == b"$" and size != b"-1":
        end += int(size) + 2
        return ([data[line + 2:end - 2]], end) if end <= len(data) else None
    words = [] if kind in b"$*" else [data[at:line]]
    for _ in range(int(size) if kind == b"*" else 0):
        part = parse(data, end)
        if part is None:
            return None
        words, end = words + part[0], part[1]
    return words, end


class Reader:
    """Cuts a stream into whole RESP messages: their bytes as they came, and their strings."""

    def __init__(self, conn):
        self.conn = conn
        self.buffer = b""

    def message(self):
        while (parsed := parse(self.buffer)) is None:
            more = self.conn.recv(65536)
            if not more:
                raise Closed
            self.buffer += more
        words, end = parsed
        message, self.buffer = self.buffer[:end], self.buffer[end:]
        return message, words


class Peer:
    """Somebody who speaks Redis's protocol and is asked, by two files.  Statuses and errors keep their mark."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def ask(self, *words):
        self.writer.write(bulks(*(w if isinstance(w, bytes) else str(w).encode() for w in words)))
        self.writer.flush()
        return self.read()

    def read(self):
        line = self.reader.readline()
        mark, rest = line[:1], line[1:-2]
        if not line.endswith(b"\r\n") or mark not in b"+-:$*":
            raise Closed(f"no reply: {line!r}")
        if mark in b"+-":
            return line[:-2].decode("latin-1")
        if mark == b":":
            return int(rest)
        if rest == b"-1":
            return None
        if mark == b"*":
            return [self.read() for _ in range(int(rest))]
        return self.reader.read(int(rest) + 2)[:-2].decode("latin-1")


class Proxy:
    """What all connections through one proxy share: its rules, its log, its count."""

    def __init__(self, folder, upstream):
        self.folder = folder
        self.upstream = upstream
        self.lock = threading.Lock()
        self.calls = 0
        self.log_file = open(os.path.join(folder, "proxy.log"), "a", buffering=1)

    def log(self, text):
        with self.lock:
            self.log_file.write(text + "\n")

    def count(self):
        with self.lock:
            self.calls += 1
            return self.calls

    def uncount(self):
        with self.lock:
            self.calls -= 1

    def rule(self, name, call):
        """None if the rule is not in force for that call, else its value or ""."""
        try:
            with open(os.path.join(self.folder, "rules")) as file:
                words = file.read().split()
        except OSError:
            return None
        for word in words:
            head, _, value = word.partition("=")
            head, _, number = head.partition("@")
            if head == name and number in ("", str(call)):
                return value
        return None

    def holds(self, call, strings):
        word = self.rule("hold", call)
        return word is not None and (word == "" or word.encode() in strings)

    def delay(self, call):
        start = time.monotonic()
        while time.monotonic() - start < float(self.rule("delay", call) or 0):
            time.sleep(0.01)

    def answer(self, client, call, reply):
        """Pass a reply on as the rules have it; false when the connection is to end."""
        step = None
        if call:
            if self.rule("cut", call) is not None:
                return False
            self.delay(call)
            step = self.rule("trickle", call)
        try:
            for part in [reply] if step is None else [bytes([byte]) for byte in reply]:
                client.sendall(part)
                time.sleep(float(step or 0))
        except OSError:
            pass  # It has closed, but what it sent before that still counts.
        return True

    def __call__(self, client):
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self.upstream)
            self.converse(client, server)
        finally:
            server.close()

    def converse(self, client, server):
        """One request after the other, so that each reply's request is known."""
        requests, replies, deaf = Reader(client), Reader(server), False
        while True:
            raw, strings = requests.message()
            name = strings[0].upper().decode("latin-1") if strings else ""
            call = self.count() if name in ("EVAL", "EVALSHA") else 0
            if call and self.rule("before", call) is not None:
                return
            if call and self.holds(call, strings):
                self.log(f"HOLD {call}")
                while self.holds(call, strings):
                    time.sleep(0.01)
            if call and self.rule("error", call) is not None:
                client.sendall(b"-BUSY a script is running\r\n")
                continue
            time.sleep(float(self.rule("far", 0) or 0))
            server.sendall(raw)
            self.log(f"{name} {call}" if call else name)
            reply, _ = replies.message()
            time.sleep(float(self.rule("far", 0) or 0))
            if call and reply.startswith(b"-NOSCRIPT"):
                self.uncount()
                call = 0
            deaf = deaf or bool(call) and self.rule("drop", call) is not None
            if not deaf and not self.answer(client, call, reply):
                return


def serve(listener, mode):
    def one(conn):
        try:
            mode(conn)
        except (OSError, struct.error):
            pass
        finally:
            conn.close()

    while True:
        conn, _ = listener.accept()
        threading.Thread(target=one, args=(conn,), daemon=True).start()


def exactly(conn, size):
    data = b""
    while len(data) < size:
        more = conn.recv(size - len(data))
        if not more:
            raise Closed
        data += more
    return data


def write_port(path, listener):
    with open(path, "w") as file:
        print(listener.getsockname()[1], file=file)


def listen(folder, word):
    """A listening socket and what serves it; what serves is None where nothing shall."""
    name, _, value = word.removeprefix("tcp/").partition("=")
    if word.startswith("tcp/"):
        listener = socket.socket(socket.AF_INET)
        listener.bind(("127.0.0.1", 0))
        write_port(os.path.join(folder, name + ".port"), listener)
    else:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(folder, name + ".sock"))
    if name == "refused":
        return listener, None
    if name == "unanswered":
        return fill_backlog(listener), None
    listener.listen(64)
    if name == "late":
        return listener, late(int(value))
    return listener, Proxy(folder, value) if name == "proxy" else MODES[name]


waiting = []


def fill_backlog(listener):
    """Fill the queue of connections that nobody accepts: further ones get no answer."""
    listener.listen(0)
    for _ in range(8):
        client = socket.socket(listener.family)
        client.settimeout(0.2)
        waiting.append(client)
        try:
            client.connect(listener.getsockname())
        except OSError:
            break
    return listener


def main():
    folder, words = sys.argv[1], sys.argv[2:]
    keep = []
    for word in words:
        listener, mode = listen(folder, word)
        keep.append(listener)
        if mode is not None:
            threading.Thread(target=serve, args=(listener, mode), daemon=True).start()
    print("READY", flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
