"""Servers that take Gremlin texts over HTTP: FicusDB and Gremlin Server."""

import http.client
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
        self.connection = http.client.HTTPConnection(self.address, timeout=2 * self.timeout_s + 10)

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
        begun = time.perf_counter()
        self.connection.request("POST", "/gremlin", body, {"Content-Type": "application/json",
                                                           "Accept": "application/vnd.gremlin-v3.0+json;types=false"})
        response = self.connection.getresponse()
        text = response.read()
        return response.status, text, time.perf_counter() - begun

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
