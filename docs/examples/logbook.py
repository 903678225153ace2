#!/usr/bin/python3
"""A receiver of type "exec" that writes each message once to a file, as a line of JSON.

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

RETRY = 75  # EX_TEMPFAIL; any other failure is permanent


def main(path: str) -> int:
    message = json.load(sys.stdin)
    line = {"id": os.environ["CLIFFWATCH_WEBHOOK_ID"], "at": message["timestamp"], "type": message["type"]}
    line["alerts"] = [alert["annotations"].get("summary", alert["rule"]) for alert in message["data"]["alerts"]]
    try:
        with open(path, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # several run at once if `concurrency` allows it
            file.seek(0)
            if any(json.loads(stored)["id"] == line["id"] for stored in file):
                print("already stored")  # a repeat: the daemon crashed before it recorded the delivery
                return 0
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        print(error, file=sys.stderr)
        return RETRY
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
