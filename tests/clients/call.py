"""Calls every operation of the daemon and of the data service with clients generated from their OpenAPI descriptions.

Usage: call.py PAGES TOKEN SERVICE KEY. The clients are the packages daemon_client and service_client. The script fails if an operation is not
called here, if the client cannot parse a response, or if a response has an unexpected status.
"""

import importlib
import inspect
import pkgutil
import sys
import time
from datetime import datetime, timezone

import daemon_client
import httpx
import service_client
from daemon_client.models import NewAcknowledgement, NewAlertNote, NewAssignment, NewReplay, NewSilence

WAIT_TIMEOUT = 90  # Seconds until the demo has produced one of each kind of data.
MAX_ATTEMPTS = 10
pages, token, service, key = sys.argv[1:5]
called = set()


def operations(package):
    """Returns the operations of a client: id and module."""
    api = importlib.import_module(f"{package}.api")
    found = (importlib.import_module(each.name) for each in pkgutil.walk_packages(api.__path__, f"{package}.api."))
    return {each.__name__.rpartition(".")[2]: each for each in found if hasattr(each, "sync_detailed")}


def patiently(request):
    """Returns the response of a request, which is repeated as often as a busy server asks for."""
    for _ in range(MAX_ATTEMPTS):
        response = request()
        if response.status_code != 503:
            break
        time.sleep(float(response.headers.get("retry-after", 1)))
    return response


def caller(package, client):
    """Returns the operations of a client, and a function that calls one and checks its response."""
    own = operations(package)

    def call(name, status=200, **parameters):
        called.add((package, name))
        response = patiently(lambda: own[name].sync_detailed(client=client, **parameters))
        assert response.status_code == status, f"{name}: {response.status_code}: {response.content[:300]}"
        assert response.parsed is not None or status in (204, 401), f"{name}: the client cannot parse the response: {response.content[:300]}"
        return response.parsed

    return own, call


def check_daemon():
    own, call = caller("daemon_client", daemon_client.AuthenticatedClient(base_url=pages, token=token))
    deadline = time.monotonic() + WAIT_TIMEOUT
    # The demo makes its scripted correction last.
    while not call("list_changes") and time.monotonic() < deadline:
        time.sleep(0.5)
    assert call("get_status").alerts.to_dict()["firing"] > 0
    alerts, tokens, deliveries = call("list_alerts", state=["firing"]), call("list_tokens", sort="value"), call("list_deliveries")
    assert alerts and tokens and deliveries and call("list_changes")
    first, last = (token.ahead.field_90d.total.value or 0 for token in (tokens[0], tokens[-1]))
    assert first > 0 and first >= last, (first, last)
    supply = call("get_supply")
    assert supply.tokens >= len([token for token in tokens if token.watched]) and supply.ahead.field_90d.total.value >= first, supply
    # The demo still evaluates, so an alert may be updated between two requests.
    while True:
        alerts, page = call("list_alerts", state=["firing"]), call("list_alerts", state=["firing"], limit=1, paged=True)
        if (page.total, page.items[0].id) == (len(alerts), alerts[0].id) or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    assert page.total == len(alerts) and len(page.items) == 1 and page.next_, page
    assert page.items[0].id == alerts[0].id and page.items[0].active_at.tzinfo is not None
    detail = call("get_alert", id=alerts[0].id)
    assert detail.id == alerts[0].id and detail.explanation.steps and detail.messages, detail
    assert call("get_delivery", id=deliveries[0].id).attempt_log is not None
    detail = call("get_token", id=tokens[0].id)
    assert detail.feeds and detail.ahead.known == tokens[0].ahead.known, detail.ahead
    problem = call("get_token", id="nothing", status=404)
    assert problem.code == "unknown_token" and problem.detail and problem.error == problem.detail, problem
    symbol = next(token.symbol for token in tokens if token.symbol.lower() != token.id and sum(other.symbol == token.symbol for other in tokens) == 1)
    assert call("get_token", id=symbol).symbol == symbol
    unlocks = call("list_upcoming", within="90d", min_value=1e6)
    assert unlocks and unlocks[0].cliff_value >= 1e6 and unlocks[0].unlock_date.tzinfo is not None
    assert call("list_rules")[0].name
    polls = call("list_polls")
    assert polls and polls[0].cycles and polls[0].cycles[0].at.tzinfo is not None, polls
    assert call("get_description").openapi.startswith("3.0")
    assert call("get_calendar", token=[tokens[0].id]).startswith("BEGIN:VCALENDAR")
    assert "<feed" in call("get_feed", limit=1)
    assert call("reload") is not None
    events, after = [], 0
    while (page := call("list_events", after=after, limit=50)).events:
        events += page.events
        after = page.next_
    assert [event.id for event in events] == list(range(1, after + 1)), events
    assert {"change", "alert.firing", "notification"} <= {str(event.type_) for event in events}, events
    # Live events do not end, so they are read without the client. They begin after the event that the client has.
    called.add(("daemon_client", "stream_events"))
    with httpx.stream("GET", f"{pages}/events", headers={"Last-Event-ID": str(after - 1)}) as response:
        lines = response.iter_lines()
        assert response.headers["content-type"] == "text/event-stream" and next(lines).startswith("retry: ")
        assert f"id: {after}" in [next(lines) for _ in range(3)]

    # Alerts of the watcher itself, such as held data, have no token.
    about_token = next(alert for alert in alerts if alert.token_id)
    matchers = [f'token="{about_token.token_id}"']
    hides = call("preview_silence", matcher=matchers)
    assert any(hidden.id == about_token.id for hidden in hides.alerts), hides
    wanted = NewSilence(matchers=matchers, author="a client", comment="of the gate", duration="1h")
    made = call("make_silence", body=wanted, status=201)
    assert made.silence.id in [silence.id for silence in call("list_silences")]
    longer = NewSilence(matchers=matchers, author="a client", comment="longer", duration="2h")
    updated = call("update_silence", id=made.silence.id, body=longer)
    assert (updated.silence.id, updated.silence.comment) == (made.silence.id, "longer"), updated
    assert call("get_silence", id=made.silence.id).comment == "longer"
    call("expire_silence", id=made.silence.id, status=204)
    assert call("get_silence", id=made.silence.id, status=404).code == "unknown_silence"
    assert made.silence.id not in [silence.id for silence in call("list_silences")]
    replay = NewReplay(receiver=deliveries[0].receiver, since=datetime(2020, 1, 1, tzinfo=timezone.utc), dry_run=True)
    assert call("replay", body=replay).deliveries > 0
    call("acknowledge", body=NewAcknowledgement(alert=alerts[0].id, author="a client"), status=201)
    assert [ack.alert for ack in call("list_acknowledgements")] == [alerts[0].id]
    call("remove_acknowledgement", id=alerts[0].id, status=204)
    assert not call("list_acknowledgements")
    call("add_note", id=alerts[0].id, body=NewAlertNote(author="a client", text="first line\nsecond line"), status=201)
    call("assign_alert", id=alerts[0].id, body=NewAssignment(author="a client", assignee="ann"))
    story = call("get_alert", id=alerts[0].id)
    assert [note.text for note in story.notes] == ["first line\nsecond line"] and story.assignment.assignee == "ann", story
    assert [alert.id for alert in call("list_alerts", assignee="ann")] == [alerts[0].id]
    call("assign_alert", id=alerts[0].id, body=NewAssignment(author="a client"))
    # A delivery that was sent can be neither retried nor dropped, and nothing is held.
    sent = next(delivery for delivery in call("list_deliveries") if str(delivery.state) == "delivered")
    for name in ("retry_delivery", "drop_delivery"):
        assert call(name, id=sent.id, status=409).code == "wrong_state"
    assert call("accept_held", id=tokens[0].id, status=409).code == "nothing_held"
    made_by = call("list_actions", type_=["silence.created"])
    assert made_by and made_by[0].subject and str(made_by[0].via) == "token", made_by
    # The same key has one effect.
    key = "5f0c6a52-9a4e-4f06-b1f6-5a7b1f9d0c11"
    first, second = (call("make_silence", body=wanted, idempotency_key=key, status=201) for _ in range(2))
    assert first.silence.id == second.silence.id and len(call("list_silences")) == 1, (first, second)
    _, anonymous = caller("daemon_client", daemon_client.Client(base_url=pages))
    anonymous("make_silence", body=wanted, status=401)
    anonymous("list_alerts")
    return own


def check_service():
    # Like a customer of the API: with a key, at the older base URL, which serves every path.
    client = service_client.AuthenticatedClient(base_url=service, token=key, prefix="", auth_header_name="x-api-key")
    own, call = caller("service_client", client)
    listed = call("token_list_v5").data
    # Older versions serve only the tokens of one listing method and return 404 for all others.
    examples = {str(token.listed_method): token.id for token in listed}
    examples["rich"] = "arbitrum"
    not_found = []
    for name, module in own.items():
        needed = [each.name for each in inspect.signature(module.sync_detailed).parameters.values() if each.default is each.empty and each.name != "client"]
        if name.startswith("investor_v"):
            continue
        for example in reversed(examples.values()):
            called.add(("service_client", name))
            response = patiently(lambda: module.sync_detailed(client=client, **{each: example for each in needed}))
            assert response.status_code in (200, 404), f"{name}: {response.status_code}: {response.content[:300]}"
            assert response.parsed is not None and response.parsed.metadata, f"{name}: the client cannot parse the response: {response.content[:300]}"
            if response.status_code == 200:
                break
        else:
            not_found.append(name)
    assert len(not_found) <= 5, f"only 404 for {not_found}"
    investors = call("investors_v5").data
    for version in ("investor_v1", "investor_v5"):
        call(version, id=investors[0].investor_id if investors else "nobody", status=200 if investors else 404)
    page = call("unlock_events_v5", id="arbitrum", page_size=2)
    assert len(page.data) == 2 and page.data[0].unlock_date is not None, page
    assert call("unlock_events_v5", id="nothing", status=404).error_message
    _, anonymous = caller("service_client", service_client.Client(base_url=service))
    assert anonymous("token_list_v5", status=401).error_message
    return own


daemon_operations, service_operations = check_daemon(), check_service()
uncalled = [f"{package}: {name}" for package, own in (("daemon_client", daemon_operations), ("service_client", service_operations)) for name in own if (package, name) not in called]
assert not uncalled, f"not called: {uncalled}"
print(f"{len(daemon_operations)} operations of the daemon and {len(service_operations)} of the data service called by generated clients")
