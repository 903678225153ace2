"""A mail server that requires STARTTLS and a login: smtpd.py CERTIFICATE KEY USER PASSWORD. Prints its port, then one JSON line per mail.

Recipients that start with "unknown" get a permanent error, those that start with "later" a temporary one.
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

certificate, key, user, password = sys.argv[1:5]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
sessions = []


def authenticate(server, session, envelope, mechanism, data):
    is_valid = isinstance(data, LoginPassword) and data.login == user.encode() and data.password == password.encode()
    return AuthResult(success=is_valid, handled=False)


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("unknown"):
            return "550 5.1.1 no such user"
        if address.startswith("later"):
            return "452 4.2.2 mailbox full"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 ok"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.original_content, policy=email.policy.default)
        if id(session) not in sessions:
            sessions.append(id(session))
        parts = [
            {
                "type": part.get_content_type(),
                "cid": part["Content-ID"],
                "size": len(part.get_payload(decode=True) or b""),
                "text": part.get_content() if part.get_content_maintype() == "text" else None,
                "begin": (part.get_payload(decode=True) or b"")[:8].hex(),
            }
            for part in mail.walk()
        ]
        lines = envelope.original_content.split(b"\r\n")
        print(
            json.dumps(
                {
                    "session": len(sessions),
                    "tls": session.ssl is not None,
                    "authenticated": session.authenticated,
                    "recipients": envelope.rcpt_tos,
                    "headers": {name.lower(): str(value) for name, value in mail.items()},
                    "parts": parts,
                    "defects": [str(defect) for defect in mail.defects],
                    "longest": max(len(line) for line in lines),
                }
            ),
            flush=True,
        )
        return "250 2.0.0 accepted"


async def main():
    def factory():
        return SMTP(
            Handler(),
            hostname="mail.example.com",
            tls_context=context,
            require_starttls=True,
            auth_required=True,
            authenticator=authenticate,
        )

    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
