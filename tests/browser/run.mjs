// Runs the steps in `steps/` against a daemon. CLIFFWATCH_BASE is the URL of its pages, CLIFFWATCH_TOKEN its token, and CLIFFWATCH_CONTROL
// the URL that changes the test data. While a step uses a page, each of these is a fault: an error on the console, a request to another
// host, a violation of the content security policy, and an uncaught exception.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
const base = process.env.CLIFFWATCH_BASE;
const control = process.env.CLIFFWATCH_CONTROL;
const shots = process.env.CLIFFWATCH_BROWSER_SHOTS;
const only = process.env.CLIFFWATCH_BROWSER_STEPS ?? "";
const axe = readFileSync(join(here, "node_modules/axe-core/axe.min.js"), "utf8");
const sizes = { wide: { width: 1360, height: 900 }, phone: { width: 390, height: 844 } };
// Colors do not change a layout, so two pairs check both sizes and both schemes. Screenshots are of all pairs.
const looks = [["wide", "light"], ["phone", "dark"], ...(shots ? [["wide", "dark"], ["phone", "light"]] : [])];
/** The time limit of an action in milliseconds. Other tests run at the same time. */
const patience = 90_000;
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const profile = mkdtempSync(join(tmpdir(), "cliffwatch-browser-"));
const faults = [];
const contexts = new Map();

/** Opens a browser context with this size and color scheme. `options` go to Playwright. Each context has a new profile in `profile`. */
async function context(size, scheme, options) {
  return chromium.launchPersistentContext(mkdtempSync(join(profile, "p-")), {
    executablePath: process.env.CLIFFWATCH_CHROMIUM ?? "/usr/bin/chromium", headless: true, args: flags, viewport: sizes[size], colorScheme: scheme, ...options,
  });
}

function stepTools(step) {
  const fault = (what) => { faults.push(`${step}: ${what}`); console.error(`  FAULT ${what}`); };
  const tools = {
    base, control, looks, token: process.env.CLIFFWATCH_TOKEN, sizes, fault,
    /** Records a fault unless `holds` is true, and continues. */
    check(holds, what) { if (!holds) fault(what); return holds; },
    /** Opens a monitored page. `size` is wide or phone, `scheme` is light or dark; `expects` lists console errors that the step provokes, `others` the URLs of other servers. */
    async page({ size = "wide", scheme = "light", expects = [], others = [], ...options } = {}) {
      const key = JSON.stringify([size, scheme, options]);
      if (!contexts.has(key)) contexts.set(key, await context(size, scheme, options));
      const page = await contexts.get(key).newPage();
      page.setDefaultTimeout(patience);
      const where = () => `${page.url().replace(base, "")} (${size}, ${scheme})`;
      page.on("console", (message) => {
        const text = message.text();
        if (["error", "warning"].includes(message.type()) && !expects.some((known) => text.includes(known))) fault(`${where()}: console: ${text}`);
      });
      page.on("pageerror", (error) => fault(`${where()}: ${error.message}`));
      page.on("dialog", (dialog) => { fault(`${where()}: a dialog: ${dialog.message()}`); dialog.dismiss(); });
      page.on("request", (request) => { if (!["data:", "blob:", ...[base, ...others].map((url) => `${url}/`)].some((start) => request.url().startsWith(start))) fault(`${where()}: a request to ${request.url()}`); });
      await page.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`content policy: ${event.violatedDirective} ${event.blockedURI}`)));
      return page;
    },
    /** Opens a path. A status other than `status` is a fault. */
    async open(page, path, status = 200) {
      const response = await page.goto(base + path, { waitUntil: "load" });
      tools.check(response.status() === status, `${path}: status ${response.status()}`);
      return response;
    },
    /** Checks the page in its current state: no serious accessibility problem, nothing wider than the screen or a narrower window, no injected markup. */
    async look(page, name) {
      const at = page.url().replace(base, "");
      const screen = page.viewportSize();
      for (const width of [760, 1000, screen.width].filter((width) => width <= screen.width)) {
        await page.setViewportSize({ ...screen, width });
        const wide = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done(document.documentElement.scrollWidth))));
        tools.check(wide <= width, `${at}: ${wide} px wide on a screen of ${width}`);
      }
      tools.check(!(await page.evaluate(() => window.pwned)), `${at}: markup from the source was executed`);
      // Playwright injects axe through the DevTools protocol, which the page's content security policy does not restrict.
      await page.evaluate(axe);
      // axe cannot enter the sandboxed frame of a mail. A step opens that mail as a page of its own.
      const found = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"], iframes: false }));
      for (const { id, impact, help, nodes } of found.violations) {
        if (impact === "serious" || impact === "critical") fault(`${at}: axe: ${id} (${impact}): ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
      }
      if (shots && name) { mkdirSync(shots, { recursive: true }); await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true }); }
    },
    /** Triggers a change of the test data: `correct`. */
    async trigger(what) {
      const response = await fetch(`${control}/${what}`, { method: "POST" });
      tools.check(response.ok, `the control server rejected ${what}: ${response.status}`);
    },
  };
  return tools;
}

try {
  const files = readdirSync(join(here, "steps")).filter((name) => name.endsWith(".mjs") && name.includes(only)).sort();
  if (files.length === 0) throw new Error(`no step file name contains ${only}`);
  for (const file of files) {
    const { default: run } = await import(pathToFileURL(join(here, "steps", file)));
    const begun = Date.now();
    console.log(`${file}`);
    const tools = stepTools(file);
    try { await run(tools); } catch (error) { tools.fault(error.stack ?? String(error)); }
    console.log(`  ${((Date.now() - begun) / 1000).toFixed(1)} s`);
  }
} finally {
  await Promise.allSettled([...contexts.values()].map((open) => open.close()));
  rmSync(profile, { recursive: true, force: true });
}
if (faults.length > 0) { console.error(`${faults.length} faults`); process.exit(1); }
console.log("no faults");
