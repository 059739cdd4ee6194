#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TLS servers that misbehave.

    tlsservers.py DIR CERTIFICATE KEY MODE...

Each MODE listens on a free TCP port of 127.0.0.1 that is written to DIR/MODE.port.  "READY" is printed when all listen.

    surplus      answers what a sentinel and a server of a Cluster are asked, with 12 KB more in the same record
    says         answers with the bytes in DIR/answer; for ZooKeeper, which is not asked in RESP, too

Somebody on the path, who has no certificate.  After the ClientHello they send without end:

    hello        HelloRequest, which TLS 1.2 ignores during a handshake
    hellos       the same, one in each record
    alert        alerts of level warning
    ccs          ChangeCipherSpec
    empty        records without content
    refuse       one fatal alert, handshake_failure

A server with a certificate.  After the handshake it sends without end:

    update       KeyUpdate (TLS 1.3)
    ticket       NewSessionTicket (TLS 1.3)
    again        HelloRequest (TLS 1.2)
"""

import ctypes
import os
import select
import socket
import ssl
import sys
import threading
import time

from servers import bulks, serve, write_port

FOLDER, CERTIFICATE, KEY = sys.argv[1:4]


def record(kind, content):
    return b"%c\x03\x03" % kind + len(content).to_bytes(2, "big") + content


def on_path(data, last=False):
    """After the ClientHello these bytes, over and over."""
    def mode(conn):
        conn.recv(65536)
        conn.sendall(data)
        while not last:
            conn.sendall(data)
        conn.recv(65536)
    return mode


def answering(answer):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)

    def mode(conn):
        with context.wrap_socket(conn, server_side=True) as secure:
            while request := secure.recv(65536):
                secure.sendall(answer(secure.getsockname()[1], request))
    return mode


def surplus(port, request):
    if b"CLUSTER" in request:
        answer = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n" % port
    elif b"SENTINEL" in request:
        answer = bulks(b"127.0.0.1", b"%d" % port)
    else:
        answer = b"-ERR no\r\n"
    return answer + b"x" * 12288


def says(_, __):
    with open(os.path.join(FOLDER, "answer"), "rb") as file:
        return file.read()


# Python's ssl cannot send the records below.
TLS1_2, TLS1_3, PEM = 0x0303, 0x0304, 1
SET_MIN, SET_MAX = 123, 124


def library():
    lib = ctypes.CDLL("libssl.so.3")
    for name in ("SSL_CTX_new", "SSL_new", "TLS_server_method"):
        getattr(lib, name).restype = ctypes.c_void_p
    return lib


def with_certificate(version, send):
    """After a handshake of this version call `send` without end, which writes to the socket."""
    lib = library()
    context = ctypes.c_void_p(lib.SSL_CTX_new(ctypes.c_void_p(lib.TLS_server_method())))
    for bound in (SET_MIN, SET_MAX):
        lib.SSL_CTX_ctrl(context, bound, ctypes.c_long(version), None)
    lib.SSL_CTX_use_certificate_chain_file(context, CERTIFICATE.encode())
    lib.SSL_CTX_use_PrivateKey_file(context, KEY.encode(), PEM)

    def mode(conn):
        tls = ctypes.c_void_p(lib.SSL_new(context))
        lib.SSL_set_fd(tls, conn.fileno())
        gone = select.poll()
        gone.register(conn, 0)
        while lib.SSL_accept(tls) == 1 and not gone.poll(0) and send(lib, tls):  # to send a ticket fails never
            pass
    return mode


def again(lib, tls):
    # A client that declines does so by an alert, which ends a renegotiation that SSL_do_handshake() waits for.
    return lib.SSL_renegotiate(tls) == 1 and lib.SSL_do_handshake(tls) == 1


def update(lib, tls):
    return lib.SSL_key_update(tls, 0) == 1 and lib.SSL_do_handshake(tls) == 1


def ticket(lib, tls):
    return lib.SSL_new_session_ticket(tls) == 1 and lib.SSL_do_handshake(tls) == 1


HELLO = b"\0\0\0\0"
MODES = {
    "surplus": lambda: answering(surplus), "says": lambda: answering(says),
    "hello": lambda: on_path(record(22, HELLO * 4096)), "hellos": lambda: on_path(record(22, HELLO) * 4096),
    "alert": lambda: on_path(record(21, b"\1\x5a") * 4096), "ccs": lambda: on_path(record(20, b"\1") * 4096),
    "empty": lambda: on_path(record(22, b"") * 4096), "refuse": lambda: on_path(record(21, b"\2\x28"), last=True),
    "update": lambda: with_certificate(TLS1_3, update), "ticket": lambda: with_certificate(TLS1_3, ticket),
    "again": lambda: with_certificate(TLS1_2, again),
}


def main():
    for name in sys.argv[4:]:
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        write_port(os.path.join(FOLDER, name + ".port"), listener)
        threading.Thread(target=serve, args=(listener, MODES[name]()), daemon=True).start()
    print("READY", flush=True)
    while True:
        time.sleep(3600)


main()
