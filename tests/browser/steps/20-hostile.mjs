// Opens tokens whose names contain markup, ten thousand letters, or right-to-left text. No markup takes effect.
export default async function (t) {
  for (const size of ["wide", "phone"]) {
    const page = await t.page({ size });
    for (let place = 0; place < 6; place++) {
      await t.open(page, `/tokens/hostile-${place}`);
      await t.look(page, `hostile-${place}.${size}`);
      t.check((await page.locator('main a[href^="javascript:"]').count()) === 0, `hostile-${place}: a link runs a script`);
    }
    await t.open(page, "/compare?token=hostile-0&token=hostile-1&token=hostile-2&token=hostile-5");
    await t.look(page, `hostile-compare.${size}`);
    await t.open(page, "/tokens?q=hostile");
    await t.look(page, `hostile-list.${size}`);
    t.check((await page.locator("main img, main script, main iframe").count()) === 0, "the markup in a name became an element");
    await page.close();
  }
  const page = await t.page({ expects: ["404", "400", "414", "431"] });
  for (const path of ["/tokens/%3Cscript%3Ewindow.pwned=1%3C/script%3E", "/tokens/..%2f..%2fetc", "/changes?token=%22%3E%3Cscript%3Ewindow.pwned=1%3C/script%3E", "/calendar?token=%22%3E%3Cimg%20src=x%20onerror=window.pwned=1%3E", "/calendar?month=%22%3E&group=%3Cscript%3E&min_value=%3Cb%3E&type=x", "/tokens?q=%22%3E%3Cimg%20src=x%20onerror=window.pwned=1%3E", "/?by=%00", "/tokens?offset=4294967295"]) {
    await page.goto(t.base + path);
    await t.look(page);
  }
  await page.close();
}
