// Each page, light and dark, on a phone and wide.
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
  t.check(listed.length >= 10, `only ${listed.length} of the largest are listed`);
  const values = listed.map((text) => { const [, number, unit] = /\$([\d.]+)([KMB]?)/.exec(text) ?? [, "0", ""]; return Number(number) * { "": 1, K: 1e3, M: 1e6, B: 1e9 }[unit]; });
  t.check(values.every((value, at) => at === 0 || values[at - 1] >= value * 0.999), `the largest do not come first: ${values}`);
  t.check(listed[0]?.includes("ONDO"), `the largest of all is not the first: ${listed[0]}`);
  t.check((await page.locator("#notices").innerText()).includes("Dead letters."), "dead letters are not at the top");
  const strips = await page.locator("#source .strip svg[role=img]").evaluateAll((all) => all.map((one) => [one.getAttribute("aria-label"), one.querySelectorAll("title").length]));
  t.check(strips.length >= 2 && strips.every(([label, marks]) => label.startsWith("Last ") && marks > 0), `the strips of past polls: ${JSON.stringify(strips)}`);
  t.check((await page.locator("#source details tbody tr").count()) >= strips.length, "past polls do not stand in a table");

  await t.open(page, "/tokens");
  const weeks = await page.locator("#tokens .weeks-ahead svg[role=img]").evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
  t.check(weeks.length >= 20 && weeks.every((label) => label.startsWith("By week: ") || label.startsWith("No unlocks in")), `the weeks ahead: ${JSON.stringify(weeks.slice(0, 3))}`);

  // A link that is not right any more helps on.
  const missing = await t.page({ expects: ["404", "400"] });
  await t.open(missing, "/tokens/arbitru", 404);
  await t.look(missing, "missing.wide.light");
  await missing.getByRole("searchbox").fill("arbitrum");
  await missing.getByRole("button", { name: "Search" }).click();
  t.check((await missing.locator("#tokens tbody tr").count()) >= 1, "the search box of a missing token finds nothing");
  await missing.getByRole("link", { name: "ARB", exact: true }).click();
  t.check(missing.url().endsWith("/tokens/arbitrum"), `a found token leads to ${missing.url()}`);
  await t.open(missing, "/changes?kind=resised", 400);
  t.check((await missing.locator("main").innerText()).includes("resized"), "a misspelt kind gets no suggestion");
  await missing.close();
  await page.close();
}
