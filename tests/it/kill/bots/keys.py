"""Sends requests with an `Idempotency-Key` while the daemon is killed, and repeats them after the restart: each has its effect exactly once.

Usage: keys.py PROGRAM FOLDER STORE [--rounds N] [--seed N]. STORE is a key of `[store]` as TOML.
"""

import json
import random
import statistics
import threading
import time
import uuid
from collections import Counter

from world import TOKENS, Database, Instance, Receiver, Source, arguments, request, wait_until

ROUTES = """
[[route.routes]]
matchers = ['alertname="Listed"']
receivers = ["gone"]
"""


class Bot:
    def __init__(self, instance, database):
        self.instance, self.database, self.counts = instance, database, Counter()
        self.alerts = [alert for alert, in database.rows(["id"], "FROM alert WHERE name = 'Listed' ORDER BY id")]
        self.dead = [no for no, in database.rows(["no"], "FROM delivery WHERE state = 'dead' ORDER BY no")]
        self.retries = Counter()

    def send(self, action, key):
        path, body = action
        return request(self.instance.url + path, "POST", body, {"Idempotency-Key": key})

    def action(self, round, key):
        """Returns the path and the body of the next request, and its status."""
        match round % 3:
            case 0:
                return ("/api/v1/silences", {"matchers": ["alertname=Nothing"], "author": "bot", "comment": key, "duration": "1h"}), 201
            case 1:
                return ("/api/v1/acks", {"alert": random.choice(self.alerts), "author": "bot", "comment": key}), 201
            case _:
                delivery = random.choice(self.dead)
                self.retries[delivery] += 1
                return (f"/api/v1/outbox/{delivery}/retry", None), 200

    def interrupted(self, action, key, latency):
        """Kills the daemon at a random time of a request. Returns the response, or `None` if it was lost."""
        responses = []

        def send():
            try:
                responses.append(self.send(action, key))
            except OSError:
                pass

        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        time.sleep(random.uniform(0, 4 * latency + 0.01))
        self.instance.kill()
        sending.join()
        self.database.end_term()
        self.instance.start()
        self.instance.wait_until_ready()
        return responses[0] if responses else None

    def round(self, round, latency):
        key = str(uuid.uuid4())
        action, status = self.action(round, key)
        first = self.interrupted(action, key, latency)
        repeats = [self.send(action, key) for _ in range(2)]
        assert [repeat[0] for repeat in repeats] == [status, status], repeats
        was_done = repeats[0][1]["Idempotency-Replayed"] == "true"
        assert repeats[1][1]["Idempotency-Replayed"] == "true" and repeats[1][2] == repeats[0][2], repeats
        assert first is None or (was_done and first[0] == status and first[2] == repeats[0][2]), (first, repeats)
        self.counts["the response arrived" if first else "committed, but the response was lost" if was_done else "not committed"] += 1
        path, body = action
        other = {**body, "author": "another bot"} if body else {"another": "body"}
        reused = request(self.instance.url + path, "POST", other, {"Idempotency-Key": key})
        assert reused[0] == 422 and json.loads(reused[2])["code"] == "idempotency_key_reused", reused
        if path == "/api/v1/acks":
            self.remove_acknowledgement(body["alert"], action, key)

    def remove_acknowledgement(self, alert, action, key):
        """A repeated request does not acknowledge the alert again."""
        assert request(f"{self.instance.url}/api/v1/acks/{alert}", "DELETE")[0] == 204
        assert self.send(action, key)[1]["Idempotency-Replayed"] == "true"
        assert json.loads(request(self.instance.url + "/api/v1/acks")[2]) == []

    def latency(self):
        """Returns the usual duration of a request in seconds, from requests that count as those of a round do."""
        times = []
        for _ in range(5):
            begun = time.monotonic()
            key = str(uuid.uuid4())
            assert self.send(self.action(0, key)[0], key)[0] == 201
            times.append(time.monotonic() - begun)
        return statistics.median(times)


def main():
    args = arguments(rounds=6)
    source, receiver, database = Source(), Receiver(), Database(args.store)
    instance = Instance(args.program, args.folder, source, receiver, args.store, ROUTES)
    instance.start()
    instance.wait_until_ready()
    wait_until(lambda: database.row(["count(*)"], "FROM delivery WHERE state = 'dead' AND receiver = 'gone'") == [TOKENS], instance.log)
    bot = Bot(instance, database)
    latency = bot.latency()
    for round in range(args.rounds):
        bot.round(round, latency)
    wait_until(lambda: database.row(["count(*)"], "FROM delivery WHERE state IN ('due', 'retrying')") == [0], instance.log)
    instance.stop()

    silences = 5 + len(range(0, args.rounds, 3))
    logged = Counter(kind for kind, in database.rows(["type"], "FROM event_log"))
    assert database.row(["count(*)", "count(DISTINCT comment)"], "FROM silence") == [silences, silences]
    assert logged["silence.created"] == silences, logged
    acks = len(range(1, args.rounds, 3))
    assert (logged["acknowledgement.added"], logged["acknowledgement.removed"]) == (acks, acks), logged
    # Each retry led to one recorded attempt, after the first one.
    attempts = dict(database.rows(["delivery_no", "count(*)"], "FROM attempt GROUP BY delivery_no"))
    assert {no: attempts[no] for no in bot.dead} == {no: 1 + bot.retries[no] for no in bot.dead}, (attempts, bot.retries)
    print(f"{args.rounds} requests with a key, each with one effect; of the kills, {dict(bot.counts)}; usual latency {latency * 1000:.0f} ms")


main()
