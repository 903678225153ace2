"""Receives and verifies webhooks of Cliffwatch: receiver.py whsec_… [PORT]. Needs only the standard library.

Prints the URL that it listens on, then a line for each alert. For your own receiver, copy `verify`, and call it with the exact bytes of
the body before you parse them.
"""

import base64
import hashlib
import hmac
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

TOLERANCE_SECONDS = 5 * 60


def verify(secret, headers, body):
    """Returns the message. Raises ValueError unless `body` was recently signed with `secret`."""
    message_id = headers["webhook-id"]
    timestamp = headers["webhook-timestamp"]
    if not message_id or not timestamp or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        raise ValueError("not signed or too old")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # During a rotation there is one signature per secret.
    given = (headers["webhook-signature"] or "").split(" ")
    if not any(hmac.compare_digest(f"v1,{expected}".encode(), each.encode()) for each in given):
        raise ValueError("wrong signature")
    return json.loads(body)


class Receiver(BaseHTTPRequestHandler):
    seen = set()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            message = verify(sys.argv[1], self.headers, body)
        except ValueError as error:
            return self.respond(401, str(error))
        self.respond(204)
        # A message is repeated, with the same id, if the response was lost.
        if self.headers["webhook-id"] not in self.seen:
            self.seen.add(self.headers["webhook-id"])
            for alert in message["data"]["alerts"]:
                print(message["type"], alert["id"], alert["annotations"].get("summary", ""), flush=True)

    def respond(self, status, text=""):
        self.send_response(status)
        if text:
            self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Receiver)
    print(f"http://127.0.0.1:{server.server_address[1]}/", flush=True)
    server.serve_forever()
