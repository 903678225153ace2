// Checks all actions: login, acknowledgements, silences, bulk actions, test digests, retries of dead letters, and the playground.
const text = (page) => page.locator("main").innerText();

async function logIn(t, page, path) {
  await t.open(page, `/login?next=${encodeURIComponent(path)}`);
  if (page.url() === t.base + path) return;
  await page.getByLabel(/token/i).fill(t.token);
  await page.getByRole("button", { name: "Log in" }).click();
  t.check(page.url() === t.base + path, `the login leads to ${page.url()}`);
}

async function refusedLogin(t) {
  const page = await t.page({ expects: ["403", "401"], locale: "en-GB" });
  await t.open(page, "/alerts?state=firing");
  await page.locator("#alerts tbody a[href^='/alerts/']").first().click();
  t.check((await page.getByRole("button", { name: "Acknowledge" }).count()) === 0, "a logged-out reader can acknowledge");
  await page.locator("main").getByRole("link", { name: "log in" }).click();
  await t.look(page, "login.wide.light");
  await page.getByLabel(/token/i).fill("not the token");
  await page.getByRole("button", { name: "Log in" }).click();
  t.check((await text(page)).includes("Wrong access key."), "a wrong token is accepted");
  await t.look(page, "login-refused.wide.light");
  // A form of another site: the browser sends its origin.
  const forged = await page.request.post(`${t.base}/silences`, { form: { matchers: "token=x", duration: "1h", author: "x", comment: "x" }, headers: { origin: "https://evil.example" } });
  t.check(forged.status() === 403, `the status of a forged form is ${forged.status()}`);
  await page.close();
}

async function acknowledge(t, page) {
  await t.open(page, "/alerts?state=firing&acknowledged=no");
  await page.locator("#alerts tbody a[href^='/alerts/']").first().click();
  const path = new URL(page.url()).pathname;
  await page.locator("#acknowledge").getByLabel("Your name").fill("ann");
  await page.locator("#acknowledge").getByLabel("Comment").fill("hedged <b>already</b>");
  await page.getByRole("button", { name: "Acknowledge" }).click();
  t.check((await text(page)).includes("Acknowledged by ann"), "the alert is not acknowledged");
  t.check((await text(page)).includes("hedged <b>already</b>"), "the comment is not shown verbatim");
  await t.look(page, "alert-acknowledged.wide.light");
  await t.open(page, "/alerts?acknowledged=yes");
  t.check((await page.locator(`#alerts a[href='${path}']`).count()) === 1, "the list of acknowledged alerts lacks the alert");
  await t.open(page, path);
  await page.getByRole("button", { name: "Withdraw acknowledgement" }).click();
  t.check((await page.getByRole("button", { name: "Acknowledge" }).count()) === 1, "the acknowledgement is not withdrawn");
}

// An alert about an unlock first shows what a person needs: recipients with values, and the unlock in its schedule.
async function alertedUnlock(t, page) {
  const [alert] = await (await page.request.get(`${t.base}/api/v1/alerts?state=firing&rule=BigCliffAhead&limit=1`)).json();
  if (!t.check(alert, "no alert about an unlock fires")) return;
  await t.open(page, `/alerts/${alert.id}`);
  const order = await page.locator("main section[id]").evaluateAll((all) => all.map((one) => one.id));
  t.check(order.join(" ").startsWith("subject actions notifications"), `unexpected order of the page of an alert: ${order}`);
  const recipients = await page.locator("#subject tbody tr").allInnerTexts();
  t.check(recipients.length > 0 && recipients.some((text) => text.includes("$")), `the recipients have no values: ${recipients}`);
  t.check((await page.locator("#subject svg.on-wide").count()) === 1, "the schedule with this unlock is missing");
  t.check(!(await page.locator("#why .steps").isVisible()), "the trace is open");
  await page.locator("#why summary").first().press("Enter");
  t.check(await page.locator("#why .steps").isVisible(), "the trace does not open");
  await t.look(page, "alert-unlock.wide.light");
}

async function silence(t, page) {
  await t.open(page, "/alerts?state=firing");
  await page.locator("#alerts tbody a[href^='/alerts/']").first().click();
  const form = page.locator("#silence");
  await form.getByLabel("Reason").fill("known");
  await form.getByRole("button", { name: "Preview" }).click();
  const preview = await page.locator("#preview").innerText();
  t.check(/it suppresses [1-9]\d* of \d+ open alerts/.test(preview), `unexpected preview: ${preview}`);
  t.check((await page.locator("#silence").getByLabel("Reason").inputValue()) === "known", "the preview discards the entered reason");
  await t.look(page, "silence-preview.wide.light");
  await page.locator("#silence").getByLabel("Your name").fill("ann");
  await page.getByRole("button", { name: "Silence", exact: true }).click();
  t.check((await text(page)).includes("Silence created."), "the silence is not created");
  await t.look(page, "silences.wide.light");
  await page.getByRole("button", { name: /^Expire/ }).first().click();
  t.check((await text(page)).includes("Silence expired."), "the silence is not expired");
  const refused = await t.page({ expects: ["400"] });
  await t.open(refused, "/silences");
  await refused.locator("#silence").getByLabel(/^Matchers/).fill('severity!="x"');
  await refused.locator("#silence").getByLabel("Your name").fill("ann");
  await refused.locator("#silence").getByLabel("Reason").fill("all");
  await refused.getByRole("button", { name: "Silence", exact: true }).click();
  t.check((await text(refused)).includes("the silence would suppress everything"), "a silence of everything is not rejected with a reason");
  await refused.close();
}

// Selects several alerts, and acknowledges and silences them together.
async function several(t, page) {
  await t.open(page, "/alerts?state=firing&acknowledged=no&since=30d");
  const boxes = page.locator("#alerts input[type=checkbox]");
  t.check((await boxes.count()) >= 2, "no alerts can be selected");
  await boxes.nth(0).check();
  await boxes.nth(1).check();
  await t.look(page, "alerts-choosing.wide.light");
  await page.getByRole("button", { name: "Acknowledge…" }).click();
  t.check((await page.locator("#chosen tbody tr").count()) === 2, "the selected alerts are not shown");
  await t.look(page, "chosen-acknowledge.wide.light");
  await page.getByLabel("Your name").fill("ann");
  await page.getByRole("button", { name: "Acknowledge 2 alerts" }).click();
  t.check((await text(page)).includes("All selected alerts are acknowledged."), "the selected alerts are not acknowledged");
  t.check(page.url().includes("since=30d"), `the action does not return to the same list: ${page.url()}`);
  await t.open(page, "/alerts?acknowledged=yes");
  t.check((await page.locator("#alerts tbody tr").count()) === 2, "the list of acknowledged alerts lacks them");
  await page.getByRole("link", { name: "Select all on this page" }).click();
  t.check((await page.locator("#alerts input[type=checkbox]:checked").count()) === 2, "not all alerts of the page are selected");
  await page.getByRole("button", { name: "Silence…" }).click();
  t.check(/it suppresses [1-9]\d* of \d+ open alerts/.test(await text(page)), "there is no preview of the suppressed alerts");
  await t.look(page, "chosen-silence.wide.light");
  await page.getByLabel("Your name").fill("ann");
  await page.getByLabel("Reason").fill("known");
  await page.getByRole("button", { name: /^Silence [12] alert/ }).click();
  t.check((await text(page)).includes("All selected alerts and similar ones are silenced"), "the selected alerts are not silenced");
  await t.open(page, "/silences");
  while ((await page.getByRole("button", { name: /^Expire/ }).count()) > 0) await page.getByRole("button", { name: /^Expire/ }).first().click();
  for (const alert of await page.request.get(`${t.base}/api/v1/acks`).then((response) => response.json())) {
    await t.open(page, `/alerts/${alert.alert}`);
    await page.getByRole("button", { name: "Withdraw acknowledgement" }).click();
  }
}

// Sends the current digest, marked as a test.
async function testedDigest(t, page) {
  await t.open(page, "/digests");
  await page.getByRole("button", { name: /^Send a test now/ }).first().click();
  t.check((await text(page)).includes("A test digest is in the outbox"), "no test digest is sent");
}

// On a phone, the mail of the digest loads when it scrolls into view, and filters are folded.
async function onPhone(t) {
  const page = await t.page({ size: "phone" });
  await logIn(t, page, "/digests");
  const frame = page.locator("iframe.mail").first();
  await frame.scrollIntoViewIfNeeded();
  const mail = frame.contentFrame().locator("body");
  await mail.getByText(/unlock/i).first().waitFor();
  t.check((await mail.innerText()).length > 200, "the mail of the digest is empty");
  await t.open(page, "/digests/ops/preview");
  for (const path of ["/alerts", "/changes", "/deliveries"]) {
    await t.open(page, path);
    const filter = page.getByRole("button", { name: "Filter", exact: true });
    t.check(!(await filter.isVisible()), `${path}: the filters are not folded`);
    await page.getByText("Filters", { exact: true }).click();
    t.check(await filter.isVisible(), `${path}: the filters do not unfold`);
  }
  await page.close();
}

async function deadLetter(t, page) {
  await t.open(page, "/deliveries?state=dead");
  await t.look(page, "deliveries.wide.light");
  const row = page.locator("#list tbody tr").first();
  const number = (await row.locator("td").first().innerText()).trim();
  await row.getByRole("button", { name: "Retry now" }).click();
  t.check((await text(page)).includes("The delivery is due now"), "the dead letter is not retried");
  await t.open(page, `/deliveries/${number}`);
  for (let wait = 0; wait < 60 && (await page.locator("main tbody tr").count()) < 2; wait++) { await page.waitForTimeout(500); await page.reload(); }
  t.check((await page.locator("main tbody tr").count()) >= 2, "there is no second attempt");
  t.check((await text(page)).includes("<b>here</b>"), "the response of the receiver is not shown verbatim");
  await t.look(page, "delivery.wide.light");
  await page.getByRole("button", { name: "Drop" }).click();
  t.check((await text(page)).includes("The delivery is dropped"), "the delivery is not dropped");
}

async function playground(t, page) {
  await t.open(page, "/rules");
  await t.look(page, "rules.wide.light");
  await page.getByRole("link", { name: /^Try a copy of/ }).first().click();
  t.check((await page.locator("#text").inputValue()).startsWith("[[rule]]"), "there is no copy of the rule");
  await page.locator("#text").fill('[[rule]]\nalert = "Big"\non = "unlock"\nwithin = ["7d", "1d"]\nwhen = "cliffVallue >= 1000000"\n');
  await page.getByRole("button", { name: "Try it" }).click();
  t.check((await page.locator("#results").innerText()).includes("did you mean `cliffValue`?"), "the mistake is not reported");
  await t.look(page, "playground-mistake.wide.light");
  // A trial of two tokens, because a trial of all of them is cut off on a slow machine.
  await page.locator("#text").fill('[[rule]]\nalert = "Big"\non = "unlock"\ntokens = ["arbitrum", "aptos"]\nwithin = ["7d", "1d"]\nwhen = "cliffValue >= 1000000"\nlabels = { severity = "warning" }\n');
  const begun = Date.now();
  // The server limits a trial to 30 s. A click waits for the response, so it needs more than its usual 30 s.
  await page.getByRole("button", { name: "Try it" }).click({ timeout: 60000 });
  await page.locator("#results").getByRole("heading", { name: "Backtest" }).waitFor();
  console.log(`  the trial of a rule took ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  const results = await page.locator("#results").innerText();
  t.check(/Messages\s+[1-9]/.test(results), `the backtest sends no messages: ${results.slice(0, 400)}`);
  t.check((await page.locator("#text").inputValue()).includes("cliffValue >= 1000000"), "the trial discards the text");
  await t.look(page, "playground.wide.light");
  t.check((await page.request.get(`${t.base}/api/v1/rules?rule=Big`)).status() === 404, "the rule was saved");
}

// As the reader types, the form shows the rule and a replay of the last year. The rule is saved with its author, and is active at once.
async function newRule(t, page) {
  await t.open(page, "/rules/new");
  await page.getByLabel("Tokens, globs, or groups").fill("arbitrum, APT");
  await page.getByLabel("Name of the alert").fill("OfTheDesk");
  const shows = (text) => page.waitForFunction((text) => document.querySelector("#rule-text")?.textContent.includes(text), text, { timeout: 30000 });
  await shows('tokens = ["arbitrum", "aptos"]');
  await page.locator("#year-results").getByRole("heading", { name: "Backtest" }).waitFor({ timeout: 60000 });
  await t.look(page, "new-rule.wide.light");
  await page.locator("#save").getByLabel("Your name").fill("ann");
  await page.getByRole("button", { name: "Save and activate" }).click({ timeout: 60000 });
  t.check((await text(page)).includes("The rule is saved and active."), "the rule is not saved");
  t.check((await page.locator("#OfTheDesk").count()) === 1, "the saved rule is not active");
  await t.open(page, "/rules/new?about=cliffs&percent=3&name=OfTheDesk");
  const difference = await page.locator("#save .difference").innerText();
  t.check(difference.includes("- when   = 'cliffValue >= 5000000'") && difference.includes("+ when   = 'valueToMarketCap >= 3'"), `unexpected difference: ${difference}`);
}

async function everyPage(t) {
  const first = async (page) => { await t.open(page, "/alerts"); return page.locator("#alerts tbody a[href^='/alerts/']").first().getAttribute("href"); };
  for (const [size, scheme] of t.looks) {
    const page = await t.page({ size, scheme });
    await logIn(t, page, "/alerts");
    const paths = { alerts: "/alerts", "alerts-firing": "/alerts?state=firing&severity=warning", "alerts-week": "/alerts?since=7d", alert: await first(page), rules: "/rules", "rules-new": "/rules/new", "playground-new": "/rules/playground", deliveries: "/deliveries", silences: "/silences?matcher=severity%3D%22warning%22", digests: "/digests", audit: "/audit" };
    for (const [name, path] of Object.entries(paths)) {
      await t.open(page, path);
      await t.look(page, `${name}.${size}.${scheme}`);
    }
    await t.open(page, "/changes");
    await page.close();
  }
  const missing = await t.page({ expects: ["404"] });
  await t.open(missing, "/alerts/al_nothing", 404);
  t.check(/deleted after \d+ days/.test(await text(missing)), "the page of an unknown alert does not say how long alerts are retained");
  await t.look(missing, "alert-missing.wide.light");
  await missing.close();
}

// All that was done above has a row with its author.
async function audit(t, page) {
  await t.open(page, "/audit");
  const rows = await page.locator("#list tbody tr").allInnerTexts();
  for (const done of ["acknowledged", "withdrew the acknowledgement of", "created the silence", "requested a test message to", "retried the delivery", "saved the rule OfTheDesk"]) {
    t.check(rows.some((row) => row.includes("shared token") && row.replace(/\s+/g, " ").includes(done)), `the audit log lacks "${done}": ${rows.join(" | ")}`);
  }
  await page.getByLabel("Action", { exact: true }).selectOption({ label: "Rule saved" });
  await page.getByRole("button", { name: "Filter" }).click();
  t.check((await page.locator("#list tbody tr").count()) === 1, "the filter of the audit log shows other actions");
}

export default async function (t) {
  await refusedLogin(t);
  const page = await t.page();
  await logIn(t, page, "/alerts?state=firing");
  await alertedUnlock(t, page);
  await acknowledge(t, page);
  await silence(t, page);
  await several(t, page);
  await testedDigest(t, page);
  await deadLetter(t, page);
  await playground(t, page);
  await newRule(t, page);
  await audit(t, page);
  await onPhone(t);
  await everyPage(t);
  // The logout ends the session on the server.
  await t.open(page, "/alerts");
  await page.getByRole("button", { name: "Log out" }).click();
  t.check(page.url().startsWith(`${t.base}/login`), `the logout leads to ${page.url()}`);
  await t.open(page, "/silences");
  t.check((await page.getByRole("button", { name: "Silence", exact: true }).count()) === 0, "a logged-out reader can create silences");
  // A preview changes nothing, and needs no login on this machine.
  await page.locator("#silence").getByLabel(/^Matchers/).fill('severity="warning"');
  await page.getByRole("button", { name: "Preview" }).click();
  t.check(/it suppresses [1-9]\d* of \d+ open alerts/.test(await page.locator("#preview").innerText()), "a logged-out reader cannot preview a silence");
  t.check((await page.locator("main").getByRole("link", { name: "log in" }).count()) === 1, "a logged-out reader sees no link to the login");
  await page.close();
}
