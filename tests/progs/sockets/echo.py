# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""echo.py listen|connect PORT: says again what its peers, or its peer, say, over TCP; knows nothing of iWARP."""

import socket
import socketserver
import sys


def echo(sock):
    try:
        while octets := sock.recv(65536):
            sock.sendall(octets)
    except OSError:
        pass


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        echo(self.request)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256


where = ("127.0.0.1", int(sys.argv[2]))
if sys.argv[1] == "listen":
    Server(where, Handler).serve_forever()
else:
    echo(socket.create_connection(where))
