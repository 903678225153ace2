// Checks updates of open pages, pages without JavaScript, the keyboard, the search, and the tools of tables.
import { readFileSync } from "node:fs";

// The search finds tokens, alerts, rules, and pages from every page, by keyboard alone.
async function search(t, page) {
  await t.open(page, "/changes");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("big");
  await page.locator("#found a[href='/rules#BigCliffAhead']").waitFor();
  await t.look(page, "search.wide.light");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("arbitrum");
  await page.locator("#found a[href='/tokens/arbitrum']").waitFor();
  t.check(/[1-9]\d* result/.test(await page.locator("#found-count").innerText()), "the number of results is not announced");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${t.base}/tokens/arbitrum`);
  await page.keyboard.press("/");
  await page.keyboard.type("deliver");
  await page.locator("#found a[href='/deliveries']").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${t.base}/deliveries`);
}

// A table is saved as CSV, and its card has a link. A name that a spreadsheet would run as a formula is text.
async function tableTools(t) {
  const page = await t.page();
  await t.open(page, "/tokens?q=arb");
  const card = page.locator("#tokens");
  const [file] = await Promise.all([page.waitForEvent("download"), card.getByRole("button", { name: "CSV" }).click()]);
  const [head, first] = readFileSync(await file.path(), "utf8").split("\r\n");
  t.check(head.startsWith('"Token') && first.includes("ARB"), `unexpected CSV: ${head} ${first}`);
  t.check((await file.suggestedFilename()).endsWith(".csv"), "the file is not named .csv");
  t.check(await card.getByRole("button", { name: "Copy link" }).isVisible(), "the card has no link");
  await page.close();
}

export default async function (t) {
  const page = await t.page();
  await t.open(page, "/");
  await page.getByText("live", { exact: true }).waitFor({ timeout: 15000 });
  const before = await page.locator("#changes").innerText();
  await page.evaluate(() => { window.isTheSame = true; });
  await t.trigger("correct");
  await page.waitForFunction((text) => document.querySelector("#changes").innerText !== text, before, { timeout: 60000 });
  t.check(await page.evaluate(() => window.isTheSame), "the page was reloaded");
  await t.look(page);
  await page.close();

  const plain = await t.page({ javaScriptEnabled: false });
  for (const [path, text] of [["/", "Next unlocks"], ["/calendar", "Subscribe"], ["/tokens/arbitrum", "Provenance"], ["/tokens?q=arb", "ARB"], ["/changes", "rescheduled"]]) {
    await t.open(plain, path);
    t.check((await plain.locator("main").innerText()).includes(text), `${path} without scripts lacks ${text}`);
  }
    await plain.close();
  const keyboard = await t.page();
  await t.open(keyboard, "/");
  await keyboard.keyboard.press("Tab");
  t.check((await keyboard.evaluate(() => document.activeElement.textContent)) === "Skip to content", "the first focused element does not skip the navigation");
  await keyboard.keyboard.press("?");
  t.check(await keyboard.locator("#keys").isVisible(), "the keyboard help does not open");
  await t.look(keyboard, "keyboard.wide.light");
  await keyboard.keyboard.press("Escape");
  await keyboard.keyboard.press("g");
  await keyboard.keyboard.press("t");
  await keyboard.waitForURL(`${t.base}/tokens`);
  await keyboard.keyboard.press("j");
  await keyboard.keyboard.press("j");
  const second = await keyboard.locator("#tokens tbody tr").nth(1).locator("a").first().getAttribute("href");
  t.check((await keyboard.evaluate(() => document.activeElement.getAttribute("href"))) === second, "j does not focus the second row");
  await keyboard.keyboard.press("/");
  t.check(await keyboard.evaluate(() => document.activeElement.type === "search"), "/ does not focus the search");
  await keyboard.keyboard.type("ga?");
  t.check(keyboard.url() === `${t.base}/tokens`, "typed letters open another page");
  await search(t, keyboard);
  // The tooltip of a time has its minute. That of a browser in another time zone also has the local time (`70-display.mjs`).
  await t.open(keyboard, "/alerts");
  const time = keyboard.locator("#alerts time").first();
  await time.hover();
  const tooltip = await time.getAttribute("title");
  t.check(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC( · .*)?$/.test(tooltip ?? ""), `the tooltip of a time is ${tooltip}`);
  await keyboard.close();
  await tableTools(t);
}
