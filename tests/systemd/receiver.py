"""A webhook receiver that appends a line for each message to the given file: `webhook-id type rule/token…`."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BOOK = sys.argv[1]


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with open(BOOK, "a", encoding="utf-8") as book:
            alerts = (f"{alert['rule']}/{(alert['token'] or {}).get('id', '-')}" for alert in body["data"].get("alerts", []))
            book.write(f"{self.headers['webhook-id']} {body['type']} {' '.join(alerts)}\n")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", 9800), Receiver).serve_forever()
