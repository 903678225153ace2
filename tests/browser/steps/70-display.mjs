// Checks the switches of colors and of the time zone in the footer: by keyboard, kept in the browser, for pages, drawings, and charts.
const LIGHT = "rgb(245, 246, 248)", DARK = "rgb(13, 17, 23)";
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
/** The most common colors of the interactive chart, and the color of the first area or bar of a drawing. */
const chartColors = (page) => page.evaluate(() => {
  const canvas = document.querySelector(".plot-area canvas"), { width, height } = canvas;
  const counts = new Map();
  for (const value of new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const common = [...counts].filter(([value]) => value >>> 24 === 255).sort((a, b) => b[1] - a[1]).slice(0, 6).map(([value]) => value);
  return { canvas: common.join(" "), drawing: getComputedStyle(document.querySelector("svg.chart .layer, svg.chart .bar rect:not(.aim)")).fill };
});

async function colors(t) {
  for (const [system, chosen, expected] of [["light", "Dark", DARK], ["dark", "Light", LIGHT]]) {
    const page = await t.page({ scheme: system, timezoneId: "Europe/Zurich" });
    await t.open(page, "/tokens/arbitrum");
    const own = system === "dark" ? DARK : LIGHT;
    t.check((await ground(page)) === own, `without a choice, the page ignores the ${system} system: ${await ground(page)}`);
    const before = await chartColors(page);
    // By keyboard: Tab reaches the group, the arrow keys choose.
    await page.locator("[data-keys]").focus();
    await page.keyboard.press("Tab");
    t.check((await page.evaluate(() => document.activeElement.value)) === "system", "Tab does not reach the choice of colors");
    for (let at = 0; at < (chosen === "Light" ? 1 : 2); at++) await page.keyboard.press("ArrowRight");
    t.check(await page.getByRole("radio", { name: chosen, exact: true }).isChecked(), `the arrow keys do not choose ${chosen}`);
    t.check((await ground(page)) === expected, `${chosen} does not apply at once: ${await ground(page)}`);
    const after = await chartColors(page);
    t.check(before.canvas !== after.canvas, "the interactive chart keeps the colors of the other scheme");
    t.check(before.drawing !== after.drawing, `the drawing keeps the colors of the other scheme: ${after.drawing}`);
    await t.look(page, `chosen-${chosen.toLowerCase()}-token.wide.${system}`);
    // The choice applies before a page is drawn, also on pages without data, and on other open pages.
    const second = await t.page({ scheme: system, timezoneId: "Europe/Zurich" });
    for (const path of ["/", "/calendar", "/rules", "/login"]) {
      await t.open(second, path);
      t.check((await ground(second)) === expected, `${path} forgets the chosen colors`);
      await t.look(second, `chosen-${chosen.toLowerCase()}${path.replaceAll("/", "-")}.wide.${system}`);
    }
    await page.emulateMedia({ media: "print" });
    t.check((await page.evaluate(() => getComputedStyle(document.documentElement).getPropertyValue("--text").trim())) === "#1b222c", "the print is dark");
    await page.emulateMedia({ media: "screen" });
    await page.getByText("System", { exact: true }).click();
    t.check((await ground(page)) === own, "System does not bring the colors of the system back");
    await second.waitForFunction((own) => getComputedStyle(document.body).backgroundColor === own, own);
    await second.close();
    await page.close();
  }
}

/** The lines of a page without those that change by themselves. */
const lines = async (page) => (await page.locator("main").innerText()).split("\n").filter((line) => !/\bago\b/.test(line));

/** An instant in New York as pages write it, by the time zone database of the browser. */
function inNewYork(at, isIso) {
  const parts = Object.fromEntries(new Intl.DateTimeFormat("en-US", { timeZone: "America/New_York", year: "numeric", month: "numeric", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "shortOffset" }).formatToParts(at).map(({ type, value }) => [type, value]));
  const two = (text) => text.padStart(2, "0"), time = `${parts.hour}:${parts.minute} ${parts.timeZoneName.replace("GMT", "UTC").replace("-", "−")}`;
  return isIso ? `${parts.year}-${two(parts.month)}-${two(parts.day)} ${time}` : `${parts.day} ${MONTHS[Number(parts.month) - 1]} ${parts.year}, ${time}`;
}

async function timeZone(t) {
  const page = await t.page({ timezoneId: "America/New_York" });
  const [alert] = await (await page.request.get(`${t.base}/api/v1/alerts?state=firing&limit=1`)).json();
  let instants = 0;
  for (const path of ["/tokens/arbitrum", "/", "/calendar?view=list", "/changes", `/alerts/${alert.id}`, "/deliveries"]) {
    await t.open(page, path);
    const utc = await lines(page);
    await page.getByRole("radio", { name: "Local", exact: true }).check({ force: true });
    const local = await lines(page);
    t.check(utc.length === local.length, `${path}: the time zone changes the number of lines`);
    instants += utc.filter((line) => /\d\d:\d\d UTC/.test(line)).length;
    for (const [at, line] of utc.entries()) {
      const expected = line
        .replace(/(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d) UTC/g, (_, ...n) => inNewYork(new Date(Date.UTC(n[0], n[1] - 1, n[2], n[3], n[4])), true))
        .replace(/(\d{1,2}) (\w{3}) (\d{4}), (\d\d):(\d\d) UTC/g, (_, ...n) => inNewYork(new Date(Date.UTC(n[2], MONTHS.indexOf(n[1]), n[0], n[3], n[4])), false));
      t.check(local[at] === expected, `${path}: “${line}” became “${local[at]}” instead of “${expected}”`);
    }
    await page.getByRole("radio", { name: "UTC", exact: true }).check({ force: true });
    t.check((await lines(page)).join("\n") === utc.join("\n"), `${path}: UTC does not bring the times back`);
  }
  t.check(instants >= 3, `the pages have only ${instants} instants`);
  // The footer of each page has an instant. Dates without a time stay the same.
  await t.open(page, "/calendar?view=list");
  const days = () => page.locator("#list tbody td:first-child").allInnerTexts();
  const before = await days();
  t.check(before.length > 0 && before.every((day) => !day.includes(":")), `the calendar has no days: ${before.slice(0, 3)}`);
  await page.getByText("Local", { exact: true }).click();
  t.check((await days()).join() === before.join(), "a date without a time moved");
  const stamp = await page.locator("footer time").innerText();
  t.check(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC−[45]$/.test(stamp), `the time of the data is not local: ${stamp}`);
  await page.locator("footer time").hover();
  t.check(/UTC · .*UTC−[45]$/.test(await page.locator("footer time").getAttribute("title")), "the tooltip lacks the time in UTC");
  await t.look(page, "local-times.wide.light");
  // Kept for the next page, and for live updates of a page.
  await t.open(page, "/");
  t.check((await page.locator("footer time").innerText()).includes("UTC−"), "the next page forgets the time zone");
  await page.getByText("UTC", { exact: true }).click();
  await page.close();
}

async function withoutScript(t) {
  const page = await t.page({ scheme: "dark", javaScriptEnabled: false });
  await t.open(page, "/");
  t.check(!(await page.locator("#display").isVisible()), "without scripts, the switches are shown but do nothing");
  t.check((await page.locator("footer time").innerText()).endsWith(" UTC"), "without scripts, times are not UTC");
  await page.close();
}

/** A browser that blocks site data still shows pages, and keeps a choice until the page is left. */
async function blockedStorage(t) {
  const page = await t.page({ locale: "de-CH" });
  await page.addInitScript(() => { Object.defineProperty(window, "localStorage", { get() { throw new DOMException("blocked", "SecurityError"); } }); });
  await t.open(page, "/tokens");
  await page.getByText("Dark", { exact: true }).click();
  t.check((await ground(page)) === DARK, "without storage, the switch does nothing");
  await page.close();
}

export default async function (t) {
  await colors(t);
  await timeZone(t);
  await withoutScript(t);
  await blockedStorage(t);
}
