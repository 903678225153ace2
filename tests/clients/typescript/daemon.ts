// Calls every operation of the daemon.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import createClient, { type Client } from "openapi-fetch";
import { type Contract, failed, ok, patientFetch } from "./contract.js";
import type { components, paths } from "./generated/daemon.js";

type Schemas = components["schemas"];
type Daemon = Client<paths>;
type Event = Schemas["Event"];

/** The time until the demo has produced one of each kind of data. */
const WAIT_MS = 90_000;

/** Returns the rows of a list that was requested without `paged`. */
function rows<Row, Page>(list: Row[] | Page): Row[] {
  assert(Array.isArray(list), "a bare array");
  return list;
}

/** Returns the page of a list that was requested with `paged`. */
function page<Row, Page extends object>(list: Row[] | Page): Page {
  assert(!Array.isArray(list), "an object");
  return list;
}

function first<T>(list: readonly T[]): T {
  const item = list[0];
  assert(item !== undefined, "an empty list");
  return item;
}

export async function callDaemon(url: string, token: string, contract: Contract): Promise<void> {
  const client = createClient<paths>({ baseUrl: url, fetch: patientFetch, headers: { authorization: `Bearer ${token}` } });
  client.use(contract.middleware());
  const until = Date.now() + WAIT_MS;
  // The demo makes its scripted correction last.
  while (rows(ok(await client.GET("/api/v1/changes"))).length === 0 && Date.now() < until) await sleep(500);
  await callReads(client, until);
  await callTexts(client);
  await callEvents(client);
  await callSilences(client);
  await callActions(client);
  const anonymous = createClient<paths>({ baseUrl: url, fetch: patientFetch });
  anonymous.use(contract.middleware());
  rows(ok(await anonymous.GET("/api/v1/alerts")));
  const body = { alert: "any", author: "nobody" };
  const problem = failed(await anonymous.POST("/api/v1/acks", { body }), 401);
  assert.equal(problem.code satisfies Schemas["ErrorCode"], "unauthorized");
}

async function callReads(client: Daemon, until: number): Promise<void> {
  const status = ok(await client.GET("/api/v1/status"));
  assert((status.alerts["firing"] ?? 0) > 0 && status.source === "up" && status.tokens > 0 && status.endpoints.some((endpoint) => endpoint.polls > 0), JSON.stringify(status));
  const tokens = rows(ok(await client.GET("/api/v1/tokens", { params: { query: { sort: "value" } } })));
  const values = tokens.map((one) => one.ahead["90d"].total.value ?? 0);
  assert(first(values) > 0 && values.every((value, at) => at === 0 || value <= values[at - 1]!), "tokens by value");
  const supply = ok(await client.GET("/api/v1/supply"));
  assert((supply.ahead["90d"].total.value ?? 0) >= first(values), JSON.stringify(supply));
  const detail = ok(await client.GET("/api/v1/tokens/{id}", { params: { path: { id: first(tokens).id } } }));
  assert(detail.id === first(tokens).id && detail.feeds.length > 0 && (detail.records.unlock?.length ?? 0) > 0, detail.id);
  const problem = failed(await client.GET("/api/v1/tokens/{id}", { params: { path: { id: "nothing" } } }), 404);
  assert(problem.code === "unknown_token" && problem.detail !== "", JSON.stringify(problem));

  const query = { within: "90d", min_value: 1e6, type: ["cliff" as const] };
  const unlock = first(rows(ok(await client.GET("/api/v1/upcoming", { params: { query } }))));
  assert(unlock.type === "cliff" && (unlock.cliffValue ?? 0) >= 1e6 && Date.parse(unlock.unlockDate ?? "") > 0, JSON.stringify(unlock));
  const change = first(rows(ok(await client.GET("/api/v1/changes", { params: { query: { limit: 1 } } }))));
  assert(change.id > 0 && change.change.summary !== "" && Date.parse(change.at) > 0, JSON.stringify(change));
  assert(first(rows(ok(await client.GET("/api/v1/rules")))).name !== "");
  const polls = ok(await client.GET("/api/v1/polls"));
  assert(polls.some((one) => one.cycles.some((cycle) => cycle.polls > 0)), JSON.stringify(polls));

  // The demo still evaluates, so an alert may be updated between two requests.
  for (;;) {
    const firing = { state: ["firing" as const] };
    const alerts = rows(ok(await client.GET("/api/v1/alerts", { params: { query: firing } })));
    const paged = page(ok(await client.GET("/api/v1/alerts", { params: { query: { ...firing, limit: 1, paged: true } } })));
    const holds = paged.total === alerts.length && paged.items.length === 1 && first(paged.items).id === first(alerts).id;
    if (!holds && Date.now() < until) continue;
    assert(holds && paged.next !== null, JSON.stringify(paged));
    const alert = ok(await client.GET("/api/v1/alerts/{id}", { params: { path: { id: first(alerts).id } } }));
    assert(alert.id === first(alerts).id && (alert.explanation?.steps.length ?? 0) > 0 && alert.messages.length > 0, alert.id ?? "");
    break;
  }
  const delivery = first(rows(ok(await client.GET("/api/v1/outbox"))));
  const logged = ok(await client.GET("/api/v1/outbox/{id}", { params: { path: { id: delivery.id } } }));
  assert(logged.webhookId === delivery.webhookId && Array.isArray(logged.attemptLog), JSON.stringify(logged));
}

async function callTexts(client: Daemon): Promise<void> {
  assert(ok(await client.GET("/api/openapi.json")).openapi.startsWith("3."));
  const calendar = ok(await client.GET("/calendar.ics", { params: { query: { within: "90d" } }, parseAs: "text" }));
  assert(calendar.startsWith("BEGIN:VCALENDAR") && calendar.includes("BEGIN:VEVENT"), calendar.slice(0, 300));
  const feed = ok(await client.GET("/feed.atom", { params: { query: { limit: 1 } }, parseAs: "text" }));
  assert(feed.includes("<entry>"), feed.slice(0, 300));
}

/** Narrows the body of an event by its type, as the compiler does for a user. */
function subject(event: Event): string | undefined {
  switch (event.type) {
    case "change":
      return event.body?.change.kind;
    case "alert.firing":
      return event.body?.alert;
    case "notification":
      return event.body?.notification;
    default:
      return undefined;
  }
}

async function callEvents(client: Daemon): Promise<void> {
  const events: Event[] = [];
  let after = 0;
  for (;;) {
    const found = ok(await client.GET("/api/v1/events", { params: { query: { after, limit: 100 } } }));
    events.push(...found.events);
    after = found.next;
    if (found.events.length === 0) break;
  }
  assert.deepEqual(events.map((event) => event.id), events.map((_, at) => at + 1), "events without gaps");
  for (const type of ["change", "alert.firing", "notification"] as const) {
    assert(events.some((event) => event.type === type && (subject(event) ?? "") !== ""), type);
  }
  // Live events continue after the event that the client has.
  const header = { "Last-Event-ID": after - 1 };
  const stream = ok(await client.GET("/events", { params: { header }, parseAs: "stream" }));
  assert(stream !== null, "a stream");
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes("\ndata: ")) break;
  }
  assert(text.startsWith("retry: ") && text.includes(`id: ${after}\n`), text);
}

async function callSilences(client: Daemon): Promise<void> {
  const firing = { state: ["firing" as const] };
  const alerts = rows(ok(await client.GET("/api/v1/alerts", { params: { query: firing } })));
  // Alerts of the watcher itself, such as held data, have no token.
  const alert = first(alerts.filter((one) => Boolean(one.tokenId)));
  const matchers = [`token="${alert.tokenId}"`];
  const preview = ok(await client.GET("/api/v1/silences/preview", { params: { query: { matcher: matchers } } }));
  assert(preview.alerts.some((hidden) => hidden.id === alert.id), JSON.stringify(preview));
  const wanted: Schemas["NewSilence"] = { matchers, author: "a client", comment: "of a test", duration: "1h" };
  const id = ok(await client.POST("/api/v1/silences", { body: wanted }), 201).silence.id;
  const path = { params: { path: { id } } };
  assert(ok(await client.GET("/api/v1/silences")).some((silence) => silence.id === id && silence.state === "active"));
  const body = { ...wanted, matchers: [{ name: "token", value: alert.tokenId ?? "" }], comment: "longer", duration: "2h" };
  assert.equal(ok(await client.PUT("/api/v1/silences/{id}", { ...path, body })).silence.comment, "longer");
  assert.deepEqual(ok(await client.GET("/api/v1/silences/{id}", path)).matchers, matchers);
  assert.equal((await client.DELETE("/api/v1/silences/{id}", path)).response.status, 204);
  assert.equal(failed(await client.GET("/api/v1/silences/{id}", path), 404).code, "unknown_silence");
  // The same key has one effect.
  const header = { "Idempotency-Key": "3c9a0d0e-6f0f-4a43-9d6d-9c63a1f0b7aa" };
  const made = [];
  for (let time = 0; time < 2; time += 1) {
    made.push(ok(await client.POST("/api/v1/silences", { params: { header }, body: wanted }), 201).silence.id);
  }
  assert.equal(made[0], made[1]);
  await client.DELETE("/api/v1/silences/{id}", { params: { path: { id: first(made) } } });
}

async function callActions(client: Daemon): Promise<void> {
  const firing = { state: ["firing" as const], limit: 1 };
  const alert = first(rows(ok(await client.GET("/api/v1/alerts", { params: { query: firing } })))).id;
  assert.equal(ok(await client.POST("/api/v1/acks", { body: { alert, author: "a client" } }), 201).alert, alert);
  assert.deepEqual(ok(await client.GET("/api/v1/acks")).map((ack) => ack.alert), [alert]);
  assert.equal((await client.DELETE("/api/v1/acks/{id}", { params: { path: { id: alert } } })).response.status, 204);
  assert.deepEqual(ok(await client.GET("/api/v1/acks")), []);

  const one = { params: { path: { id: alert } } };
  assert.equal(ok(await client.POST("/api/v1/alerts/{id}/notes", { ...one, body: { author: "a client", text: "seen" } }), 201).alert, alert);
  assert.equal(ok(await client.POST("/api/v1/alerts/{id}/assign", { ...one, body: { author: "a client", assignee: "ann" } })).alert, alert);
  const story = ok(await client.GET("/api/v1/alerts/{id}", one));
  assert.deepEqual([story.notes.at(-1)?.text, story.assignment?.assignee], ["seen", "ann"]);
  ok(await client.POST("/api/v1/alerts/{id}/assign", { ...one, body: { author: "a client", assignee: null } }));
  const actions = rows(ok(await client.GET("/api/v1/audit", { params: { query: { type: ["acknowledgement.removed"], limit: 1 } } })));
  assert.deepEqual(actions.map(({ subject, via }) => [subject, via]), [[alert, "token"]]);

  // A delivery that was sent can be neither retried nor dropped, and nothing is held.
  const sent = first(rows(ok(await client.GET("/api/v1/outbox", { params: { query: { state: ["delivered"], limit: 1 } } }))));
  const path = { params: { path: { id: sent.id } } };
  assert.equal(failed(await client.POST("/api/v1/outbox/{id}/retry", path), 409).code, "wrong_state");
  assert.equal(failed(await client.POST("/api/v1/outbox/{id}/drop", path), 409).code, "wrong_state");
  const token = first(rows(ok(await client.GET("/api/v1/tokens", { params: { query: { limit: 1 } } })))).id;
  assert.equal(failed(await client.POST("/api/v1/tokens/{id}/accept", { params: { path: { id: token } } }), 409).code, "nothing_held");
  const body = { receiver: sent.receiver, since: "2020-01-01T00:00:00Z", dryRun: true };
  assert(ok(await client.POST("/api/v1/replays", { body })).deliveries > 0);
  assert(ok(await client.POST("/-/reload", { parseAs: "text" })).includes("active rules"));
}
