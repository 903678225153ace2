"""What the programs in this folder share: a source that counts its own changes, a receiver, and instances of the daemon.

Nothing here shares code with the daemon. The source serves the token list and the burns of each token, and each burn has an amount of its
own, so that each change can be told from all others.
"""

import argparse
import atexit
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import tomllib
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WAIT_TIMEOUT = 120  # Seconds.
TOKENS = 12
FIRST_AMOUNT = 1_000_000  # The burns of the baseline have smaller amounts.
TOKEN = "token-of-the-bots"
CONFIG = """
[source]
base_url = "{source}"
legacy_base_url = "{source}"
requests_per_minute = 60000
[schedule]
token_list = "*/5 * * * * *"
upcoming = "off"
unlock_events = "off"
burn = "* * * * * *"
buyback = "off"
allocations = "off"
evaluate = "* * * * * *"
[store]
{store}
[http]
listen = "127.0.0.1:{port}"
token = "{token}"
[delivery]
retry = ["0s", "1s", "1s", "1s", "2s", "2s", "4s"]
max_per_hour = 1000000
[[receiver]]
name = "ops"
type = "webhook"
url = "{receiver}/hook"
[[receiver]]
name = "gone"
type = "webhook"
url = "{receiver}/gone"
[route]
receivers = ["ops"]
group_by = ["alertname", "token"]
group_wait = "0s"
group_interval = "1s"
{routes}
"""
RULES = """
[[rule]]
alert = "Burned"
on = "burn"
when = "amount >= 1000000"
annotations = { amount = "{{ amount | number }}" }

[[rule]]
alert = "BurnChanged"
on = "burn.*"

[[rule]]
alert = "Listed"
on = "token"
when = "maxSupply > 0"
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def serve(handler):
    """Serves in the background and returns the URL."""
    server = Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_):
        """A killed client is no error."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def respond(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Source:
    """A source of burns, which counts its changes."""

    def __init__(self):
        self.lock, self.begun = threading.Lock(), time.time()
        self.burns = {f"token-{number:02}": [self.burn(1_000 + number)] for number in range(TOKENS)}
        self.count = 0
        source = self

        class Api(Handler):
            def do_GET(self):
                path = self.path.partition("?")[0].strip("/").split("/")
                data = source.data(path)
                metadata = {"queryDate": stamp(time.time())}
                body = {"metadata": metadata, "status": data is not None, "data": data}
                if data is None:
                    body = {"metadata": metadata, "status": False, "statusCode": 404, "errorMessage": "unknown path"}
                self.respond(404 if data is None else 200, json.dumps(body).encode())

        self.url = serve(Api)

    def burn(self, amount):
        # The date is in the last 30 hours, and differs from that of all other burns.
        return {"burnEventLabel": "Burn", "burnType": "onchain", "burnDate": stamp(self.begun - 108_000 + amount % FIRST_AMOUNT * 2),
                "amount": float(amount), "pricePerToken": 1.0, "value": float(amount), "metadata": {"burners": [], "burnReasons": []}}

    def data(self, path):
        with self.lock:
            if path[1:] == ["token", "list"]:
                return [{"id": token, "name": token, "symbol": token.upper(), "listedMethod": "AI", "circulatingSupply": 1e9, "marketCap": 1e9,
                         "maxSupply": 2e9, "hasBurn": True, "hasBuyback": False, "lastUpdatedDate": "2026-01-01T00:00:00Z"} for token in self.burns]
            if len(path) == 3 and path[1] == "burn" and path[2] in self.burns:
                burns = self.burns[path[2]]
                total = sum(burn["amount"] for burn in burns)
                return {"tokenId": path[2], "tokenName": path[2], "tokenSymbol": path[2].upper(), "totalBurnAmount": total, "totalBurnValue": total,
                        "burns": list(burns)}
            return None

    def change(self):
        """Makes the next change."""
        with self.lock:
            self.burns[random.choice(list(self.burns))].append(self.burn(FIRST_AMOUNT + self.count))
            self.count += 1


class Receiver:
    """A receiver of webhooks. `/gone` rejects all messages for good."""

    def __init__(self):
        self.ids = []
        receiver = self

        class Hook(Handler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                if self.path == "/gone":
                    return self.respond(410)
                receiver.ids.append(self.headers["webhook-id"])
                self.respond(204)

        self.url = serve(Hook)


class Instance:
    """One instance of the daemon, which is killed and started again."""

    def __init__(self, program, folder, source, receiver, store, routes=""):
        self.program, self.folder, self.port = program, Path(folder), free_port()
        (self.folder / "rules").mkdir(parents=True)
        (self.folder / "rules/r.toml").write_text(RULES)
        config = CONFIG.format(source=source.url, receiver=receiver.url, store=store, port=self.port, token=TOKEN, routes=routes)
        (self.folder / "cliffwatch.toml").write_text(config)
        self.url, self.process, self.starts = f"http://127.0.0.1:{self.port}", None, 0

    def start(self):
        self.starts += 1
        log = open(self.folder / f"log-{self.starts}", "wb")
        command = [self.program, "--config", "cliffwatch.toml", "--color", "never", "run"]
        self.process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        atexit.register(self.process.kill)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait() == -signal.SIGKILL, f"the daemon ended by itself:\n{self.log()}"

    def stop(self):
        self.process.terminate()
        assert self.process.wait(WAIT_TIMEOUT) == 0, self.log()

    def log(self):
        return (self.folder / f"log-{self.starts}").read_text(errors="replace")[-4000:]

    def is_ready(self):
        try:
            return request(self.url + "/-/ready")[0] == 200
        except OSError:
            return False

    def wait_until_ready(self):
        wait_until(self.is_ready, lambda: f"not ready:\n{self.log()}")


class Database:
    """Reads the database without the daemon: a SQLite file, or a schema of a PostgreSQL server."""

    def __init__(self, setting):
        self.store = tomllib.loads(setting)

    def rows(self, columns, rest=""):
        """Returns the rows of a query."""
        selected = ", ".join(columns)
        if "path" in self.store:
            connection = sqlite3.connect(f"file:{self.store['path']}?mode=ro", uri=True, timeout=60)
            try:
                return [list(row) for row in connection.execute(f"SELECT {selected} {rest}")]
            finally:
                connection.close()
        sql = f"SELECT json_build_array({selected}) {rest}"
        lines = subprocess.run(["psql", self.store["url"], "-XqtAc", sql], capture_output=True, check=True, text=True).stdout
        return [json.loads(line) for line in lines.splitlines()]

    def row(self, columns, rest=""):
        """Returns the first row of a query."""
        return self.rows(columns, rest)[0]

    def end_term(self):
        """Expires the lease of a killed process, so that the next one need not wait for the end of the term."""
        if "url" in self.store:
            subprocess.run(["psql", self.store["url"], "-Xqc", "UPDATE lease SET renewed_at = '-infinity'"], capture_output=True)


def stamp(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def request(url, method="GET", body=None, headers=None, timeout=40):
    """Sends a request. Returns status, headers, and body. A broken connection or an incomplete body is an OSError."""
    headers = {"Authorization": f"Bearer {TOKEN}", **(headers or {})}
    if body is not None:
        headers["Content-Type"], body = "application/json", json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), timeout=timeout) as response:
            return response.status, response.headers, read(response)
    except urllib.error.HTTPError as error:
        return error.code, error.headers, read(error)


def read(response):
    try:
        return response.read()
    except Exception as error:  # An incomplete body is not an OSError.
        raise OSError(f"incomplete: {error!r}") from error


def wait_until(condition, problem, timeout=WAIT_TIMEOUT):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, problem()
        time.sleep(0.02)


def arguments(**numbers):
    """Parses the arguments: program, folder, `[store]` setting, and numbers. The seed is printed, so that a failure can be repeated."""
    parser = argparse.ArgumentParser()
    for name in ("program", "folder", "store"):
        parser.add_argument(name)
    for name, default in numbers.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4)))
    parsed = parser.parse_args()
    print(f"seed {parsed.seed}", flush=True)
    random.seed(parsed.seed)
    return parsed
