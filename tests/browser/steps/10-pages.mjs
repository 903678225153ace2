// Checks each page in the light and the dark color scheme, on a phone and on a wide screen.
const pages = {
  overview: "/", "overview-share": "/?by=share", tokens: "/tokens", "tokens-next": "/tokens?q=a&sort=next", "tokens-none": "/tokens?q=nothing-has-this-name", "tokens-end": "/tokens?offset=250&sort=name",
  arbitrum: "/tokens/arbitrum", aptos: "/tokens/aptos", jupiter: "/tokens/jupiter", bnb: "/tokens/bnb", corrected: "/tokens/made-001", changes: "/changes", "changes-kind": "/changes?kind=rescheduled", "changes-days": "/changes?from=2026-01-01&to=2026-01-02",
};

export default async function (t) {
  for (const size of ["wide", "phone"]) for (const scheme of ["light", "dark"]) {
    const page = await t.page({ size, scheme });
    for (const [name, path] of Object.entries(pages)) {
      await t.open(page, path);
      await t.look(page, `${name}.${size}.${scheme}`);
    }
    await page.close();
  }

  const page = await t.page();
  await t.open(page, "/");
  const listed = await page.locator("#ahead .w4 tbody tr").allInnerTexts();
  t.check(listed.length >= 10, `only ${listed.length} of the largest unlocks are listed`);
  const values = listed.map((text) => { const [, number, unit] = /\$([\d.]+)([KMB]?)/.exec(text) ?? [, "0", ""]; return Number(number) * { "": 1, K: 1e3, M: 1e6, B: 1e9 }[unit]; });
  t.check(values.every((value, at) => at === 0 || values[at - 1] >= value * 0.999), `the largest unlocks are not first: ${values}`);
  const ahead = await (await page.request.get(`${t.base}/api/v1/upcoming?within=90d&limit=10000`)).json();
  const largest = ahead.reduce((most, unlock) => ((unlock.cliffValue ?? 0) > (most.cliffValue ?? 0) ? unlock : most));
  t.check(listed[0]?.includes(largest.symbol), `the first unlock is not the largest, ${largest.symbol}: ${listed[0]}`);
  t.check((await page.locator("#notices").innerText()).includes("Dead letters."), "dead letters are not at the top");
  const strips = await page.locator("#source .strip svg[role=img]").evaluateAll((all) => all.map((one) => [one.getAttribute("aria-label"), one.querySelectorAll("title").length]));
  t.check(strips.length >= 2 && strips.every(([label, marks]) => label.startsWith("Last ") && marks > 0), `unexpected strips of past polls: ${JSON.stringify(strips)}`);
  t.check((await page.locator("#source details tbody tr").count()) >= strips.length, "past polls are not listed in a table");

  await t.open(page, "/tokens");
  const weeks = await page.locator("#tokens .weeks-ahead svg[role=img]").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  t.check(weeks.length >= 20 && weeks.every((label) => /^(By week|Nothing scheduled in|Not read yet)/.test(label)), `unexpected labels of the coming weeks: ${JSON.stringify(weeks.slice(0, 3))}`);

  // The page of an unknown token offers a search.
  const missing = await t.page({ expects: ["404", "400"] });
  await t.open(missing, "/tokens/arbitru", 404);
  await t.look(missing, "missing.wide.light");
  await missing.getByRole("searchbox").fill("arbitrum");
  await missing.getByRole("button", { name: "Search" }).click();
  t.check((await missing.locator("#tokens tbody tr").count()) >= 1, "the search box of a missing token finds nothing");
  await missing.getByRole("link", { name: "ARB", exact: true }).click();
  t.check(missing.url().endsWith("/tokens/arbitrum"), `the link of a found token opens ${missing.url()}`);
  await t.open(missing, "/changes?kind=resised", 400);
  t.check((await missing.locator("main").innerText()).includes("resized"), "a misspelled kind gets no suggestion");
  await missing.close();
  await page.close();
}
