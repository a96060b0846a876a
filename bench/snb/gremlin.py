"""Servers that take Gremlin texts over HTTP: FicusDB and Gremlin Server."""

import json
import socket
import subprocess
import sys
import time
import urllib.parse

from answers import fill


class Gremlin:
    """A client of one connection. `fields` are sent beside the text; `server` is a process that ends with this."""

    def __init__(self, url, timeout_s, fields=None, server=None):
        self.address, self.timeout_s, self.server = urllib.parse.urlparse(url).netloc, timeout_s, server
        self.fields = fields or {"evaluationTimeout": int(timeout_s * 1000)}
        self._connect()

    def _connect(self):
        host, port = self.address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=2 * self.timeout_s + 10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, query, parameters):
        """Rows, and seconds until the last byte of the answer."""
        return self.text(fill(query["gremlin"], parameters))

    def text(self, gremlin):
        body = json.dumps({"gremlin": gremlin} | self.fields)
        try:
            status, text, seconds = self._post(body)
        except ConnectionError:
            # A server may close a connection that waited for the other engines.
            self._connect()
            status, text, seconds = self._post(body)
        answer = json.loads(text)
        if status != 200:
            self._connect()
            if seconds >= 0.95 * self.timeout_s:
                raise TimeoutError
            raise RuntimeError(answer.get("message") or answer)
        return [list(row.values()) if isinstance(row, dict) else [row] for row in answer["result"]["data"]], seconds

    def _post(self, body):
        """Status, text and seconds of one request. On bare sockets: Python's own HTTP client takes as long as a small query, up to 0.3 ms more."""
        body = body.encode()
        request = (f"POST /gremlin HTTP/1.1\r\nHost: {self.address}\r\nContent-Type: application/json\r\n"
                   f"Accept: application/vnd.gremlin-v3.0+json;types=false\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
        begun = time.perf_counter()
        self.socket.sendall(request)
        head, text = self._until(b"\r\n\r\n", b"")
        fields = head.lower()
        if b"\ncontent-length:" in fields:
            length = int(fields.split(b"\ncontent-length:")[1].split(b"\r")[0])
            while len(text) < length:
                text += self._receive()
        elif b"\ntransfer-encoding: chunked" in fields:
            text = self._chunks(text)
        else:
            raise RuntimeError(f"an answer of unknown length: {head}")
        return int(head.split(b" ", 2)[1]), text, time.perf_counter() - begun

    def _receive(self):
        more = self.socket.recv(1 << 18)
        if not more:
            raise ConnectionResetError("the server has closed the connection")
        return more

    def _until(self, end, text):
        """What comes before `end`, and behind it."""
        while end not in text:
            text += self._receive()
        return text.split(end, 1)

    def _chunks(self, text):
        whole = b""
        while True:
            length, text = self._until(b"\r\n", text)
            length = int(length.split(b";")[0], 16)
            while len(text) < length + 2:
                text += self._receive()
            whole, text = whole + text[:length], text[length + 2:]
            if length == 0:
                return whole

    def close(self):
        if self.server:
            self.server.kill()
            self.server.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def await_port(port, server, what):
    """Waits until the process listens."""
    while True:
        if server.poll() is not None:
            sys.exit(f"{what} did not start")
        try:
            with socket.create_connection(("127.0.0.1", port)):
                return
        except OSError:
            time.sleep(0.01)


def start_ficus(program, store, timeout_s):
    port = free_port()
    server = subprocess.Popen([program, "serve", "--data-dir", store, "--listen", f"127.0.0.1:{port}",
                               "--set", f"server.timeouts.evaluation_cap_ms={int(timeout_s * 1000)}"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await_port(port, server, program)
    return Gremlin(f"http://127.0.0.1:{port}", timeout_s, server=server)
