// Checks pages with another origin: the API is open to the origin in the config, and closed to others. The pages of the daemon are closed to both.
async function requests({ base, token }) {
  const authorized = { authorization: `Bearer ${token}` };
  const silence = { matchers: ["alertname=Origins"], author: "desk", comment: "from another origin", duration: "1h" };
  const post = { method: "POST", headers: { ...authorized, "content-type": "application/json", "idempotency-key": "origins-1" }, body: JSON.stringify(silence) };
  const attempt = async (path, options) => {
    try {
      const response = await fetch(base + path, options);
      const headers = Object.fromEntries(["etag", "cliffwatch-total", "idempotency-replayed", "ratelimit-remaining"].map((name) => [name, response.headers.get(name)]));
      return { status: response.status, text: await response.text(), ...headers };
    } catch (error) { return { status: error.name }; }
  };
  const stream = () => new Promise((resolve) => {
    const events = new EventSource(`${base}/events?after=0`);
    events.onopen = () => { events.close(); resolve({ status: "open" }); };
    events.onerror = () => { events.close(); resolve({ status: "TypeError" }); };
  });
  return {
    list: await attempt("/api/v1/alerts?limit=1"),
    cached: await attempt("/api/v1/alerts?limit=1", { headers: { "if-none-match": "*" } }),
    missing: await attempt("/api/v1/alerts/nothing"),
    anonymous: await attempt("/api/v1/silences", { ...post, headers: { ...post.headers, authorization: "Bearer wrong" } }),
    created: await attempt("/api/v1/silences", post),
    repeated: await attempt("/api/v1/silences", post),
    events: await stream(),
    page: await attempt("/alerts"),
    metrics: await attempt("/metrics"),
    credentials: await attempt("/api/v1/status", { credentials: "include" }),
  };
}

export default async function (t) {
  const other = t.control.replace("127.0.0.1", "localhost");
  for (const [desk, isAllowed] of [[t.control, true], [other, false]]) {
    const page = await t.page({ others: [t.control, other], expects: ["CORS", "net::ERR_FAILED", "Failed to load resource", "MIME type"] });
    await page.goto(`${desk}/desk`);
    const found = await page.evaluate(requests, { base: t.base, token: t.token });
    const expected = { list: 200, cached: 304, missing: 404, anonymous: 401, created: 201, repeated: 201, events: "open" };
    for (const [name, { status }] of Object.entries(found)) {
      const wanted = (isAllowed && expected[name]) || "TypeError";
      t.check(status === wanted, `${name} from ${desk}: ${status} instead of ${wanted}`);
    }
    if (isAllowed) {
      t.check(found.list.etag && found.list["cliffwatch-total"], `unreadable headers of a list: ${JSON.stringify(found.list)}`);
      t.check(found.repeated["idempotency-replayed"] === "true" && found.repeated.text === found.created.text, "the key has no effect");
      t.check(found.anonymous["ratelimit-remaining"] && JSON.parse(found.anonymous.text).code === "unauthorized", "unreadable error");
      t.check(JSON.parse(found.missing.text).code === "unknown_alert", "unreadable problem");
    }
    await page.close();
  }
}
