// Runs the steps in `steps/` against a daemon: CLIFFWATCH_BASE is where its pages are, CLIFFWATCH_TOKEN its token, CLIFFWATCH_CONTROL where
// the world is changed. Whatever a page does wrong while a step looks at it is a fault: an error on the console, a request to another
// host, something that the content policy refused, an uncaught exception.
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
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const profile = mkdtempSync(join(tmpdir(), "cliffwatch-browser-"));
const faults = [];
const contexts = new Map();

/** A browser context of that size and colour; `options` are those of playwright. Each has a fresh profile below `profile`. */
async function context(size, scheme, options) {
  return chromium.launchPersistentContext(mkdtempSync(join(profile, "p-")), {
    executablePath: process.env.CLIFFWATCH_CHROMIUM ?? "/usr/bin/chromium", headless: true, args: flags, viewport: sizes[size], colorScheme: scheme, ...options,
  });
}

function stepTools(step) {
  const fault = (what) => { faults.push(`${step}: ${what}`); console.error(`  FAULT ${what}`); };
  const tools = {
    base, control, token: process.env.CLIFFWATCH_TOKEN, sizes, fault,
    /** Says that something is not as it should be, and goes on. */
    check(holds, what) { if (!holds) fault(what); return holds; },
    /** A page that is watched. `size` is wide or phone, `scheme` light or dark; `expects` are console errors that belong to the step. */
    async page({ size = "wide", scheme = "light", expects = [], ...options } = {}) {
      const key = JSON.stringify([size, scheme, options]);
      if (!contexts.has(key)) contexts.set(key, await context(size, scheme, options));
      const page = await contexts.get(key).newPage();
      const where = () => `${page.url().replace(base, "")} (${size}, ${scheme})`;
      page.on("console", (message) => {
        const text = message.text();
        if (["error", "warning"].includes(message.type()) && !expects.some((known) => text.includes(known))) fault(`${where()}: console: ${text}`);
      });
      page.on("pageerror", (error) => fault(`${where()}: ${error.message}`));
      page.on("dialog", (dialog) => { fault(`${where()}: a dialog: ${dialog.message()}`); dialog.dismiss(); });
      page.on("request", (request) => { if (!request.url().startsWith(base + "/") && !request.url().startsWith("data:")) fault(`${where()}: a request to ${request.url()}`); });
      await page.addInitScript(() => addEventListener("securitypolicyviolation", (event) => console.error(`content policy: ${event.violatedDirective} ${event.blockedURI}`)));
      return page;
    },
    /** Opens a path; a status other than `status` is a fault. */
    async open(page, path, status = 200) {
      const answer = await page.goto(base + path, { waitUntil: "load" });
      tools.check(answer.status() === status, `${path}: status ${answer.status()}`);
      return answer;
    },
    /** Looks at the page as it is: nothing serious for assistive technology, nothing wider than the screen, no markup run. */
    async look(page, name) {
      const at = page.url().replace(base, "");
      const { width, wide } = await page.evaluate(() => ({ width: innerWidth, wide: document.documentElement.scrollWidth }));
      tools.check(wide <= width, `${at}: ${wide} px wide on a screen of ${width}`);
      tools.check(!(await page.evaluate(() => window.pwned)), `${at}: markup of the source was run`);
      // The checker is put in by the tester's own channel, which the content policy of the page does not bind.
      await page.evaluate(axe);
      // What is in a frame that may run nothing cannot be asked from here; the mail in it is opened by itself.
      const found = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"], iframes: false }));
      for (const { id, impact, help, nodes } of found.violations) {
        if (impact === "serious" || impact === "critical") fault(`${at}: axe: ${id} (${impact}): ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
      }
      if (shots && name) { mkdirSync(shots, { recursive: true }); await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true }); }
    },
    /** Has something happen in the world: `correct`. */
    async happen(what) {
      const answer = await fetch(`${control}/${what}`, { method: "POST" });
      tools.check(answer.ok, `the world refuses ${what}: ${answer.status}`);
    },
  };
  return tools;
}

try {
  const files = readdirSync(join(here, "steps")).filter((name) => name.endsWith(".mjs") && name.includes(only)).sort();
  if (files.length === 0) throw new Error(`no step has ${only} in its name`);
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
console.log("nothing is wrong");
