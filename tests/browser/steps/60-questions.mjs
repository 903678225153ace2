// The ten questions of a fund analyst. What the screen shows after at most two clicks or one form must answer each one. The expected
// answers are computed here from the API, which the pages do not use.
const UNITS = { "": 1, K: 1e3, M: 1e6, B: 1e9, T: 1e12 };
const DAY = 86400e3;
const line = (text) => text.replace(/\s+/g, " ").trim();
const shown = async (place) => line(await place.innerText());
/** The first number of a text, such as `$1.23M` or `12.65%`. */
const number = (text) => {
  const [, digits, unit] = /([\d,]+(?:\.\d+)?)\s?([KMBT]?)/.exec(text) ?? [];
  return digits === undefined ? NaN : Number(digits.replaceAll(",", "")) * UNITS[unit];
};
const isNear = (text, expected) => Math.abs(number(text) - expected) <= Math.max(Math.abs(expected) * 0.006, 0.006);
const byShare = (rows) => rows.filter((row) => row.valueToMarketCap !== null).sort((a, b) => b.valueToMarketCap - a.valueToMarketCap);

/** Counts what the analyst does to get an answer. */
class Effort {
  constructor(t, page) { Object.assign(this, { t, page, clicks: 0, forms: 0 }); }
  async click(place) { this.clicks++; await place.click(); await this.page.waitForLoadState("load"); }
  async form(fill) { this.forms++; await fill(); await this.page.waitForLoadState("load"); }
}

async function api(t, page, path) {
  const response = await page.request.get(`${t.base}/api/v1${path}`);
  t.check(response.ok(), `${path}: status ${response.status()}`);
  return response.json();
}

/** The rows of a list of unlocks by date: the date, the ticker, the value, the share of market cap, and the recipients. */
const rowsOf = (place) => place.locator("tbody tr:not(.today:has(td:nth-child(2):not(:has(a))))").evaluateAll((rows) => rows.map((row) => {
  const cells = [...row.cells].map((cell) => cell.innerText.replace(/\s+/g, " ").trim());
  return { date: cells[0], symbol: cells[1], value: cells[2], share: cells[3], recipients: cells.at(-1), isLinear: row.cells[row.cells.length - 1].innerText.startsWith("linear") };
}));

async function weekOfMyBook(t, page, effort) {
  await t.open(page, "/");
  await effort.form(async () => { await Promise.all([page.waitForURL(/group=portfolio/), page.getByLabel("Tokens", { exact: true }).selectOption("portfolio")]); });
  const sums = (await api(t, page, "/supply?group=portfolio")).ahead["7d"];
  const tile = await shown(page.locator("#tiles .tile").first());
  t.check(tile.startsWith("Next 7 days") && isNear(tile.slice("Next 7 days".length), sums.total.value ?? 0), `the next 7 days of the book are ${tile}, not ${sums.total.value}`);
  const coming = (await api(t, page, "/upcoming?within=7d&type=cliff&group=portfolio&limit=10000")).filter((row) => row.counted);
  const rows = await rowsOf(page.locator("#next"));
  for (const row of coming) t.check(rows.some((of) => of.symbol === row.symbol && (row.cliffValue === null || isNear(of.value, row.cliffValue))), `the list lacks the unlock of ${row.symbol}`);
  const members = new Set((await api(t, page, "/upcoming?within=90d&group=portfolio&limit=10000")).map((row) => row.symbol));
  t.check(rows.every((row) => members.has(row.symbol)), `the list has tokens outside of the book: ${rows.map((row) => row.symbol)}`);
}

async function largestShareThisMonth(t, page, effort) {
  await t.open(page, "/");
  await effort.click(page.getByRole("link", { name: "This month by share of market cap" }));
  const now = new Date(), end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
  const days = Math.ceil((end - now) / DAY);
  const rest = (await api(t, page, `/upcoming?within=${days}d&type=cliff&limit=10000`)).filter((row) => Date.parse(row.unlockDate) < end && Date.parse(row.unlockDate) > now);
  const rows = await rowsOf(page.locator("#list"));
  const shares = rows.map((row) => number(row.share)).filter((share) => !Number.isNaN(share));
  t.check(shares.length > 0 && shares.every((share, at) => at === 0 || share <= shares[at - 1] + 1e-9), `the list is not sorted by share: ${shares}`);
  const [largest] = byShare(rest);
  if (!largest) return;
  const coming = rows.find((row) => rest.some((of) => of.symbol === row.symbol && isNear(row.share, of.valueToMarketCap)));
  t.check(coming && isNear(coming.share, largest.valueToMarketCap), `the largest coming unlock by share is ${coming?.symbol} ${coming?.share}, not ${largest.symbol.slice(0, 40)} ${largest.valueToMarketCap}`);
}

async function changesOfTheWeek(t, page, effort) {
  await t.open(page, "/");
  await effort.click(page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Changes" }));
  await effort.click(page.getByRole("link", { name: "7 days" }));
  const changes = await api(t, page, "/changes?since=7d&limit=50");
  const rows = await page.locator("#changes tbody tr:has(> td a.token)").allInnerTexts();
  t.check(rows.length === changes.length || rows.length < changes.length && rows.length >= 20, `${rows.length} of ${changes.length} changes are shown`);
  for (const { symbol, change } of changes.slice(0, 20).filter((row) => row.change.shiftDays)) {
    const days = Math.abs(change.shiftDays), sign = change.shiftDays > 0 ? "+" : "−";
    const by = `${sign}${Number.isInteger(days) ? days : days.toFixed(1)} day`;
    // The page shows a hostile ticker in another form.
    const isOf = (row) => !/^[A-Z0-9]+$/.test(symbol) || row.includes(symbol);
    t.check(rows.some((row) => isOf(row) && line(row).includes(by)), `no row says that ${symbol.slice(0, 40)} moved by ${by}`);
  }
}

const RECIPIENTS = { "Founder / Team": "Team", "Private Investors": "Private investors", "Public Investors": "Public investors", Community: "Community", Reserve: "Reserve", Reserved: "Reserve", Liquidity: "Liquidity" };

async function recipientsOfNextCliff(t, page) {
  await t.open(page, "/");
  const first = (await rowsOf(page.locator("#next"))).find((row) => !row.isLinear);
  const coming = (await api(t, page, "/upcoming?within=90d&type=cliff&limit=10000")).filter((row) => Date.parse(row.unlockDate) > Date.now()).sort((a, b) => Date.parse(a.unlockDate) - Date.parse(b.unlockDate));
  const day = coming[0].unlockDate.slice(0, 10);
  const ofDay = coming.filter((row) => row.unlockDate.startsWith(day)).sort((a, b) => (b.cliffValue ?? -1) - (a.cliffValue ?? -1));
  // Of several with the same value, any can be the first.
  const next = ofDay.find((row) => row.cliffValue === ofDay[0].cliffValue && row.symbol === first.symbol) ?? ofDay[0];
  const sums = {};
  for (const part of next.record.cliffUnlocks.allocationBreakdown ?? []) {
    const name = RECIPIENTS[part.standardAllocationName] ?? "Other";
    sums[name] = (sums[name] ?? 0) + (part.cliffAmount ?? 0);
  }
  const whole = Object.values(sums).reduce((sum, amount) => sum + amount, 0);
  t.check(isNear(first.value, next.cliffValue), `the next cliff is ${first.symbol} with ${first.value}, not ${next.symbol.slice(0, 40)} with ${next.cliffValue}`);
  for (const [name, amount] of Object.entries(sums)) {
    const part = Object.keys(sums).length === 1 ? name : `${name} ${((amount / whole) * 100).toFixed(0)}%`;
    t.check(first.recipients.includes(part), `the recipients of the next cliff are ${first.recipients}, without ${part}`);
  }
}

const CORRECTIONS = ["added", "removed", "rescheduled", "resized", "split", "merged", "series_shifted", "series_rescaled", "restructured", "rewritten"];

async function movesOfASchedule(t, page, effort) {
  await t.open(page, "/tokens?q=Made%201");
  await effort.click(page.locator("#tokens a[href='/tokens/made-001']").first());
  const changes = (await api(t, page, "/changes?token=made-001&since=365d&limit=1000")).filter((row) => row.resource === "unlock" && CORRECTIONS.includes(row.change.kind));
  const moves = changes.map((row) => row.change.shiftDays).filter((days) => typeof days === "number");
  const sum = moves.reduce((all, days) => all + days, 0);
  const times = (count) => (count === 1 ? "once" : `${count} times`);
  const text = await shown(page.locator("#corrections p.first"));
  t.check(moves.length > 0 && text.startsWith(`Corrected ${times(changes.length)} in the last 365 days`), `the page says ${text}, but there were ${changes.length} corrections`);
  t.check(text.includes(`moved ${times(moves.length)}`) && (Math.abs(sum) < 0.05 || text.includes(`${Math.abs(sum)} day`) && text.includes(sum > 0 ? "later" : "earlier")), `the page says ${text}, but the moves are ${moves}`);
}

async function currency(t, page, effort) {
  await t.open(page, "/");
  const health = await shown(page.locator("#health summary").first());
  const status = await api(t, page, "/status");
  t.check(status.sourceUp === health.includes("source up"), `the line of the health says ${health}`);
  const age = Math.min(...status.endpoints.map((row) => row.ageSeconds).filter((seconds) => seconds !== null));
  const [, value, unit] = /last success (?:(\d+) (s|min|h|days?) ago|just now)/.exec(health) ?? [];
  const seconds = value === undefined ? 0 : Number(value) * { s: 1, min: 60, h: 3600, day: 86400, days: 86400 }[unit];
  t.check(health.includes("last success") && Math.abs(seconds - age) < 60, `the latest poll is ${age} s old, and the page says ${health}`);
  await effort.click(page.locator("#health summary").first());
  const endpoints = await page.locator("#source table.past tbody tr").count();
  t.check(endpoints === status.endpoints.length, `${endpoints} of ${status.endpoints.length} endpoints have an age`);
}

async function reasonOfAnAlert(t, page, effort) {
  const [alert] = await api(t, page, "/alerts?state=firing&rule=BigCliffAhead&limit=1");
  if (!t.check(alert, "no alert about an unlock fires")) return;
  // The link in the message leads here.
  await t.open(page, `/alerts/${alert.id}`);
  await effort.click(page.locator("#why summary").first());
  const steps = await shown(page.locator("#why .steps"));
  const value = alert.record?.cliffUnlocks?.cliffValue ?? (await api(t, page, `/alerts/${alert.id}`)).record?.cliffUnlocks?.cliffValue;
  t.check(/cliffValue >= \d+/.test(steps), `the explanation has no condition: ${steps.slice(0, 200)}`);
  if (value !== undefined) t.check(steps.includes(`cliffValue = ${Math.round(value).toLocaleString("en-US")}`.slice(0, 20)), `the explanation lacks the value ${value}: ${steps.slice(0, 400)}`);
  t.check((await shown(page.locator("#why"))).includes("Result:"), "the explanation has no result");
}

async function quietUntilItChanges(t, page, effort) {
  const acknowledged = new Set((await api(t, page, "/acks")).map((ack) => ack.alert));
  const alert = (await api(t, page, "/alerts?state=firing&limit=50")).find((row) => !acknowledged.has(row.id));
  if (!t.check(alert, "no alert fires")) return;
  await t.open(page, `/alerts/${alert.id}`);
  await effort.form(async () => {
    await page.locator("#acknowledge").getByLabel("Your name").fill("ann");
    await page.getByRole("button", { name: "Acknowledge" }).click();
  });
  t.check((await shown(page.locator("#actions"))).includes("No reminders are sent until the date, amount, or level of the alert changes"), "the page does not say until when the alert is quiet");
  const acks = await api(t, page, "/acks");
  t.check(acks.some((ack) => ack.alert === alert.id && ack.author === "ann"), "the acknowledgement is not stored");
  await page.getByRole("button", { name: "Withdraw acknowledgement" }).click();
}

/** The next Monday at 8:00 in Zurich, as an instant. */
function nextMonday(now) {
  const parts = (at) => Object.fromEntries(new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Zurich", weekday: "short", hour: "2-digit", minute: "2-digit", hour12: false }).formatToParts(at).map(({ type, value }) => [type, value]));
  for (let at = Math.ceil(now / 900e3) * 900e3; ; at += 900e3) {
    const { weekday, hour, minute } = parts(at);
    if (weekday === "Mon" && hour === "08" && minute === "00" && at > now) return at;
  }
}

async function weeklyList(t, page, effort) {
  await t.open(page, "/");
  await effort.click(page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Digests" }));
  const card = page.locator("section.card").filter({ has: page.getByRole("heading", { name: "weekly" }) });
  const text = await shown(card);
  t.check(/\bmon\b/i.test(text) && text.includes("08:00") && text.includes("Europe/Zurich"), `the schedule of the weekly digest is ${text.slice(0, 200)}`);
  t.check(text.includes("10 largest by share of market cap"), `the page does not say that the digest has the ten largest by share: ${text.slice(0, 200)}`);
  const next = await card.locator("header time").first().getAttribute("datetime");
  t.check(Date.parse(next) === nextMonday(Date.now()), `the next digest is due at ${next}`);
  const expected = byShare((await api(t, page, "/upcoming?within=30d&type=cliff&limit=10000")).filter((row) => Date.parse(row.unlockDate) > Date.now())).slice(0, 10);
  const all = (await card.locator("pre").textContent()).split("\n");
  const start = all.findIndex((of) => of.trim().startsWith("Upcoming unlocks")) + 1;
  const lines = all.slice(start, all.findIndex((of, at) => at >= start && !of.trim().startsWith("- ")));
  const shares = lines.map((of) => /\(([^()]+)% of market cap\)/.exec(of)?.[1] ?? "");
  t.check(shares.length === expected.length && expected.every((row, at) => isNear(shares[at], row.valueToMarketCap)), `the digest does not list the ten largest by share: ${lines.join(" | ").slice(0, 900)} instead of ${expected.map((row) => `${row.symbol} ${row.valueToMarketCap}`)}`);
}

async function ruleForMyThreshold(t, page, effort) {
  await t.open(page, "/rules");
  await effort.click(page.getByRole("link", { name: "New rule" }));
  await effort.form(async () => {
    await page.getByLabel("At least, in % of market cap").fill("4.5");
    await page.getByLabel("Tokens, globs, or groups").fill("@portfolio");
    await page.getByRole("button", { name: "Show the rule" }).click();
  });
  const rule = await page.locator("#rule-text").innerText();
  t.check(rule.includes("valueToMarketCap >= 4.5") && rule.includes('tokens = ["@portfolio"]'), `unexpected rule: ${rule}`);
  t.check((await page.locator("#problems").count()) === 0, "the rule has problems");
}

const QUESTIONS = { weekOfMyBook, largestShareThisMonth, changesOfTheWeek, recipientsOfNextCliff, movesOfASchedule, currency, reasonOfAnAlert, quietUntilItChanges, weeklyList, ruleForMyThreshold };

export default async function (t) {
  const page = await t.page();
  await t.open(page, "/login?next=/");
  if (page.url() !== `${t.base}/`) {
    await page.getByLabel(/token/i).fill(t.token);
    await page.getByRole("button", { name: "Log in" }).click();
  }
  for (const [name, answer] of Object.entries(QUESTIONS)) {
    const effort = new Effort(t, page);
    try { await answer(t, page, effort); } catch (error) { t.fault(`${name}: ${error.message.split("\n").slice(0, 4).join(" ")}`); }
    t.check(effort.clicks <= 2 && effort.forms <= 1, `${name} takes ${effort.clicks} clicks and ${effort.forms} forms`);
    await t.look(page, `question-${name}.wide.light`);
    console.log(`  ${name}: ${effort.clicks} clicks, ${effort.forms} forms`);
  }
  await page.close();
}
