// Live updates, keyboard shortcuts, and local times. Every page works without this script.
// On an event from the daemon, each region `<section id="…" data-live>` is replaced by the region with the same id from a fresh copy of
// the page. A page without such regions only shows that new data is available, because the reader may be filling in a form.
"use strict";
(() => {
  const MIN_INTERVAL_MS = 4000; // Between two refreshes.
  const live = document.querySelector("[data-live-state]");
  const news = document.getElementById("news");
  let source = null, timer = 0, last = 0, busy = false, missed = false;

  const showState = (on, text) => {
    if (!live) return;
    live.hidden = false;
    live.classList.toggle("on", on);
    live.textContent = text;
  };
  const regions = (root) => [...root.querySelectorAll("[data-live][id]")];
  // Matches `<details>` by position, so that they stay open or closed across a refresh.
  const opened = (region) => [...region.querySelectorAll("details")].map((details) => details.open);
  // The regions as the server sent them, because scripts add to them.
  const served = new Map(regions(document).map((region) => [region.id, region.innerHTML]));
  const inUse = (region) => {
    if (region.querySelector("[data-in-use]")) return true;
    const at = document.activeElement;
    if (at && region.contains(at) && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) return true;
    if (region.querySelector("input[type=checkbox]:checked")) return true;
    const selection = document.getSelection();
    return Boolean(selection && !selection.isCollapsed && region.contains(selection.anchorNode));
  };

  const apply = (fresh) => {
    for (const region of regions(document)) {
      const other = fresh.getElementById(region.id);
      if (!other || other.innerHTML === served.get(region.id) || inUse(region)) continue;
      served.set(region.id, other.innerHTML);
      const was = opened(region);
      const focused = region.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      if (opened(other).length === was.length) other.querySelectorAll("details").forEach((details, at) => { details.open = was[at]; });
      region.replaceChildren(...other.childNodes);
      region.dispatchEvent(new CustomEvent("cliffwatch:refreshed", { bubbles: true }));
      if (focused) region.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
    document.title = fresh.title;
  };

  const refresh = async () => {
    timer = 0;
    if (busy) { missed = true; return; }
    busy = true;
    last = Date.now();
    try {
      const response = await fetch(location.href, { cache: "no-store", credentials: "same-origin", redirect: "error" });
      if (response.ok) apply(new DOMParser().parseFromString(await response.text(), "text/html"));
    } catch {
      showState(false, "not live: the daemon does not respond");
    }
    busy = false;
    if (missed) { missed = false; schedule(); }
  };
  const schedule = () => {
    if (regions(document).length === 0) { if (news) news.hidden = false; return; }
    if (!timer) timer = setTimeout(refresh, Math.max(300, last + MIN_INTERVAL_MS - Date.now()));
  };

  const listen = () => {
    if (source || !document.body.dataset.events) return;
    source = new EventSource(document.body.dataset.events);
    source.addEventListener("open", () => showState(true, "live"));
    source.addEventListener("news", schedule);
    source.addEventListener("error", () => showState(false, source && source.readyState === EventSource.CLOSED ? "not live: reload the page for new data" : "not live: waiting for the daemon"));
  };
  const disconnect = () => { if (source) { source.close(); source = null; } };
  // Browsers limit the connections to one host, so a hidden page closes its own.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { disconnect(); } else { listen(); schedule(); }
  });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
  if (!document.hidden) listen();

  // Keyboard shortcuts: `/` searches, `j` and `k` select a row, `g` and a letter open a page, `?` shows the help.
  const keys = document.getElementById("keys");
  const keysButton = document.querySelector("[data-keys]");
  if (keys && keysButton) { keysButton.hidden = false; keysButton.addEventListener("click", () => keys.showModal()); }
  const rows = () => [...document.querySelectorAll("main table.list tbody tr")].map((row) => row.querySelector("a[href]")).filter(Boolean);
  const step = (by) => {
    const all = rows();
    const own = document.activeElement && document.activeElement.closest("tr");
    const at = all.findIndex((link) => link.closest("tr") === own);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  };
  let pressedG = 0; // The time at which `g` was pressed.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || (keys && keys.open)) return;
    if (event.target.closest && event.target.closest("input, select, textarea, [contenteditable]")) return;
    const key = event.key;
    const link = Date.now() - pressedG < 1500 && /^[a-z]$/.test(key) ? document.querySelector(`nav a[data-key="${key}"]`) : null;
    pressedG = key === "g" ? Date.now() : 0;
    if (link) { link.click(); return; }
    if (key === "?" && keys) { keys.showModal(); }
    else if (key === "/") {
      const field = document.querySelector("main input[type=search], main form[method=get]:not([data-group]) input:not([type=hidden]), main form[method=get]:not([data-group]) select");
      if (field) { field.focus(); if (field.select) field.select(); } else { location.href = "/tokens"; }
    } else if (key === "j" || key === "k") { step(key === "j" ? 1 : -1); }
    else return;
    event.preventDefault();
  });

  // Times are in UTC. The tooltip of a time also shows it in the local time zone.
  document.addEventListener("pointerover", (event) => {
    const time = event.target.closest && event.target.closest("time[datetime]");
    if (!time || time.dataset.local) return;
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) return;
    time.dataset.local = "1";
    const local = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    time.title = `${time.title || time.textContent} · ${local} local time`;
  });

  // `<form data-auto>` is submitted when a `<select>` in it changes. `<button data-copy="id">` copies the text of that element.
  document.addEventListener("change", (event) => {
    const form = event.target.closest && event.target.closest("form[data-auto]");
    if (form && event.target.tagName === "SELECT") form.requestSubmit();
  });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest && event.target.closest("button[data-copy]");
    const from = button && document.getElementById(button.dataset.copy);
    if (!from) return;
    try {
      await navigator.clipboard.writeText(from.value === undefined ? from.textContent : from.value);
      button.textContent = "Copied";
    } catch { button.textContent = "Copying failed: select the text instead"; }
  });
})();
