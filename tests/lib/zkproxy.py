# SPDX-License-Identifier: MIT
"""The network of an ensemble of ZooKeeper servers: proxies between the servers, and before them for clients.

Between servers, bytes are passed on or held back, each direction by itself; a connection's end is held back too.

Before a server, whole frames are passed on, so that exactly one reply can be lost.  What happens is said by Rules (the
tests) or by another object with the same methods (the fault harness).  Words of rules, each for requests of one KIND,
the name of an operation in zkwire.py or "connect"; @N makes it count for the Nth such request from now on only:

    before:KIND[@N]   the connection ends, the server is never asked
    cut:KIND[@N]      the server is asked; the connection ends instead of the reply
    drop:KIND[@N]     the reply and all later ones of that connection are lost; it stays open
    hold:KIND[@N]     the request waits until the rule is gone
    late:KIND=SECONDS the reply comes late
    dark              nothing goes through any more, in neither direction; connections stay
"""

import asyncio
import collections
import struct
import threading
import time

from zkwire import FRAME_LIMIT, NAMES, XID_AUTH, XID_EVENT, XID_PING

POLL = 0.01
LEADER_LIMIT = 8  # less than initLimit


class Cut(Exception):
    """The connection ends here."""


class Rules:
    """What goes wrong, by the words of a test; and a line for each request: server, connection, kind, length."""

    def __init__(self, log):
        self.words, self.counts = [], collections.Counter()
        self.log = open(log, "a", encoding="ascii", buffering=1)

    def change(self, words):
        self.words, self.counts = list(words), collections.Counter()

    def find(self, what, kind, number):
        """None if no such rule is in force, else its value or ""."""
        for word in self.words:
            head, _, value = word.partition("=")
            head, _, only = head.partition("@")
            if head == f"{what}:{kind}" and only in ("", str(number)):
                return value
        return None

    async def on_request(self, link, kind, size):
        """Its number, by which the reply is known."""
        self.counts[kind] += 1
        number = self.counts[kind]
        if self.find("before", kind, number) is not None:
            raise Cut
        while self.find("hold", kind, number) is not None or "dark" in self.words:
            await asyncio.sleep(POLL)
        self.log.write(f"{link.place} {link.number} {kind} {size}\n")
        return number

    def on_sent(self, link, kind):
        """The server has been asked."""

    async def on_reply(self, _link, kind, number):
        """True if it is lost."""
        await asyncio.sleep(float(self.find("late", kind, number) or 0))
        while "dark" in self.words:
            await asyncio.sleep(POLL)
        if self.find("cut", kind, number) is not None:
            raise Cut
        return self.find("drop", kind, number) is not None


class Link:
    """One connection of a client through a proxy."""

    count = 0

    def __init__(self, rules, place, client):
        Link.count += 1
        self.number, self.rules, self.place = Link.count, rules, place
        self.port = client.get_extra_info("peername")[1]
        self.pending = collections.deque()
        self.deaf = False

    async def requests(self, reader, writer):
        kind = "connect"
        while True:
            head = await reader.readexactly(4)
            if head.isalpha():  # a four letter word has no length and no reply in frames
                writer.write(head)
                kind = "word"
                self.pending.append((None, "word", 0))
                continue
            size, = struct.unpack(">i", head)
            if not 0 <= size <= FRAME_LIMIT:
                raise Cut
            body = await reader.readexactly(size)
            xid = None
            if kind != "connect":
                xid, op = struct.unpack_from(">ii", body)
                kind = NAMES.get(op, str(op))
            number = await self.rules.on_request(self, kind, size)
            self.pending.append((xid, kind, number))
            writer.write(head + body)
            await writer.drain()
            self.rules.on_sent(self, kind)
            kind = ""

    def request_of(self, xid):
        """What a reply is to: the next request, but for events, which answer none."""
        if xid == XID_EVENT or not self.pending:
            return "event", 0
        if xid in (XID_PING, XID_AUTH):  # may come out of turn
            for entry in self.pending:
                if entry[0] == xid:
                    self.pending.remove(entry)
                    return entry[1:]
        return self.pending.popleft()[1:]

    async def replies(self, reader, writer):
        first = True
        while True:
            head = await reader.readexactly(4)
            if self.pending and self.pending[0][1] == "word":
                writer.write(head + await reader.read())
                await writer.drain()
                raise Cut
            body = await reader.readexactly(max(struct.unpack(">i", head)[0], 0))
            xid = None if first or len(body) < 4 else struct.unpack_from(">i", body)[0]
            kind, number = self.request_of(xid)
            first = False
            lost = await self.rules.on_reply(self, kind, number)
            self.deaf = self.deaf or lost
            if not self.deaf:
                writer.write(head + body)
                await writer.drain()


class Network:
    """All proxies, in a thread of their own."""

    def __init__(self):
        self.held = set()
        self.links = set()
        self.loop = asyncio.new_event_loop()
        self.loop.set_exception_handler(lambda loop, context: None)
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def listen(self, serve):
        """The port on which every connection is served."""
        async def begin():
            listener = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
            return listener.sockets[0].getsockname()[1]
        return asyncio.run_coroutine_threadsafe(begin(), self.loop).result()

    # -- Between servers ---------------------------------------------------------

    def between(self, i, j, quorum, election):
        """For these ports of J others, by which I reaches them."""
        return self.listen(self.wire(i, j, quorum, LEADER_LIMIT)), self.listen(self.wire(i, j, election, 0))

    def wire(self, i, j, port, patience):
        """A follower that was let in and then dropped would begin a new election, where one that is refused tries
        again: so it is let in once the new leader listens."""
        async def pump(reader, writer, way):
            try:
                while True:
                    data = await reader.read(65536)
                    while way in self.held:
                        await asyncio.sleep(POLL)
                    if not data:
                        break
                    writer.write(data)
                    await writer.drain()
            except OSError:
                pass
            writer.close()

        async def serve(reader, writer):
            end = time.monotonic() + patience
            while True:
                try:
                    there, away = await asyncio.open_connection("127.0.0.1", port)
                    break
                except OSError:
                    if time.monotonic() >= end:
                        writer.close()
                        return
                    await asyncio.sleep(POLL)
            await asyncio.gather(pump(reader, away, (i, j)), pump(there, writer, (j, i)))
        return serve

    def cut(self, i, j):
        self.held.add((i, j))

    def heal(self):
        self.held.clear()

    # -- Before a server ---------------------------------------------------------

    def before(self, port, rules, place):
        """A port by which clients reach the server, which is called PLACE; rules say what becomes of their requests."""
        async def serve(reader, writer):
            try:
                there, away = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.close()
                return
            link = Link(rules, place, writer)
            self.links.add(link)
            tasks = [asyncio.ensure_future(link.requests(reader, away)),
                     asyncio.ensure_future(link.replies(there, writer))]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self.links.discard(link)
            for end in (writer, away):
                end.close()
        return self.listen(serve)
