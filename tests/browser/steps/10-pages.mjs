// Checks each page in the light and the dark color scheme, on a phone and on a wide screen.
const pages = {
  overview: "/", calendar: "/calendar", "calendar-list": "/calendar?view=list&sort=value", "calendar-filtered": "/calendar?token=ARB&type=cliff&min_value=1000000", tokens: "/tokens", "tokens-next": "/tokens?q=a&sort=next", "tokens-none": "/tokens?q=nothing-has-this-name", "tokens-end": "/tokens?offset=250&sort=name",
  arbitrum: "/tokens/arbitrum", aptos: "/tokens/aptos", jupiter: "/tokens/jupiter", bnb: "/tokens/bnb", corrected: "/tokens/made-001", compare: "/compare?token=arbitrum&token=aptos&token=jupiter&token=bnb", "compare-empty": "/compare", changes: "/changes", "changes-kind": "/changes?kind=rescheduled", "changes-days": "/changes?from=2026-01-01&to=2026-01-02",
};

export default async function (t) {
  for (const [size, scheme] of t.looks) {
    const page = await t.page({ size, scheme });
    for (const [name, path] of Object.entries(pages)) {
      await t.open(page, path);
      await t.look(page, `${name}.${size}.${scheme}`);
    }
    await page.close();
  }

  const page = await t.page();
  await t.open(page, "/");
  // What unlocks next stands first, in order of dates, with today marked.
  const order = await page.locator("main [data-live][id]").evaluateAll((all) => all.map((one) => one.id));
  t.check(order.join(" ") === "notices next tiles supply changes firing health", `unexpected order of the overview: ${order}`);
  const dates = await page.locator("#next tbody tr td:first-child").allInnerTexts();
  const days = dates.map((text) => Date.parse(`${/(\d+ \w+ \d{4})/.exec(text)?.[1]} UTC`));
  t.check(days.length >= 10 && days.every((day, at) => at === 0 || days[at - 1] <= day), `the next unlocks are not in order: ${dates}`);
  t.check(dates[0].includes("today"), `the current day is not marked: ${dates[0]}`);
  const ahead = await (await page.request.get(`${t.base}/api/v1/upcoming?within=30d&type=cliff&limit=10000`)).json();
  const largest = ahead.reduce((most, unlock) => ((unlock.cliffValue ?? 0) > (most.cliffValue ?? 0) ? unlock : most));
  const tile = await page.locator("#tiles .tile", { hasText: "Largest cliff" }).innerText();
  t.check(tile.includes(largest.symbol), `the largest unlock is not ${largest.symbol}: ${tile}`);
  // The values of a week appear by keyboard, by pointer, and by touch.
  const bars = page.locator("#supply svg.on-wide .bar");
  t.check((await bars.count()) === 13, `${await bars.count()} bars`);
  const values = bars.nth(3).locator(".values");
  t.check(!(await values.isVisible()), "the values of a week are shown without a pointer");
  await bars.nth(2).focus();
  await page.keyboard.press("Tab");
  t.check(await values.isVisible(), "the values of a week are not reachable by keyboard");
  await bars.nth(5).locator(".aim").hover();
  t.check((await bars.nth(5).locator(".values").isVisible()) && !(await values.isVisible()), "the pointer does not show the values of its week");
  await page.mouse.move(0, 0);
  // The health is one line that opens by keyboard.
  t.check(!(await page.locator("#source").isVisible()), "the health is open");
  await page.locator("#health > details > summary").focus();
  await page.keyboard.press("Enter");
  t.check(await page.locator("#source").isVisible(), "the health does not open");
  await t.look(page, "health.wide.light");
  t.check((await page.locator("#notices").innerText()).includes("Dead letters."), "dead letters are not at the top");
  const strips = await page.locator("#source .strip svg[role=img]").evaluateAll((all) => all.map((one) => [one.getAttribute("aria-label"), one.querySelectorAll("title").length]));
  t.check(strips.length >= 2 && strips.every(([label, marks]) => label.startsWith("Last ") && marks > 0), `unexpected strips of past polls: ${JSON.stringify(strips)}`);
  t.check((await page.locator("#source details tbody tr").count()) >= strips.length, "past polls are not listed in a table");

  await t.open(page, "/tokens");
  const weeks = await page.locator("#tokens .weeks-ahead svg[role=img]").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  t.check(weeks.length >= 20 && weeks.every((label) => /^(By week|Nothing scheduled in|Not read yet)/.test(label)), `unexpected labels of the coming weeks: ${JSON.stringify(weeks.slice(0, 3))}`);

  // The calendar: dots sized by value in a grid of days, bands of linear unlocks, filters that can be cleared, and a list by size.
  await t.open(page, "/calendar");
  t.check((await page.locator("#month td.today").count()) === 1, "the current day is not marked");
  const radii = await page.locator("#month .unlock circle").evaluateAll((all) => all.map((one) => Number(one.getAttribute("r"))));
  t.check(radii.length > 0 && new Set(radii).size > 1, `dots have no different sizes: ${radii}`);
  t.check((await page.locator("#bands svg.on-wide a[href^='/tokens/']").count()) > 0, "there are no bands of linear unlocks");
  await page.getByRole("link", { name: "Later", exact: true }).press("Enter");
  t.check(/month=\d{4}-\d{2}$/.test(page.url()), `the later month has the address ${page.url()}`);
  await page.getByLabel("Minimum value").selectOption("10000000");
  await page.getByRole("button", { name: "Filter", exact: true }).press("Enter");
  await page.waitForURL(/min_value=10000000/);
  t.check(/month=\d{4}-\d{2}/.test(page.url()), "the filter loses the month");
  t.check((await page.locator("#feed").innerText()).includes("min_value=10000000"), "the address of the feed lacks the filter");
  await page.getByRole("link", { name: "Clear", exact: true }).press("Enter");
  t.check(!page.url().includes("min_value"), "the filter is not cleared");
  await t.open(page, "/calendar?view=list&sort=value");
  const sizes = (await page.locator("#list tbody td:nth-child(3)").allInnerTexts()).map((text) => { const [, number, unit] = /\$([\d.]+)([KMB]?)/.exec(text) ?? [, "0", ""]; return Number(number) * { "": 1, K: 1e3, M: 1e6, B: 1e9 }[unit]; });
  t.check(sizes.length > 0 && sizes.every((size, at) => at === 0 || sizes[at - 1] >= size * 0.999), `the list is not sorted by value: ${sizes}`);
  await page.emulateMedia({ media: "print" });
  t.check(!(await page.locator("#subscribe").isVisible()) && !(await page.locator(".top").isVisible()), "the print has navigation");
  // A sheet of A4 has the names of the tokens and the wide bands, although it is as narrow as a tablet.
  const size = page.viewportSize();
  await page.setViewportSize({ width: 718, height: 1000 });
  await t.open(page, "/calendar");
  t.check(await page.locator("#month .unlock .name").first().isVisible(), "the printed month has no names");
  t.check(await page.locator("#bands svg.on-wide").isVisible(), "the printed bands are those of phones");
  await page.setViewportSize(size);
  await page.emulateMedia({ media: "screen" });

  // The page of an unknown token offers a search.
  const missing = await t.page({ expects: ["404", "400"] });
  await t.open(missing, "/tokens/arbitru", 404);
  await t.look(missing, "missing.wide.light");
  await missing.getByRole("searchbox").fill("arbitrum");
  await missing.locator("main").getByRole("button", { name: "Search" }).click();
  t.check((await missing.locator("#tokens tbody tr").count()) >= 1, "the search box of a missing token finds nothing");
  await missing.getByRole("link", { name: "ARB", exact: true }).click();
  t.check(missing.url().endsWith("/tokens/arbitrum"), `the link of a found token opens ${missing.url()}`);
  await t.open(missing, "/changes?kind=resised", 400);
  t.check((await missing.locator("main").innerText()).includes("resized"), "a misspelled kind gets no suggestion");
  await missing.close();
  await page.close();
}
