"""Parses calendars and feeds: subscribe.py FILE…. Prints one JSON line per file.

Calendars (.ics) are parsed by icalendar, feeds (.atom) by feedparser and a strict XML parser.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree as tree


def calendar(data):
    import icalendar

    read = icalendar.Calendar.from_ical(data)
    events = []
    for event in read.walk("VEVENT"):
        start, end = event["DTSTART"].dt, event.get("DTEND")
        events.append(
            {
                "uid": str(event["UID"]),
                "start": start.isoformat(),
                "end": end.dt.isoformat() if end else None,
                "sequence": int(event["SEQUENCE"]),
                "modified": event["LAST-MODIFIED"].dt.isoformat(),
                "status": str(event["STATUS"]),
                "summary": str(event["SUMMARY"]),
                "alarms": [str(alarm["TRIGGER"].dt) for alarm in event.walk("VALARM")],
            }
        )
    problems = [str(problem) for event in read.walk() for problem in getattr(event, "errors", [])]
    return {"events": events, "problems": problems}


def feed(data):
    import feedparser

    tree.fromstring(data)
    read = feedparser.parse(data)
    entries = [{"id": each.id, "title": each.title, "updated": each.updated, "link": each.get("link")} for each in read.entries]
    return {"version": read.version, "wrong": bool(read.bozo), "id": read.feed.id, "updated": read.feed.updated, "entries": entries}


for name in sys.argv[1:]:
    path = pathlib.Path(name)
    data = path.read_bytes()
    print(json.dumps(calendar(data) if path.suffix == ".ics" else feed(data)), flush=True)
