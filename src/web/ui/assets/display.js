// The color scheme and the time zone that the reader chose with the form `#display`, stored in the browser. A page loads this script
// before its stylesheet, so that it is never drawn in the other scheme. Without it, the system decides about the colors, and times are UTC.
"use strict";
(() => {
  const DEFAULTS = { scheme: "system", zone: "utc" };
  const VALUES = { scheme: ["system", "light", "dark"], zone: ["utc", "local"] };
  // A browser that blocks site data rejects each access.
  const load = (name) => { try { return localStorage.getItem(`cliffwatch.${name}`); } catch { return null; } };
  const store = (name, value) => { try { localStorage.setItem(`cliffwatch.${name}`, value); } catch { /* The choice lasts until the page is left. */ } };
  const known = (name, value) => (VALUES[name].includes(value) ? value : DEFAULTS[name]);
  const chosen = { scheme: known("scheme", load("scheme")), zone: known("zone", load("zone")) };

  const applyScheme = () => {
    if (chosen.scheme === "system") delete document.documentElement.dataset.scheme;
    else document.documentElement.dataset.scheme = chosen.scheme;
    document.dispatchEvent(new CustomEvent("cliffwatch:scheme"));
  };

  // Pages write each instant with its time and `UTC`. A date without a time is a day, week, or month of the schedule and never changes.
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const INSTANT = /\b(?:(\d{4})-(\d\d)-(\d\d) |(\d{1,2}) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (\d{4}), )(\d\d):(\d\d)(:\d\d)? UTC(?![+−\w])/g;
  const two = (number) => String(number).padStart(2, "0");
  const offset = (at) => {
    const minutes = -at.getTimezoneOffset(), size = Math.abs(minutes);
    return minutes === 0 ? "UTC" : `UTC${minutes < 0 ? "−" : "+"}${Math.floor(size / 60)}${size % 60 ? `:${two(size % 60)}` : ""}`;
  };
  /** `2026-03-09 12:00 UTC` becomes `2026-03-09 13:00 UTC+1`, and `9 Mar 2026, 12:00 UTC` becomes `9 Mar 2026, 13:00 UTC+1`. */
  const toLocal = (text) => text.replace(INSTANT, (whole, isoYear, isoMonth, isoDay, day, name, year, hour, minute, seconds = "") => {
    const at = new Date(Date.UTC(Number(isoYear ?? year), isoMonth ? Number(isoMonth) - 1 : MONTHS.indexOf(name), Number(isoDay ?? day), Number(hour), Number(minute)));
    if (Number.isNaN(at.getTime())) return whole;
    const time = `${two(at.getHours())}:${two(at.getMinutes())}${seconds} ${offset(at)}`;
    return isoYear
      ? `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`
      : `${at.getDate()} ${MONTHS[at.getMonth()]} ${at.getFullYear()}, ${time}`;
  });

  // The texts and attributes as the server sent them.
  const served = new WeakMap();
  const ATTRIBUTES = ["title", "aria-label"];
  const shown = (text) => (chosen.zone === "local" ? toLocal(text) : text);
  // Text of files, commands, and forms stays as it is.
  const VERBATIM = "code, pre, textarea, script, style, input, select";
  const showText = (node) => {
    if (!served.has(node)) {
      if (!node.data.includes(" UTC") || node.parentElement.closest(VERBATIM)) return;
      served.set(node, node.data);
    }
    const text = shown(served.get(node));
    if (node.data !== text) node.data = text;
  };
  const showAttributes = (element) => {
    element.dataset.zoned = "";
    if (!served.has(element)) served.set(element, ATTRIBUTES.map((name) => element.getAttribute(name)));
    served.get(element).forEach((text, at) => { if (text !== null) element.setAttribute(ATTRIBUTES[at], shown(text)); });
  };
  const showTimes = (root) => {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) showText(texts.currentNode);
    root.querySelectorAll(':is([title*=" UTC"], [aria-label*=" UTC"], [data-zoned]):not([data-both])').forEach(showAttributes);
  };

  /** The tooltip of a time shows it in both time zones. */
  const showBoth = (event) => {
    const time = event.target.closest && event.target.closest("time[datetime]");
    if (!time || time.dataset.both !== undefined) return;
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) return;
    const utc = `${at.getUTCFullYear()}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())} ${two(at.getUTCHours())}:${two(at.getUTCMinutes())} UTC`;
    const local = toLocal(utc);
    time.dataset.both = "";
    time.title = utc === local ? utc : `${utc} · ${local}`;
  };

  applyScheme();
  addEventListener("DOMContentLoaded", () => {
    const form = document.getElementById("display");
    if (chosen.zone === "local") showTimes(document.body);
    document.addEventListener("cliffwatch:refreshed", (event) => { if (chosen.zone === "local") showTimes(event.target); });
    document.addEventListener("pointerover", showBoth);
    if (!form) return;
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone) form.querySelector("[data-local-zone]").title = zone;
    const apply = (name, value) => {
      chosen[name] = known(name, value);
      form.elements[name].value = chosen[name];
      if (name === "scheme") applyScheme(); else showTimes(document.body);
    };
    for (const name of Object.keys(DEFAULTS)) form.elements[name].value = chosen[name];
    form.addEventListener("change", (event) => { apply(event.target.name, event.target.value); store(event.target.name, chosen[event.target.name]); });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
    // Another tab changed it.
    addEventListener("storage", (event) => {
      const name = Object.keys(DEFAULTS).find((name) => event.key === `cliffwatch.${name}`);
      if (name && event.newValue !== chosen[name]) apply(name, event.newValue);
    });
    // Browsers restore the state of a form when the reader goes back.
    addEventListener("pageshow", (event) => { if (event.persisted) for (const name of Object.keys(DEFAULTS)) apply(name, load(name) ?? chosen[name]); });
  });
})();
