"""Receives Cliffwatch's webhooks and verifies each: receiver.py whsec_… [PORT]. Python's own library is all it needs.

Prints the address that it listens on, then a line for each message. What is verified, and what to keep from here:
`verify` over the exact bytes of the body, before anything reads them.
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
    """The message, if `body` was signed with `secret` a short while ago; ValueError if not."""
    message_id = headers["webhook-id"]
    timestamp = headers["webhook-timestamp"]
    if not message_id or not timestamp or abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        raise ValueError("not signed, or too old")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # While a secret is being changed there is a signature by each.
    given = (headers["webhook-signature"] or "").split(" ")
    if not any(hmac.compare_digest(f"v1,{expected}".encode(), each.encode()) for each in given):
        raise ValueError("signed by somebody else")
    return json.loads(body)


class Receiver(BaseHTTPRequestHandler):
    seen = set()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            message = verify(sys.argv[1], self.headers, body)
        except ValueError as problem:
            return self.answer(401, str(problem))
        self.answer(204)
        # A message may come again where its answer was lost: it has the same id.
        if self.headers["webhook-id"] not in self.seen:
            self.seen.add(self.headers["webhook-id"])
            for alert in message["data"]["alerts"]:
                print(message["type"], alert["id"], alert["annotations"].get("summary", ""), flush=True)

    def answer(self, status, text=""):
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
