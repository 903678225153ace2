// Checks updates of open pages, pages without JavaScript, and the keyboard.
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
  // The tooltip of a time has the local time.
  await t.open(keyboard, "/alerts");
  const time = keyboard.locator("#alerts time").first();
  await time.hover();
  t.check(/UTC · .* local time$/.test((await time.getAttribute("title")) ?? ""), "the tooltip of a time lacks the local time");
  await keyboard.close();
}
