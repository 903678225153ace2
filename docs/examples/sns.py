#!/usr/bin/python3
"""A receiver of type "exec" that publishes to an AWS SNS topic with awscli.

    [[receiver]]
    name = "sns"
    type = "exec"
    command = "/usr/local/lib/cliffwatch/sns.py"
    args = ["arn:aws:sns:eu-central-1:123456789012:unlocks", "/etc/cliffwatch/aws-credentials"]
"""

import json
import os
import subprocess
import sys
import tempfile

RETRY = 75  # EX_TEMPFAIL; any other failure is permanent
PERMANENT = ("AuthorizationError", "AccessDenied", "NotFound", "InvalidParameter", "InvalidClientTokenId", "SignatureDoesNotMatch")


def request(message: dict, topic: str) -> dict:
    """Returns the parameters of the SNS API call."""
    alerts = [alert["annotations"].get("summary", alert["rule"]) for alert in message["data"]["alerts"]]
    omitted = message["data"]["truncatedAlerts"]
    title = alerts[0] if len(alerts) == 1 else f"{len(alerts) + omitted} alerts, the first: {alerts[0]}"
    # A subject is one line of ASCII with less than a hundred characters.
    subject = "".join(c if " " <= c <= "~" else "?" for c in title)[:99].strip() or "Cliffwatch"
    text = "\n".join(alerts).encode()[:200_000].decode(errors="ignore")  # SNS accepts 256 KiB
    severity = {"DataType": "String", "StringValue": os.environ["CLIFFWATCH_SEVERITY"] or "none"}
    parameters = {"TopicArn": topic, "Subject": subject, "Message": text, "MessageAttributes": {"severity": severity}}
    if topic.endswith(".fifo"):  # drops repeats
        parameters |= {"MessageGroupId": "cliffwatch", "MessageDeduplicationId": os.environ["CLIFFWATCH_WEBHOOK_ID"]}
    return parameters


def main(topic: str, credentials: str, aws: str = "/usr/bin/aws") -> int:
    parameters = request(json.load(sys.stdin), topic)
    environment = {**os.environ, "HOME": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": credentials, "AWS_PAGER": ""}
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        json.dump(parameters, file)
        file.flush()
        # Pass everything as one JSON file: with the argument `--message file:///etc/passwd`, awscli would send that file.
        command = [aws, "sns", "publish", "--region", topic.split(":")[3], "--cli-input-json", f"file://{file.name}", "--output", "json"]
        ran = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    sys.stdout.write(ran.stdout.decode(errors="replace"))
    sys.stderr.write(ran.stderr.decode(errors="replace"))
    if ran.returncode == 0:
        return 0
    return 1 if any(word.encode() in ran.stderr for word in PERMANENT) else RETRY


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
