#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""fuzz_http.py STORMLOG_SERVER SECONDS [SEED]: sends valid requests with random mutations, thousands a minute.  The server should be built with
-Db_sanitize=address,undefined.  Fails if the server ends, reports that a sanitizer found something, or no longer answers."""
import os
import random
import re
import socket
import sys
import tempfile
import time
import urllib.parse

import runs
from served import Server, make_pack, name_of, wait_for

PROGRAM, SECONDS = os.path.abspath(sys.argv[1]), float(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 25
PATHS = ["/", "/search?q=project:x peak>1G", "/api/v1/runs?q=(a or b) -c&order=-peak&limit=5&skip=1", "/api/v1/runs/1", "/api/v1/runs/1/report", "/api/v1/runs/1/page", "/api/v1/runs/1/page?from=1&to=1000000", "/api/v1/compare?before=1&after=2", "/runs/1", "/runs/1/report",
         "/trends?field=peak", "/trends?metric=1&q=", "/compare?before=1&after=2", "/packs/{sha}", "/api/v1/packs/{sha}", "/api/v1/names?begins=tr", "/api/v1/metrics?of=stack&text=a",
         "/api/v1/history?metric=1", "/api/v1/history?field=leak&q={q}", "/search?q={q}&order=peak&limit=500", "/api/v1/metrics?q={q}", "/trends?field=peak&axis=commit&q={q}",
         "/static/style.css", "/runs/1/note", "/runs/1/pin", "/runs/1/unpin"]
TERMS = ["project:x", "peak>1G", "not", "or", "and", "(", ")", "-", "when>-7d", "when:2026-11", "function:a*", '"train py"', "leak<=0", "branch=?", "commit:3f", "session:1", "rank:0", "bundle=1",
         "oom>=18446744073709551616", "file=train.py", "*", '"', "place:", "when<9999-99", "peak>1e999", "\u00fc\u4e2d"]
WORDS = [b"%00", b"%", b"%zz", b"../", b"//", b"\0", b"\r\n", b"\r\n\r\n", b"'", b'"', b"<script>", b"9" * 30, b"-1", b"?", b"&&&", b"=", b"q=" + b"(" * 300, b"\xff\xfe", b"A" * 9000,
         b"Content-Length: 0\r\n", b"Content-Length: 99999999999\r\n", b"Transfer-Encoding: chunked\r\n", b"Content-Range: bytes 0-0/1\r\n", b"Expect: 100-continue\r\n",
         b"Authorization: Basic " + b"=" * 50 + b"\r\n", b"Host: a\r\nHost: b\r\n", b"Range: bytes=0-1,5-\r\n", b"Origin: null\r\n"]


def request(dice, server, pack):
    method = dice.choice(["GET", "GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"])
    query = " ".join(dice.choices(TERMS, k=dice.randrange(12)))
    path = dice.choice(PATHS).format(sha=name_of(pack), q=urllib.parse.quote(query)).replace(" ", "%20")
    body = pack[:dice.randrange(len(pack))] if method == "PUT" else b"text=hello&at=5" if method == "POST" else b""
    token = dice.choice([server.reads, server.writes, server.both, "wrong"])
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    if body:
        head += f"Content-Length: {len(body)}\r\n"
    data = bytearray(head.encode() + b"\r\n" + body)
    for _ in range(dice.choice([0, 1, 1, 2, 5])):
        at = dice.randrange(len(data))
        how = dice.randrange(4)
        if how == 0:
            data[at] = dice.randrange(256)
        elif how == 1:
            data[at:at] = dice.choice(WORDS)
        elif how == 2:
            del data[at:at + dice.randrange(1, 40)]
        else:
            data[at:at] = data[at:at + dice.randrange(1, 400)]
        if not data:
            return b"\n"
    return bytes(data)


def main():
    dice, count, answered = random.Random(SEED), 0, 0
    with tempfile.TemporaryDirectory(prefix="stormlog-fuzz-") as folder:
        server = Server(PROGRAM, os.path.join(folder, "store"))
        server.both = server.token("both", "--read", "--write")
        server.start()
        pack = make_pack(SEED, 4096)
        analyze = os.path.join(os.path.dirname(PROGRAM), "..", "analyzer", "stormlog-analyze")
        for n in range(2):  # so that every path leads to data
            server.put(runs.record(analyze, folder, n, [10 + n]))
        wait_for(lambda: server.get("/api/v1/runs/2")[0] == 200)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            data = request(dice, server, pack)
            with socket.create_connection(("127.0.0.1", server.port), timeout=0.2) as s:
                try:
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                    answered += bool(s.recv(65536))
                except OSError:
                    pass
            count += 1
            if server.process.poll() is not None or (count % 500 == 0 and re.search("ERROR: |runtime error", server.said())):
                break
        fine = server.process.poll() is None and server.get("/api/v1/runs")[0] == 200 and not re.search("ERROR: |runtime error", server.said())
        print(f"{count} requests, {answered} answered, seed {SEED}: {'fine' if fine else server.said()[-4000:]}")
        server.kill(15)
        if re.search("ERROR: |runtime error", server.said()):
            fine = False
            print(server.said()[-4000:])
    return 0 if fine and answered > count / 10 else 1


sys.exit(main())
