// Checks the charts by pointer, touch, and keyboard against the tables below them, and the pages without scripts and in print.
const digits = (text) => text.replace(/\s+/g, " ").trim();

/** The date and the total that the line above a chart shows. */
async function shown(page, section) {
  const text = digits(await page.locator(`${section} .readout`).innerText());
  const [, day, total] = /^(\d+ \w+ \d{4})(?: \(today\))? · (?:total|sum of shown) (\S+)/.exec(text) ?? [];
  return { text, day, total };
}

/** The rows of the table of a chart: the date, the values, and the total as text. */
async function table(page, section) {
  return page.locator(`${section} table.series tbody tr`).evaluateAll((rows) => rows.map((row) => {
    const cells = [...row.cells].map((cell) => cell.textContent.trim());
    const values = [...row.querySelectorAll("td[data-v]:not([data-former])")].map((cell) => Number(cell.dataset.v));
    return { day: cells[0], total: cells[values.length + 1], values };
  }));
}

/** The number of pixels of a chart that have a color of the stylesheet. */
async function pixels(page, section, name) {
  return page.locator(`${section} canvas`).evaluate((canvas, name) => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.className = name;
    const [red, green, blue] = getComputedStyle(probe).color.match(/\d+/g).map(Number);
    probe.remove();
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) if (data[at] === red && data[at + 1] === green && data[at + 2] === blue) count++;
    return count;
  }, name);
}

async function box(page, section) {
  await page.locator(`${section} .plot-area`).evaluate((area) => area.scrollIntoView({ block: "center" }));
  return page.locator(`${section} .u-over`).boundingBox();
}

async function byPointer(t, page) {
  await t.open(page, "/tokens/arbitrum");
  const rows = await table(page, "#schedule");
  const today = await shown(page, "#schedule");
  t.check(today.text.includes("(today)") && rows.some((row) => row.day === today.day && row.total === today.total), `without a pointer, the chart shows ${today.text}`);
  t.check(!(await page.locator("#schedule svg.on-wide").isVisible()), "the drawing of the server is shown below the interactive chart");
  const at = await box(page, "#schedule");
  const seen = new Set();
  for (const share of [0.2, 0.45, 0.7]) {
    const before = (await shown(page, "#schedule")).day;
    await page.mouse.move(at.x + at.width * share, at.y + at.height / 2);
    // The values follow with the next frame.
    for (let wait = 0; wait < 100 && (await shown(page, "#schedule")).day === before; wait++) await page.waitForTimeout(100);
    const { text, day, total } = await shown(page, "#schedule");
    seen.add(day);
    t.check(rows.some((row) => row.day === day && row.total === total), `the values under the pointer are not in the table: ${text}`);
  }
  t.check(seen.size === 3, `the pointer shows the same date at different places: ${[...seen]}`);
  await t.look(page, "chart-pointer.wide.light");
  await page.mouse.move(0, 0);
  t.check((await shown(page, "#schedule")).text === today.text, "the values of the pointer stay after it has left");
}

async function byKeyboard(t, page) {
  await t.open(page, "/tokens/arbitrum");
  const rows = await table(page, "#schedule");
  const area = page.locator("#schedule .plot-area");
  await page.locator("#schedule .toggle").last().focus();
  await page.keyboard.press("Tab");
  t.check(await area.evaluate((one) => one === document.activeElement), "Tab does not reach the chart after its legend");
  await page.keyboard.press("Home");
  t.check((await shown(page, "#schedule")).day === rows[0].day, "Home does not show the first date");
  for (let step = 1; step <= 4; step++) {
    await page.keyboard.press("ArrowRight");
    const { text, day, total } = await shown(page, "#schedule");
    t.check(day === rows[step].day && total === rows[step].total, `after ${step} arrow keys, the chart shows ${text} instead of ${rows[step].day}, ${rows[step].total}`);
    t.check((await area.getAttribute("aria-valuetext")).startsWith(`${day}: `), "the date is not announced");
  }
  await page.keyboard.press("End");
  t.check((await shown(page, "#schedule")).day === rows.at(-1).day, "End does not show the last date");
  // Zoom by keyboard, and back.
  await page.keyboard.press("+");
  t.check(await page.getByRole("button", { name: "Reset zoom" }).isEnabled(), "+ does not zoom");
  await page.keyboard.press("Escape");
  t.check(await page.getByRole("button", { name: "Reset zoom" }).isDisabled(), "Escape does not reset the zoom");
}

async function toggles(t, page) {
  await t.open(page, "/tokens/arbitrum");
  await box(page, "#schedule");
  const rows = await table(page, "#schedule");
  const before = await shown(page, "#schedule");
  const first = page.locator("#schedule .toggle").first();
  t.check((await pixels(page, "#schedule", "c0")) > 500, "the area of the first allocation is not drawn in its color");
  await first.focus();
  await page.keyboard.press("Space");
  t.check((await first.getAttribute("aria-pressed")) === "false" && (await first.innerText()).includes("off"), "the allocation is not switched off");
  t.check((await pixels(page, "#schedule", "c0")) === 0, "the area of a hidden allocation is still drawn");
  const after = await shown(page, "#schedule");
  const row = rows.find((row) => row.day === before.day && row.total === before.total);
  const rest = row.values.slice(1).reduce((sum, value) => sum + value, 0);
  const unit = { K: 1e3, M: 1e6, B: 1e9, T: 1e12 }[after.total.slice(-1)] ?? 1;
  t.check(Math.abs(Number.parseFloat(after.total) * unit - rest) <= rest * 0.006, `the sum without the first allocation is ${after.total}, not ${rest}`);
  await t.look(page, "chart-toggled.wide.light");
  await page.getByRole("button", { name: "Show all" }).press("Enter");
  t.check((await shown(page, "#schedule")).total === before.total, "the allocation is not switched on again");
}

async function zoom(t, page) {
  await t.open(page, "/tokens/arbitrum");
  const edge = async (share) => {
    const at = await box(page, "#schedule");
    await page.mouse.move(at.x + 2 + (at.width - 4) * share, at.y + 50);
    return Date.parse(`${(await shown(page, "#schedule")).day} UTC`);
  };
  const [from, until] = [await edge(0), await edge(1)];
  const at = await box(page, "#schedule");
  await page.mouse.move(at.x + at.width * 0.3, at.y + 80);
  await page.mouse.down();
  await page.mouse.move(at.x + at.width * 0.6, at.y + 80, { steps: 5 });
  await page.mouse.up();
  const [zoomedFrom, zoomedUntil] = [await edge(0), await edge(1)];
  t.check(zoomedFrom > from && zoomedUntil < until && zoomedUntil - zoomedFrom < (until - from) * 0.4, "dragging does not zoom");
  await t.look(page, "chart-zoomed.wide.light");
  await page.getByRole("button", { name: "Reset zoom" }).click();
  t.check((await edge(0)) === from && (await edge(1)) === until, "the zoom is not reset");
}

// A live update keeps what the reader has switched off.
async function stays(t, page) {
  await t.open(page, "/tokens/made-001");
  const before = await page.locator("#corrections").innerText();
  const toggle = page.locator("#schedule .toggle").last();
  await toggle.click();
  await page.mouse.move(0, 0);
  await toggle.evaluate((one) => one.blur());
  await t.trigger("correct");
  await page.waitForFunction((text) => document.querySelector("#corrections").innerText !== text, before, { timeout: 60000 });
  await page.locator("#schedule .toggle").last().waitFor();
  t.check((await page.locator("#schedule .toggle").last().getAttribute("aria-pressed")) === "false", "a live update switches an allocation on");
  // The picture of a later date has the bars below further right.
  const picture = page.locator("#corrections .before-after").first();
  const [was, is] = await picture.evaluate((svg) => [".was", ".is"].map((name) => [...svg.querySelectorAll(name)].map((bar) => bar.getBoundingClientRect().left)));
  t.check(was.length > 0 && is.length > 0 && was.at(-1) < is.at(-1), `unexpected bars before and after: ${JSON.stringify([was, is])}`);
  t.check(/moved .* later in all/.test(await page.locator("#corrections").innerText()), "the moves are not added up");
}

async function byTouch(t) {
  const page = await t.page({ size: "phone", hasTouch: true });
  await t.open(page, "/tokens/arbitrum");
  const rows = await table(page, "#schedule");
  const at = await box(page, "#schedule");
  await page.touchscreen.tap(at.x + at.width * 0.4, at.y + at.height / 2);
  const { text, day, total } = await shown(page, "#schedule");
  t.check(!text.includes("(today)") && rows.some((row) => row.day === day && row.total === total), `a touch shows ${text}`);
  await t.look(page, "chart-touch.phone.light");
  await page.close();
}

// Without scripts and in print, the drawing of the server stands for the chart.
async function withoutScript(t, page) {
  await t.open(page, "/tokens/arbitrum");
  await page.emulateMedia({ media: "print" });
  t.check((await page.locator("#schedule svg.on-wide").isVisible()) && !(await page.locator("#schedule canvas").isVisible()), "the print lacks the drawing");
  await page.emulateMedia({ media: "screen" });
  const plain = await t.page({ javaScriptEnabled: false });
  await t.open(plain, "/tokens/arbitrum");
  t.check(await plain.locator("#schedule svg.on-wide").isVisible(), "without scripts, there is no chart");
  t.check((await plain.locator("#schedule svg.on-wide").textContent()).includes("today"), "the current day has no name");
  await plain.close();
}

/** Checks that the bars of a drawing show their values by arrow keys. */
async function bars(t, page, section) {
  const all = page.locator(`${section} svg.on-wide .bar`);
  await all.nth(1).focus();
  await page.keyboard.press("ArrowRight");
  t.check((await all.nth(2).locator(".values").isVisible()) && !(await all.nth(1).locator(".values").isVisible()), `${section}: the arrow key does not show the next values`);
  await page.keyboard.press("ArrowLeft");
  t.check(await all.nth(1).locator(".values").isVisible(), `${section}: the arrow key does not go back`);
  await all.nth(3).locator(".aim").hover();
  t.check(await all.nth(3).locator(".values").isVisible(), `${section}: the pointer does not show values`);
  await page.mouse.move(0, 0);
}

async function compare(t, page) {
  await t.open(page, "/tokens/arbitrum");
  await page.getByRole("link", { name: "Compare" }).click();
  await page.getByLabel("Token 2").fill("APT");
  await page.getByRole("button", { name: "Compare" }).click();
  await page.waitForURL(/token=arbitrum&token=APT/);
  await bars(t, page, "#compare");
  const heads = await page.locator("#compare table.series thead th").allInnerTexts();
  t.check(heads.join(" ") === "Week ARB APT", `unexpected columns: ${heads}`);
  const arbitrum = await (await page.request.get(`${t.base}/api/v1/tokens/arbitrum`)).json();
  const share = Number.parseFloat((await page.locator("#compare table.list tbody tr").first().locator("td").nth(2).innerText()));
  const expected = arbitrum?.ahead?.["30d"]?.total?.percentOfMarketCap;
  t.check(expected === undefined || Math.abs(share - expected) < 0.006, `the next 30 days of ARB are ${share}% on the page, ${expected}% in the API`);
  await t.look(page, "compare-weeks.wide.light");
  await page.getByRole("link", { name: "Months" }).press("Enter");
  await page.waitForURL(/by=month/);
  await page.getByRole("link", { name: "Circulating supply" }).press("Enter");
  await page.waitForURL(/of=circulating/);
  t.check((await page.locator("#compare table.series tbody tr").count()) === 12, "there are not twelve months");
  await page.getByRole("link", { name: "Remove ARB" }).press("Enter");
  t.check((await page.locator("#compare").innerText()).includes("Choose two to four tokens."), "one token is compared with nothing");
  const refused = await t.page({ expects: ["400", "404"] });
  await t.open(refused, "/compare?token=arbitrum&token=aptos&token=jupiter&token=bnb&token=made-001", 400);
  await t.open(refused, "/compare?token=arbitru&token=aptos", 404);
  await refused.close();
}

export default async function (t) {
  // Chromium warns about the steps that count the pixels of a canvas.
  const page = await t.page({ expects: ["Canvas2D: Multiple readback"] });
  await byPointer(t, page);
  await byKeyboard(t, page);
  await toggles(t, page);
  await zoom(t, page);
  await stays(t, page);
  await byTouch(t);
  await withoutScript(t, page);
  await t.open(page, "/");
  await bars(t, page, "#supply");
  await t.open(page, "/tokens/bnb");
  await bars(t, page, "#flows");
  await compare(t, page);
  await page.close();
}
