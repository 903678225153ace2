// What pages do beside being read: they take in what is new as the daemon tells it, and no page needs this to be right.
// A region `<section id="…" data-live>` is replaced by the one of the same id in a fresh copy of the page. A page without such a
// region shows that something is new and leaves it to its reader, who may be writing.
"use strict";
(() => {
  const soonest = 4000; // Between two refreshes, milliseconds.
  const live = document.querySelector("[data-live-state]");
  const news = document.getElementById("news");
  let source = null, timer = 0, last = 0, busy = false, missed = false;

  const say = (on, text) => {
    if (!live) return;
    live.hidden = false;
    live.classList.toggle("on", on);
    live.textContent = text;
  };
  const regions = (of) => [...of.querySelectorAll("[data-live][id]")];
  // Details stay as the reader left them: by their place in the region.
  const opened = (region) => [...region.querySelectorAll("details")].map((details) => details.open);
  const inUse = (region) => {
    const at = document.activeElement;
    if (at && region.contains(at) && /^(INPUT|SELECT|TEXTAREA)$/.test(at.tagName)) return true;
    if (region.querySelector("input[type=checkbox]:checked")) return true;
    const chosen = document.getSelection();
    return Boolean(chosen && !chosen.isCollapsed && region.contains(chosen.anchorNode));
  };

  const take = (fresh) => {
    for (const region of regions(document)) {
      const other = fresh.getElementById(region.id);
      if (!other || other.innerHTML === region.innerHTML || inUse(region)) continue;
      const was = opened(region);
      const focused = region.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      if (opened(other).length === was.length) other.querySelectorAll("details").forEach((details, at) => { details.open = was[at]; });
      region.replaceChildren(...other.childNodes);
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
      const answer = await fetch(location.href, { cache: "no-store", credentials: "same-origin", redirect: "error" });
      if (answer.ok) take(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      say(false, "not live: the daemon does not answer");
    }
    busy = false;
    if (missed) { missed = false; soon(); }
  };
  const soon = () => {
    if (regions(document).length === 0) { if (news) news.hidden = false; return; }
    if (!timer) timer = setTimeout(refresh, Math.max(300, last + soonest - Date.now()));
  };

  const listen = () => {
    if (source || !document.body.dataset.events) return;
    source = new EventSource(document.body.dataset.events);
    source.addEventListener("open", () => say(true, "live"));
    source.addEventListener("news", soon);
    source.addEventListener("error", () => say(false, source && source.readyState === EventSource.CLOSED ? "not live: reload to see what is new" : "not live: waiting for the daemon"));
  };
  const leave = () => { if (source) { source.close(); source = null; } };
  // A browser keeps few connections to one host: a page that nobody looks at gives its own back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { leave(); } else { listen(); soon(); }
  });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
  if (!document.hidden) listen();

  // By keyboard: `/` searches, `j` and `k` go through the rows, `g` and a letter to another page, `?` says so.
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
  let went = 0; // When `g` was pressed.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || (keys && keys.open)) return;
    if (event.target.closest && event.target.closest("input, select, textarea, [contenteditable]")) return;
    const key = event.key;
    const link = Date.now() - went < 1500 && /^[a-z]$/.test(key) ? document.querySelector(`nav a[data-key="${key}"]`) : null;
    went = key === "g" ? Date.now() : 0;
    if (link) { link.click(); return; }
    if (key === "?" && keys) { keys.showModal(); }
    else if (key === "/") {
      const field = document.querySelector("main input[type=search], main form[method=get] input:not([type=hidden]), main form[method=get] select");
      if (field) { field.focus(); if (field.select) field.select(); } else { location.href = "/tokens"; }
    } else if (key === "j" || key === "k") { step(key === "j" ? 1 : -1); }
    else return;
    event.preventDefault();
  });

  // Times are UTC; who points at one is told it by their own clock too.
  document.addEventListener("pointerover", (event) => {
    const time = event.target.closest && event.target.closest("time[datetime]");
    if (!time || time.dataset.own) return;
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) return;
    time.dataset.own = "1";
    const own = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
    time.title = `${time.title || `${time.textContent} UTC`} · ${own} by your clock`;
  });

  // `<form data-auto>` is sent when a choice in it changes; `<button data-copy="id">` copies the text of that element.
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
    } catch { button.textContent = "Not copied: select the text instead"; }
  });
})();
