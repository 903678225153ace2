"""Follows the API while the daemon is killed: the event log, live events, and the lists of changes, alerts, and deliveries.

Each follower works as the documentation recommends: it stores what it got together with its cursor. Some responses are lost before they are
stored. At the end, each follower has seen each record exactly once, in order, and without a gap: compared with the database, and with what
the source has counted.

Usage: follow.py PROGRAM FOLDER STORE [--instances 2] [--changes N] [--kills N] [--seed N]. STORE is a key of `[store]` as TOML.
"""

import http.client
import json
import random
import threading
import time
from pathlib import Path

from world import FIRST_AMOUNT, TOKEN, TOKENS, Database, Instance, Receiver, Source, arguments, request, wait_until

LOST = 8  # One of so many responses is lost.


class Follower(threading.Thread):
    """A program that follows one list."""

    def __init__(self, name, instances, stop):
        super().__init__(name=name, daemon=True)
        self.urls, self.stop, self.random = [instance.url for instance in instances], stop, random.Random(random.random())
        self.seen, self.lost, self.failures, self.error = [], 0, 0, None

    def run(self):
        while not self.stop.is_set():
            try:
                # Two statements, so that nothing is stored of a response that is lost.
                self.step(self.urls[0])
            except OSError:
                self.fail()
            except BaseException as error:
                self.error = f"{self.name}: {error!r}"
                raise

    def fail(self):
        """Goes on with the other instance."""
        self.failures += 1
        self.urls.append(self.urls.pop(0))
        time.sleep(0.02)

    def get(self, url, headers=None):
        """Returns a response as JSON. `None` if it is lost."""
        status, _, body = request(url, headers=headers)
        if status == 503:
            raise OSError("not ready")
        assert status == 200, f"{url}: {status}: {body[:300]}"
        if self.random.randrange(LOST) == 0:
            self.lost += 1
            return None
        return json.loads(body)


class EventFollower(Follower):
    """Follows `/api/v1/events` with `after` and `wait`."""

    cursor = 0

    def step(self, root):
        page = self.get(f"{root}/api/v1/events?after={self.cursor}&limit={self.random.randint(20, 150)}&wait=2s")
        if page:
            self.seen += page["events"]
            self.cursor = page["next"]


class StreamFollower(Follower):
    """Follows `/events`, and connects again with the id of the last event."""

    cursor = 0

    def step(self, root):
        connection = http.client.HTTPConnection(root.removeprefix("http://"), timeout=20)
        try:
            connection.request("GET", "/events", headers={"Last-Event-ID": str(self.cursor), "Authorization": f"Bearer {TOKEN}"})
            response = connection.getresponse()
            if response.status == 503:
                raise OSError("not ready")
            assert response.status == 200, response.read()
            lines = []
            while not self.stop.is_set():
                line = response.readline()
                if not line:
                    raise OSError("the stream ended")
                if line != b"\n":
                    lines.append(line.rstrip(b"\n"))
                    continue
                # A message is complete only with its empty line.
                fields = dict(part.split(b": ", 1) for part in lines if not part.startswith(b":"))
                lines = []
                if b"data" in fields:
                    event = json.loads(fields[b"data"])
                    assert (event["id"], event["type"].encode()) == (int(fields[b"id"]), fields[b"event"]), fields
                    self.seen.append(event)
                if b"id" in fields:
                    self.cursor = int(fields[b"id"])
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(f"broken: {error!r}") from error
        finally:
            connection.close()


class ListFollower(Follower):
    """Follows a list by `previous`, the URL of the rows that come before a page."""

    def __init__(self, name, instances, stop):
        super().__init__(name, instances, stop)
        self.path = f"/api/v1/{name}?paged=true&limit={self.random.randint(20, 150)}&before=0"

    def step(self, root):
        page = self.get(root + self.path)
        if not page:
            return
        # The newest row of a page comes first.
        self.seen += reversed(page["items"])
        self.path = page["previous"]
        if not page["items"]:
            self.stop.wait(0.1)


def make_changes(source, number):
    """Makes changes in about half a second."""
    for made in range(number):
        source.change()
        if made % 20 == 0:
            time.sleep(0.01)


def kill_again_and_again(args, source, instances, database):
    """Kills the active instance at random times, while the source makes its changes. Returns the number of takeovers."""
    active, takeovers = instances[0], 0
    for round in range(args.kills):
        stored = count_burned(database)
        number = args.changes * (round + 1) // args.kills - source.count
        making = threading.Thread(target=make_changes, args=(source, number), daemon=True)
        making.start()
        # Most kills come after some changes of the round, and all in the middle of the work that follows from them.
        if random.randrange(4) > 0:
            wait_until(lambda: count_burned(database) > stored, lambda: f"no change is stored:\n{active.log()}")
        time.sleep(random.uniform(0, 0.7))
        active.kill()
        if len(instances) == 1:
            active.start()
        else:
            # The standby takes over when the term of the lease ends, or at once. The killed instance is the next standby.
            killed, active = active, next(instance for instance in instances if instance is not active)
            if random.randrange(2) == 0:
                database.end_term()
            active.wait_until_ready()
            takeovers += 1
            killed.start()
        making.join()
        # Some kills hit the start.
        if random.randrange(4) > 0:
            active.wait_until_ready()
    return takeovers


def count_burned(database):
    return database.row(["count(*)"], "FROM alert WHERE name = 'Burned'")[0]


def totals(rows):
    """Number and total amount of the burns in changes. All burns that a poll finds are one change."""
    return sum(row["change"]["count"] for row in rows), sum(row["change"]["to"] for row in rows)


def check(name, seen, stored):
    """Compares what a follower saw with what is stored, in order."""
    if seen == stored:
        return
    repeated = sorted({key for key in seen if seen.count(key) > 1})[:5]
    missing = [key for key in stored if key not in set(seen)][:5]
    raise AssertionError(f"{name}: {len(seen)} seen, {len(stored)} stored; repeated {repeated}; missing {missing}; or in another order")


def main():
    args = arguments(instances=1, changes=400, kills=3)
    source, receiver, database = Source(), Receiver(), Database(args.store)
    instances = [Instance(args.program, Path(args.folder) / f"i{number}", source, receiver, args.store) for number in range(args.instances)]
    begun = time.monotonic()
    instances[0].start()
    instances[0].wait_until_ready()
    for instance in instances[1:]:
        instance.start()
    # Changes count from the first poll of each token.
    baselines = "FROM feed WHERE endpoint = 'burn' AND baseline_at IS NOT NULL"
    wait_until(lambda: database.row(["count(*)"], baselines) == [TOKENS], lambda: f"no baselines:\n{instances[0].log()}")

    stop = threading.Event()
    followers = [EventFollower("events", instances, stop), StreamFollower("live events", instances, stop)]
    followers += [ListFollower(name, instances, stop) for name in ("changes", "alerts", "outbox")]
    for follower in followers:
        follower.start()
    takeovers = kill_again_and_again(args, source, instances, database)
    make_changes(source, args.changes - source.count)

    # Quiet for two seconds: everything is delivered, and each follower has as many records as are stored.
    counts = ["(SELECT max(seq) FROM event_log)", "(SELECT max(seq) FROM event_log)"]
    counts += [f"(SELECT count(*) FROM {table})" for table in ("change", "alert", "delivery")]
    still_open = ["pending_notification WHERE state = 'waiting'", "delivery WHERE state IN ('due', 'retrying')"]
    counts += ["(SELECT count(*) FROM alert WHERE name = 'Burned')", *(f"(SELECT count(*) FROM {rows})" for rows in still_open)]
    quiet = [None, 0.0]

    def is_quiet():
        assert not any(follower.error for follower in followers), [follower.error for follower in followers]
        *stored, burned, waiting, due = database.row(counts)
        seen = [len(follower.seen) for follower in followers]
        state = [stored, seen, burned, waiting, due]
        is_behind = any(mine < theirs for mine, theirs in zip(seen, stored))
        if state != quiet[0] or is_behind or burned < source.count or waiting or due:
            quiet[:] = [state, time.monotonic()]
        return time.monotonic() - quiet[1] > 2

    wait_until(is_quiet, lambda: f"not quiet: {quiet} of {source.count}:\n" + "\n".join(instance.log() for instance in instances), 600)
    stop.set()
    for follower in followers:
        follower.join(30)
    for instance in instances:
        instance.stop()

    events, stream, changed, alerted, sent = (follower.seen for follower in followers)
    # Up to the end of the quiet time. An instance that waits for the lease of the killed one may log its takeover while the followers stop.
    last = quiet[0][0][0]
    logged = [tuple(row) for row in database.rows(["seq", "type"], f"FROM event_log WHERE seq <= {last} ORDER BY seq")]
    assert [seq for seq, _ in logged] == list(range(1, len(logged) + 1)), "the event log has a gap"
    for name, seen in (("events", events), ("live events", stream)):
        check(name, [(event["id"], event["type"]) for event in seen[:last]], logged)
    check("changes", [row["id"] for row in changed], [no for no, in database.rows(["no"], "FROM change ORDER BY no")])
    check("outbox", [row["id"] for row in sent], [no for no, in database.rows(["no"], "FROM delivery ORDER BY no")])
    check("alerts", sorted(row["id"] for row in alerted), sorted(alert for alert, in database.rows(["id"], "FROM alert")))
    # The source counted its changes: each is seen once, in the list, in the log, and as an alert.
    amounts = [FIRST_AMOUNT + serial for serial in range(source.count)]
    assert totals(changed) == (source.count, sum(amounts)), (totals(changed), source.count, sum(amounts))
    in_log = [event["body"] for event in events if event["type"] == "change"]
    check("changes in the log", [row["id"] for row in in_log], [row["id"] for row in changed])
    assert totals(in_log) == totals(changed), (totals(in_log), totals(changed))
    burned = [row for row in alerted if row["rule"] == "Burned"]
    check("alerts about changes of the source", sorted(int(row["annotations"]["amount"].replace(",", "")) for row in burned), amounts)
    assert set(receiver.ids) == {row["webhookId"] for row in sent if row["receiver"] == "ops"}, "received and recorded deliveries differ"
    assert any(follower.lost for follower in followers), "no response was lost"
    print(f"{source.count} changes, {args.kills} kills, {takeovers} takeovers in {time.monotonic() - begun:.0f} s: {len(logged)} events, {len(alerted)} alerts, "
          f"{len(sent)} deliveries seen once and in order; {sum(f.lost for f in followers)} responses lost, {sum(f.failures for f in followers)} failed requests")


main()
