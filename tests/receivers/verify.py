"""Verifies POST requests with the Standard Webhooks library: verify.py SECRET. Prints its port, then one JSON line per message."""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from standardwebhooks import Webhook


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            message = Webhook(sys.argv[1]).verify(body, headers)
        except Exception as error:  # respond with whatever the library raises
            response = str(error).encode()
            self.send_response(401)
            self.send_header("content-length", str(len(response)))
            self.end_headers()
            self.wfile.write(response)
            return
        self.send_response(204)
        self.end_headers()
        signatures = len(headers["webhook-signature"].split(" "))
        print(
            json.dumps({"id": headers["webhook-id"], "type": message.get("type"), "signatures": signatures}),
            flush=True,
        )

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
