#!/usr/bin/python3
"""A receiver of type "exec" that keeps a book: a line of JSON for each message, each message once.

    [[receiver]]
    name = "logbook"
    type = "exec"
    command = "/usr/local/lib/cliffwatch/logbook.py"
    args = ["/var/lib/cliffwatch/logbook.jsonl"]
"""

import fcntl
import json
import os
import sys

TRY_AGAIN = 75  # EX_TEMPFAIL: any other failure is for good


def main(book: str) -> int:
    message = json.load(sys.stdin)
    line = {"id": os.environ["CLIFFWATCH_WEBHOOK_ID"], "at": message["timestamp"], "type": message["type"]}
    line["alerts"] = [alert["annotations"].get("summary", alert["rule"]) for alert in message["data"]["alerts"]]
    try:
        with open(book, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # where `concurrency` lets several run
            file.seek(0)
            if any(json.loads(known)["id"] == line["id"] for known in file):
                print("known already")  # a repeat: the daemon died before it wrote down that this was delivered
                return 0
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        print(error, file=sys.stderr)
        return TRY_AGAIN
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
