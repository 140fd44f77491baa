# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What weft-ctl(1) does, for a test in Python: programs of this user under weft-run --control are
listed and broken. docs/control.md has the requests.

    import weft_control
    for pid in weft_control.processes():
        for line in weft_control.ask(pid, "list"):
            print(line)
    weft_control.ask(pid, "port mlx5_0 down")
"""

import os
import socket
import stat

VERSION = "weft-control 1"
TIMEOUT_S = 5


class Refused(Exception):
    """The process did not do it; the reason is the text."""


def folder():
    """The folder of sockets; PermissionError if others could have made them."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    path = runtime + "/weft" if runtime.startswith("/") else f"/tmp/weft-{os.geteuid()}"
    about = os.lstat(path)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o77:
        raise PermissionError(f"{path} is not a folder of this user alone")
    return path


def _ask_page(sock, request):
    sock.send(f"{VERSION} {request}".encode())
    lines = sock.recv(65536).decode().splitlines()
    if lines[:1] != [VERSION] or lines[-1:] != ["end"]:
        raise ConnectionError("the answer is not of " + VERSION)
    for line in lines:
        if line.startswith("error "):
            raise Refused(line[len("error "):])
    return lines[1:-1]


def ask(pid, request):
    """Process pid carries out the request: the lines of its answer, of "list" all pages."""
    lines = []
    page = "list 0" if request == "list" else request
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.settimeout(TIMEOUT_S)
        sock.bind("")
        sock.connect(f"{folder()}/{pid}")
        while page:
            lines += _ask_page(sock, page)
            page = None
            if lines and lines[-1].startswith("more "):
                page = "list " + lines.pop().split()[1]
    return lines


def processes():
    """The processes that serve."""
    try:
        names = os.listdir(folder())
    except FileNotFoundError:
        return []
    found = []
    for name in filter(str.isdecimal, names):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.connect(f"{folder()}/{name}")
            found.append(int(name))
        except OSError:
            pass
    return found
