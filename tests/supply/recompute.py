"""Recomputes coming supply from the responses of a data service, and compares it with everything that a daemon shows.

Usage: recompute.py SOURCE DAEMON NOW. SOURCE and DAEMON are base URLs, NOW is the time of both. Uses nothing of the program: only the
published interface, and the definitions of docs/supply.md.
Prints one line per difference and exits with status 1 if there is one.
"""

import json
import re
import sys
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone

DAY = timedelta(days=1)
problems = []


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return response.read().decode()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise


def time(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def rows(source, path):
    """All rows of a paged list; None if the source does not have it."""
    found, page = [], 1
    while True:
        text = get(f"{source}{path}{'&' if '?' in path else '?'}page={page}&pageSize=100")
        if text is None:
            return None
        body = json.loads(text)
        found += body["data"]
        if page >= body["metadata"].get("totalPages", 1):
            return found
        page += 1


def month_after(day):
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)


def span(date, precision):
    """First and last possible instant of a date; the last is exclusive unless both are equal."""
    day = date.replace(hour=0, minute=0, second=0, microsecond=0)
    if precision == "month":
        return day.replace(day=1), month_after(day)
    if precision == "week":
        sunday = day - timedelta(days=(day.weekday() + 1) % 7)
        return sunday, sunday + 7 * DAY
    if precision == "day":
        return day, day + DAY
    return date, date


ORDER = {"second": 0, "day": 1, "week": 2, "month": 3}


class Token:
    def __init__(self, source, item, now):
        self.id, self.market_cap, self.now = item["id"], item.get("marketCap"), now
        events = rows(source, f"/v5/unlock/events/{self.id}")
        # Without a schedule nothing is known, which is not the same as no unlocks.
        self.is_known = events is not None
        self.price, priced_at = None, None
        self.cliffs = []
        for event in events or []:
            parts = event["cliffUnlocks"]["allocationBreakdown"]
            for part in parts:
                if part.get("referencePrice") is not None and (priced_at is None or part["referencePriceUpdatedTime"] > priced_at):
                    self.price, priced_at = part["referencePrice"], part["referencePriceUpdatedTime"]
            date = time(event["unlockDate"])
            precision = max((part.get("unlockPrecision") or "second" for part in parts), key=lambda p: ORDER.get(p, 1), default="second")
            begin, end = span(date, precision)
            cliff = event["cliffUnlocks"]
            self.cliffs.append((date, begin, end, cliff["cliffAmount"], cliff.get("cliffValue")))
        older = rows(source, f"/v1/unlock/events/{self.id}")
        # Tokens per day by date, if only daily emission shows the linear supply. Then no instant of a change is known, only its day.
        self.segments, self.daily = [], None
        for event in older or []:
            linear = event.get("linearUnlocks")
            for part in (linear or {}).get("allocationBreakdown") or []:
                begin, end = time(part["beginDate"]), time(part["endDate"])
                self.segments.append((begin, end, part["linearAmount"]))
                if self.price is None and part.get("referencePrice") is not None:
                    self.price = part["referencePrice"]
        if older is None and self.is_known:
            self.from_emission(source)

    def from_emission(self, source):
        """Linear supply of a token that v1 does not have: the emission of each day without its cliffs."""
        self.daily, first = {}, self.now.date()
        path = f"/v5/daily-emission/{self.id}?start={first}&end={first + 98 * DAY}"
        for day in rows(source, path) or []:
            begin = time(day["startDate"])
            cliffs = sum(amount for date, _, _, amount, _ in self.cliffs if begin <= date < begin + DAY)
            linear = day["unlockAmount"] - cliffs
            if linear > 1e-6 * max(1.0, day["unlockAmount"]):
                self.segments.append((begin, begin + DAY, linear))
                self.daily[begin.date()] = linear
            if self.price is None:
                self.price = day.get("referencePrice")

    def ahead(self, days, now=None):
        now = now or self.now
        until = now + days * DAY
        counted = [cliff for cliff in self.cliffs if now < cliff[0] <= until]
        inexact = [c for c in self.cliffs if not now < c[0] <= until and c[1] < c[2] and c[2] > now and c[1] <= until]
        linear = 0.0
        for begin, end, amount in self.segments:
            overlap = (min(end, until) - max(begin, now)) / (end - begin) if end > begin else 0.0
            linear += amount * max(0.0, overlap)
        return counted, inexact, linear


def total(cliffs, index):
    known = [cliff[index] for cliff in cliffs if cliff[index] is not None]
    return sum(known) if known or not cliffs else None


def close(expected, found, unit):
    """Equal to the cent or to the token, and within the precision of the numbers."""
    if expected is None or found is None:
        return expected is None and found is None
    return abs(expected - found) <= max(unit, 1e-9 * abs(expected))


def check(what, expected, found, unit=0.01):
    if not close(expected, found, unit):
        problems.append(f"{what}: expected {expected}, found {found}")


def pages(daemon, path):
    """All rows of a list of the daemon."""
    found = []
    while path:
        body = json.loads(get(f"{daemon}{path}"))
        found += body["items"]
        path = body["next"]
    return found


def usd(value):
    """A value as pages write it."""
    for scale, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if value >= scale * 0.999995 and value >= 999.995:
            return f"${value / scale:.2f}{unit}"
    return None if value < 1 else "$" + (f"{value:.2f}"[:-3] if f"{value:.2f}".endswith(".00") else f"{value:.2f}")


def text_of(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def check_page(what, text, value):
    """The page shows the value as written for people. Values on the border between two roundings are not checked."""
    if value is None or value < 1:
        return
    forms = {usd(value * (1 + shift)) for shift in (-1e-9, 0, 1e-9)}
    if not any(form in text for form in forms):
        problems.append(f"{what}: no {usd(value)} on the page")


def compare_token(token, row, page):
    if not token.is_known:
        windows = [row["ahead"][f"{days}d"] for days in (7, 30, 90)]
        numbers = [number for ahead in windows for part in ahead.values() for number in part.values()]
        if row["ahead"]["known"] != "none" or any(number is not None for number in numbers):
            problems.append(f"{token.id}: expected nothing to be known, found {row['ahead']}")
        if "not read yet" not in page:
            problems.append(f"{token.id}: the page does not say that nothing was read")
        return
    if row["ahead"]["known"] != "all":
        problems.append(f"{token.id}: expected everything to be known, found {row['ahead']['known']}")
    for days in (7, 30, 90):
        counted, inexact, linear = token.ahead(days)
        ahead, what = row["ahead"][f"{days}d"], f"{token.id} {days}d"
        value = total(counted, 4)
        check(f"{what} cliff amount", total(counted, 3), ahead["cliff"]["amount"], 1)
        check(f"{what} cliff value", value, ahead["cliff"]["value"])
        check(f"{what} cliff count", len(counted), ahead["cliff"]["count"], 0)
        check(f"{what} inexact amount", total(inexact, 3), ahead["inexact"]["amount"], 1)
        check(f"{what} inexact value", total(inexact, 4), ahead["inexact"]["value"])
        check(f"{what} linear amount", linear, ahead["linear"]["amount"], 1)
        worth = linear * token.price if token.price is not None else (0.0 if linear == 0 else None)
        check(f"{what} linear value", worth, ahead["linear"]["value"])
        check(f"{what} per day", linear / days, ahead["linear"]["perDay"], 1)
        both = None if worth is None and value is None else (value or 0.0) + (worth or 0.0)
        check(f"{what} total value", both, ahead["total"]["value"])
        if token.market_cap and both is not None:
            check(f"{what} share", both / token.market_cap * 100, ahead["total"]["percentOfMarketCap"], 1e-6)
        check_page(f"{what} token page", page, both)


def is_notable(before, after):
    return abs(after - before) > 0.01 * max(before, after)


def steps(token, until):
    """Notable changes of the daily linear release: date, tokens per day before, and from then on."""
    rates = [(begin, end, amount / ((end - begin) / DAY)) for begin, end, amount in token.segments if end > begin]
    dates = sorted({date for begin, end, _ in rates for date in (begin, end) if token.now < date <= until})
    for date in dates:
        before = sum(rate for begin, end, rate in rates if begin < date <= end)
        after = sum(rate for begin, end, rate in rates if begin <= date < end)
        if is_notable(before, after):
            yield date, before, after


def changed_days(token, until):
    """The days whose release differs notably from the day before: the change is on one of the two days."""
    days = [token.now.date() + number * DAY for number in range(1, (until.date() - token.now.date()).days + 1)]
    return [day for day in days if is_notable(token.daily.get(day - DAY, 0.0), token.daily.get(day, 0.0))]


def compare_next(tokens, daemon):
    """The list of what comes next has the first cliffs and changes of linear unlocks, by day, the largest first."""
    section = re.search(r'<section class="card[^"]*" id="next".*?</section>', get(f"{daemon}/"), re.S)[0]
    found = []
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", section, re.S):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)
        slug = re.search(r'href="/tokens/([^"]+)"', row)
        if slug and cells:
            day = datetime.strptime(re.search(r"\d+ \w+ \d{4}", cells[0])[0], "%d %b %Y").date()
            kind = "linear" if text_of(cells[4]).strip().startswith("linear") else "cliff"
            found.append((day, slug[1], kind, text_of(cells[4])))
    until, expected = tokens[0].now + 90 * DAY, {}
    for token in tokens:
        for date, _, _, amount, value in token.cliffs:
            if token.now < date <= until and ((value if value is not None else amount) or 0.0) > 0:
                expected.setdefault((date.date(), token.id, "cliff"), []).append((value, []))
        for date, before, after in steps(token, until) if token.daily is None else []:
            shown = [rate * token.price for rate in (before, after)] if token.price is not None else []
            value = abs(after - before) * token.price if token.price is not None else None
            expected.setdefault((date.date(), token.id, "linear"), []).append((value, shown))
    days = [row[0] for row in found]
    total_of = re.search(r"(\d[\d,]*) of (\d[\d,]*) dates in the next", text_of(section))
    count = int(total_of[2].replace(",", "")) if total_of else len(found)
    daily = {token.id: changed_days(token, until) for token in tokens if token.daily is not None}
    exact, changed = sum(map(len, expected.values())), sum(map(len, daily.values()))
    # A change within a day shows on two days, and one at an edge of the window may be outside of it.
    if not exact + changed // 2 - len(daily) <= count <= exact + changed + len(daily):
        problems.append(f"next: expected {exact} dates and about {changed} of daily emission, found {count}")
    if days != sorted(days) or len(found) != min(count, 24):
        problems.append(f"next: {len(found)} of {count} rows, by the days {days}")
    # The last day may be cut.
    is_whole = lambda day: day < days[-1] or count == len(found)
    for day, slug, kind in sorted({row[:3] for row in found} | {key for key in expected if days and is_whole(key[0])}):
        rows_of = [text for at, of, what, text in found if (at, of, what) == (day, slug, kind)]
        due = expected.get((day, slug, kind), [])
        if kind == "linear" and slug in daily:
            if not {day, day + DAY} & set(daily[slug]):
                problems.append(f"next: {slug} does not change on {day}")
        elif is_whole(day) and len(rows_of) != len(due):
            problems.append(f"next: expected {len(due)} rows of {slug} ({kind}) on {day}, found {len(rows_of)}")
        for _, rates in due if rows_of else []:
            for rate in rates:
                check_page(f"next {slug} on {day}", " ".join(rows_of), rate)
    for slug, changes in daily.items():
        shown = {at for at, of, what, _ in found if (of, what) == (slug, "linear")}
        for day in changes:
            if is_whole(day) and day - DAY > tokens[0].now.date() and not {day - DAY, day} & shown:
                problems.append(f"next: {slug} changes on {day}, which is not in the list")
    for day in sorted(set(days)):
        keys = [row[:3] for row in found if row[0] == day]
        values = [expected[key][0][0] for key in keys if len(expected.get(key, [])) == 1]
        ranks = [float("-inf") if value is None else value for value in values]
        if any(later > earlier * (1 + 1e-9) for earlier, later in zip(ranks, ranks[1:]) if earlier >= 0):
            problems.append(f"next on {day}: the largest is not first: {keys}")


def compare_totals(tokens, daemon):
    supply = json.loads(get(f"{daemon}/api/v1/supply"))
    metrics = get(f"{daemon}/metrics")
    overview = text_of(get(f"{daemon}/"))
    for days in (7, 30, 90):
        sums = {"cliff": 0.0, "linear": 0.0, "inexact": 0.0}
        for token in tokens:
            counted, inexact, linear = token.ahead(days)
            sums["cliff"] += total(counted, 4) or 0.0
            sums["inexact"] += total(inexact, 4) or 0.0
            sums["linear"] += linear * (token.price or 0.0)
        found = supply["ahead"][f"{days}d"]
        for kind, value in sums.items():
            check(f"all {days}d {kind}", value, found[kind]["value"], 0.01 * len(tokens))
        check(f"all {days}d total", sums["cliff"] + sums["linear"], found["total"]["value"], 0.01 * len(tokens))
        for value in (sums["cliff"] + sums["linear"], sums["cliff"], sums["linear"]):
            check_page(f"overview {days}d", overview, value)
        for kind in ("cliff", "linear") if days < 90 else ():
            pattern = rf'^cliffwatch_value_ahead_usd{{(?=[^}}]*kind="{kind}")(?=[^}}]*within="{days}d")[^}}]*}} (\S+)$'
            sample = re.search(pattern, metrics, re.M)
            check(f"metric {days}d {kind}", sums[kind], float(sample[1]) if sample else None, 0.01 * len(tokens))


def compare_upcoming(tokens, daemon, days):
    sums = {}
    for row in pages(daemon, f"/api/v1/upcoming?within={days}d&limit=50&paged=true"):
        of = sums.setdefault(row["tokenId"], {"cliffs": [], "linear": 0.0})
        if row["type"] == "cliff":
            of["cliffs"].append((time(row["unlockDate"]), row["cliffAmount"]))
        else:
            of["linear"] += row["amountInWindow"] or 0.0
    for token in tokens:
        # The list counts from the start of the minute.
        counted, inexact, linear = token.ahead(days, token.now.replace(second=0, microsecond=0))
        found = sums.pop(token.id, {"cliffs": [], "linear": 0.0})
        check(f"upcoming {token.id} linear", linear, found["linear"], 1)
        expected = sorted((cliff[0], cliff[3]) for cliff in counted + inexact)
        if expected != sorted(found["cliffs"]):
            problems.append(f"upcoming {token.id}: expected the cliffs {expected}, found {sorted(found['cliffs'])}")
    if sums:
        problems.append(f"upcoming: unexpected tokens {sorted(sums)}")


def compare_calendar(tokens, daemon):
    """Each cliff of the next 30 days has an entry, and no other date of a cliff has one."""
    calendar = re.sub(r"\r?\n[ \t]", "", get(f"{daemon}/calendar.ics?linear=false&within=30d"))
    found = sorted(re.findall(r"^DTSTART(?:;VALUE=DATE)?:(\d{8})", calendar, re.M))
    until = tokens[0].now + 30 * DAY
    due = [c for token in tokens for c in token.cliffs if (c[2] > token.now or c[0] > token.now) and c[1] <= until]
    expected = sorted(cliff[0].strftime("%Y%m%d") for cliff in due)
    if expected != found:
        problems.append(f"calendar: expected {len(expected)} cliffs, found {len(found)}: {set(expected) ^ set(found)}")


def compare_digest(tokens, daemon):
    """The next digest, of the coming 7 days, names the total and both parts."""
    digest = text_of(get(f"{daemon}/digests"))
    cliffs = sum(total(token.ahead(7)[0], 4) or 0.0 for token in tokens)
    linear = sum(token.ahead(7)[2] * (token.price or 0.0) for token in tokens)
    for value in (cliffs + linear, cliffs, linear):
        check_page("digest", digest, value)


def main():
    source, daemon, now = sys.argv[1:4]
    now = time(now).astimezone(timezone.utc)
    listed = json.loads(get(f"{source}/v5/token/list"))["data"]
    tokens = [Token(source, item, now) for item in listed]
    found = {row["id"]: row for row in pages(daemon, "/api/v1/tokens?limit=50&paged=true")}
    for token in tokens:
        if token.id not in found:
            problems.append(f"{token.id}: not in the list of tokens")
            continue
        compare_token(token, found[token.id], text_of(get(f"{daemon}/tokens/{token.id}")))
    compare_totals(tokens, daemon)
    compare_next(tokens, daemon)
    compare_upcoming(tokens, daemon, 30)
    compare_calendar(tokens, daemon)
    compare_digest(tokens, daemon)
    for problem in problems[:100]:
        print(problem)
    print(f"{len(tokens)} tokens at {now.isoformat()}: {len(problems)} differences")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
