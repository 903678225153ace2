// Live updates, keyboard shortcuts, and tools of tables. Every page works without this script.
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
  // The search of tokens, alerts, rules, and pages. Enter opens the first result, and the arrow keys select one.
  const find = document.getElementById("find"), findButton = document.querySelector("[data-find]");
  const searched = find && find.querySelector("input"), found = document.getElementById("found"), foundCount = document.getElementById("found-count");
  const openFind = () => { find.showModal(); searched.select(); };
  if (find && findButton) {
    let wait = 0, round = 0, known = null;
    const get = async (path) => { const response = await fetch(path, { credentials: "same-origin", redirect: "error" }); return response.ok ? response.json() : []; };
    const has = (text, words) => words.every((word) => text.toLowerCase().includes(word));
    const result = ([kind, text, href]) => {
      const item = document.createElement("li"), link = item.appendChild(document.createElement("a")), tag = document.createElement("span");
      link.href = href;
      link.textContent = text;
      tag.className = "tag";
      tag.textContent = kind;
      item.prepend(tag, " ");
      return item;
    };
    const search = async () => {
      const own = ++round, text = searched.value.trim(), words = text.toLowerCase().split(/\s+/).filter(Boolean);
      if (words.length === 0) { found.replaceChildren(); foundCount.textContent = ""; return; }
      try {
        // Alerts and rules are read once, because the API does not search their texts.
        known ??= Promise.all([get("/api/v1/alerts?state=firing&limit=500"), get("/api/v1/rules")]);
        const [tokens, [alerts, rules]] = await Promise.all([get(`/api/v1/tokens?limit=8&q=${encodeURIComponent(text)}`), known]);
        if (own !== round) return;
        const pages = [...document.querySelectorAll("nav a[data-key]")].filter((link) => has(link.firstChild.textContent, words));
        const all = [
          ...pages.map((link) => ["page", link.firstChild.textContent, link.getAttribute("href")]),
          ...tokens.map((row) => ["token", `${row.symbol} ${row.name === row.symbol ? "" : row.name}`.slice(0, 80), `/tokens/${encodeURIComponent(row.id)}`]),
          ...rules.filter((row) => has(row.name, words)).slice(0, 6).map((row) => ["rule", row.name, `/rules#${encodeURIComponent(row.name)}`]),
          ...alerts.filter((row) => has(`${row.summary} ${row.rule}`, words)).slice(0, 8).map((row) => ["alert", row.summary.slice(0, 160), `/alerts/${encodeURIComponent(row.id)}`]),
        ];
        found.replaceChildren(...all.map(result));
        foundCount.textContent = all.length === 0 ? "Nothing found." : `${all.length} result${all.length === 1 ? "" : "s"}`;
      } catch { known = null; foundCount.textContent = "The search failed. Enter searches the tokens."; }
    };
    findButton.hidden = false;
    findButton.addEventListener("click", openFind);
    searched.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(search, 200); });
    find.addEventListener("keydown", (event) => {
      const links = [...found.querySelectorAll("a")], at = links.indexOf(document.activeElement);
      if (event.key === "Enter" && at < 0 && links.length > 0) { links[0].click(); }
      else if (event.key === "ArrowDown") { links[Math.min(at + 1, links.length - 1)]?.focus(); }
      else if (event.key === "ArrowUp") { (links[at - 1] ?? searched).focus(); }
      else return;
      event.preventDefault();
    });
  }
  let pressedG = 0; // The time at which `g` was pressed.
  document.addEventListener("keydown", (event) => {
    if (find && !find.open && (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { openFind(); event.preventDefault(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || (keys && keys.open) || (find && find.open)) return;
    if (event.target.closest && event.target.closest("input, select, textarea, [contenteditable]")) return;
    const key = event.key;
    const link = Date.now() - pressedG < 1500 && /^[a-z]$/.test(key) ? document.querySelector(`nav a[data-key="${key}"]`) : null;
    pressedG = key === "g" ? Date.now() : 0;
    if (link) { link.click(); return; }
    if (key === "?" && keys) { keys.showModal(); }
    else if (key === "/" && find) { openFind(); }
    else if (key === "/") {
      const field = document.querySelector("main input[type=search], main form[method=get]:not([data-group]) input:not([type=hidden]), main form[method=get]:not([data-group]) select");
      if (field) { field.focus(); if (field.select) field.select(); } else { location.href = "/tokens"; }
    } else if (key === "j" || key === "k") { step(key === "j" ? 1 : -1); }
    else return;
    event.preventDefault();
  });

  // Each card with a table gets buttons that copy its link and save its rows as CSV.
  const cellText = (cell) => {
    const text = cell.innerText.replace(/\s+/g, " ").trim();
    // A spreadsheet would run it as a formula.
    return `"${(/^[=+@\t]|^-\D/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  const csvOf = (table) => [...table.rows].map((row) => [...row.cells].map(cellText).join(",")).join("\r\n");
  const addTools = (root) => {
    for (const card of [...(root.matches?.("section.card[id]") ? [root] : []), ...root.querySelectorAll("section.card[id]")]) {
      const header = card.querySelector(":scope > header"), table = card.querySelector("table.list, table.series");
      if (!table || card.querySelector(".tools") || (!header && table.closest("details"))) continue;
      const tools = document.createElement(header ? "span" : "div");
      tools.className = "tools";
      if (header) header.append(tools); else card.prepend(tools);
      const add = (text, act) => { const button = tools.appendChild(document.createElement("button")); button.type = "button"; button.className = "plain"; button.textContent = text; button.addEventListener("click", () => act(button)); };
      add("Copy link", async (button) => {
        const link = new URL(location.href);
        link.hash = card.id;
        try { await navigator.clipboard.writeText(link.href); button.textContent = "Copied"; } catch { location.hash = card.id; }
      });
      add("CSV", () => {
        const saved = document.createElement("a");
        saved.href = URL.createObjectURL(new Blob([csvOf(table)], { type: "text/csv" }));
        saved.download = `cliffwatch-${card.id}.csv`;
        saved.click();
        setTimeout(() => URL.revokeObjectURL(saved.href), 10000);
      });
    }
  };
  addTools(document);
  document.addEventListener("cliffwatch:refreshed", (event) => addTools(event.target));

  // `<form data-preview="id">`: while the reader types, the region with this id shows what the page shows for these values. Then the form
  // `#year` in it is sent, and `#year-results` shows its results.
  const form = document.querySelector("form[data-preview]");
  if (form) {
    let typed = 0, round = 0;
    const read = async (response) => new DOMParser().parseFromString(await response.text(), "text/html");
    const replay = async (own) => {
      const year = document.getElementById("year"), results = document.getElementById("year-results");
      if (!year || !results) return;
      results.textContent = "Replaying the last year…";
      try {
        const response = await fetch(year.action, { method: "POST", body: new URLSearchParams(new FormData(year)), credentials: "same-origin", redirect: "error" });
        if (own !== round) return;
        // Another replay is running.
        if (response.status === 503) { setTimeout(() => { if (own === round) replay(own); }, 3000); return; }
        const found = (await read(response)).getElementById("results");
        if (own === round) results.replaceChildren(found ?? "The replay failed: try it again with the button.");
      } catch { results.textContent = "The replay failed: try it again with the button."; }
    };
    const preview = async () => {
      const own = ++round;
      try {
        const response = await fetch(`${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`, { credentials: "same-origin", redirect: "error" });
        const fresh = await read(response), region = document.getElementById(form.dataset.preview), other = fresh.getElementById(form.dataset.preview);
        if (own !== round || !region || !other) return;
        document.querySelectorAll("main > .notice").forEach((old) => old.remove());
        region.replaceChildren(...fresh.querySelectorAll("main > .notice"), ...other.childNodes);
        replay(own);
      } catch { /* The button shows the rule, too. */ }
    };
    form.addEventListener("input", (event) => {
      clearTimeout(typed);
      if (event.target.tagName !== "SELECT") typed = setTimeout(preview, 700);
    });
  }

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
