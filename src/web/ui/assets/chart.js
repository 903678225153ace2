// Interactive charts, drawn with uPlot from the table below each chart. Without this script, a page shows the drawing of the server, which
// also stays for print. Each `<figure data-plot="…">` has that drawing, a `<ul class="legend">`, and a `<table class="series">`.
// Pointer, touch, and arrow keys select a date; the legend shows its values and switches series on and off.
"use strict";
(() => {
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const DAY = 86400, MONTH = 28 * DAY, YEAR = 365 * DAY;
  const MIN_SPAN = 30 * DAY; // The shortest range of a zoom.
  const FOCUS = 90 * DAY; // What is shown before and after the changed part of a schedule, at least.
  const UNITS = [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "K"]];
  const kept = new Map(); // The hidden series and the zoom of each chart, which stay across live updates.

  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const element = (name, className, text) => Object.assign(document.createElement(name), { className, textContent: text ?? "" });
  /** The same form as on the server: `92.65M`. */
  const amount = (value) => {
    const [unit, letter] = UNITS.find(([unit]) => Math.abs(value) >= unit * 0.999995) ?? [1, ""];
    return (value / unit).toFixed(letter || (value % 1 !== 0) ? 2 : 0) + letter;
  };
  const percent = (value) => `${value.toFixed(2)}%`;
  const tick = (value) => amount(value).replace(/(\.\d*?)0+(?=[A-Z]?$)/, "$1").replace(/\.(?=[A-Z]?$)/, "");
  const date = (seconds) => new Date(seconds * 1000);
  const dateTick = (seconds, step) => {
    const at = date(seconds), month = MONTHS[at.getUTCMonth()];
    if (step >= YEAR) return String(at.getUTCFullYear());
    if (step >= MONTH) return at.getUTCMonth() === 0 ? String(at.getUTCFullYear()) : `${month} ${String(at.getUTCFullYear()).slice(2)}`;
    return `${at.getUTCDate()} ${month}`;
  };

  /** Reads the table: columns with names and classes, and rows with the values at each date and just before it. */
  const read = (figure) => {
    const number = (cell, name) => (cell && cell.dataset[name] !== undefined ? Number(cell.dataset[name]) : null);
    const columns = [...figure.querySelectorAll("table.series thead th[data-series]")].map((cell) => ({ name: cell.textContent.trim(), class: cell.dataset.series }));
    const rows = [...figure.querySelectorAll("table.series tbody tr")].map((row) => {
      const cells = [...row.querySelectorAll("td[data-v]:not([data-former])")].slice(0, columns.length);
      const former = row.querySelector("td[data-former]");
      const values = cells.map((cell) => number(cell, "v"));
      const isCliff = cells.some((cell) => cell.dataset.b !== undefined);
      const stepped = isCliff || (former && former.dataset.b !== undefined);
      return {
        at: Number(row.dataset.at), day: row.cells[0].textContent.trim(), values, stepped, isCliff,
        before: cells.map((cell, at) => number(cell, "b") ?? values[at]),
        former: number(former, "v"), formerBefore: number(former, "b") ?? number(former, "v"),
        isToday: row.classList.contains("today"),
      };
    });
    return { columns, rows };
  };

  const mount = (figure) => {
    const { columns, rows } = read(figure);
    if (columns.length === 0 || rows.length < 2) return;
    const { plot: id, symbol = "", unit = "Unlocked tokens", mode = "stack" } = figure.dataset;
    const maxSupply = Number(figure.dataset.maxSupply) || null;
    const marks = [[Number(figure.dataset.now), "today", "--dim", true], [Number(figure.dataset.mark) || NaN, figure.dataset.markLabel ?? "", "--text", false]];
    const isStacked = mode === "stack", hasFormer = rows.some((row) => row.former !== null);
    const state = kept.get(id) ?? { hidden: new Set(), zoom: null };
    kept.set(id, state);

    // A step is two points, one second apart.
    const points = [];
    rows.forEach((row, index) => {
      if (row.stepped && index > 0) points.push({ x: row.at - 1, row: index, values: row.before, former: row.formerBefore });
      points.push({ x: row.at, row: index, values: row.values, former: row.former });
    });
    const xs = points.map((point) => point.x);
    // The former schedule is drawn only where it differs visibly, with one more point at both ends.
    const sums = points.map(({ values }) => values.reduce((sum, value) => sum + (value ?? 0), 0));
    const largest = Math.max(...sums, 0);
    const differs = points.map(({ former }, at) => former !== null && Math.abs(former - sums[at]) > largest / 500);
    const formerLine = points.map(({ former }, at) => (differs[at - 1] || differs[at] || differs[at + 1] ? former : null));
    // A chart about a change begins with the part that changed. “Reset zoom” shows the rest.
    const changed = xs.filter((_, at) => differs[at]);
    if (figure.dataset.focus && changed.length > 0 && !state.isFocused) {
      const around = Math.max(FOCUS, (changed[changed.length - 1] - changed[0]) / 4);
      const [from, until] = [Math.max(changed[0] - around, xs[0]), Math.min(changed[changed.length - 1] + around, xs[xs.length - 1])];
      Object.assign(state, { isFocused: true, zoom: until - from < (xs[xs.length - 1] - xs[0]) * 0.9 ? [from, until] : null });
    }
    const isShown = (column) => !state.hidden.has(columns[column].name);
    /** The largest sum stands first, so that each area covers the lower part of the one before it. */
    const order = columns.map((_, at) => at).reverse();
    const data = () => {
      const series = order.map((column) => points.map(({ values }) => {
        if (!isStacked) return values[column];
        let sum = 0;
        for (let below = 0; below <= column; below++) if (isShown(below)) sum += values[below];
        return sum;
      }));
      if (hasFormer) series.push(formerLine);
      return [xs, ...series];
    };

    // The line of values, the buttons, and the legend stand above the chart, where no finger covers them.
    const panel = element("div", "plot-live");
    const head = panel.appendChild(element("div", "plot-head"));
    const readout = head.appendChild(element("p", "readout"));
    const controls = head.appendChild(element("div", "plot-controls"));
    const button = (text, act) => { const made = controls.appendChild(element("button", "", text)); made.type = "button"; made.addEventListener("click", act); return made; };
    const legend = panel.appendChild(element("ul", "legend toggles"));
    const area = panel.appendChild(element("div", "plot-area"));
    area.tabIndex = 0;
    area.setAttribute("role", "slider");
    area.setAttribute("aria-label", `${figure.dataset.label ?? "Chart"}: date`);
    area.setAttribute("aria-valuemin", "0");
    area.setAttribute("aria-valuemax", String(rows.length - 1));
    panel.appendChild(element("p", "dim small", "Point, touch, or use the arrow keys for the values of a date. Drag to zoom, or press + and −. A name in the legend switches its series on and off."));

    let plot = null, forced = null, current = -1;
    const todayRow = Math.max(0, rows.findIndex((row) => row.isToday));
    const values = [];
    columns.forEach((column, at) => {
      const toggle = element("button", `toggle ${column.class}`);
      toggle.type = "button";
      const name = toggle.appendChild(element("bdi", "name", column.name));
      name.title = column.name;
      values.push(toggle.appendChild(element("span", "value num")));
      toggle.setAttribute("aria-pressed", String(isShown(at)));
      toggle.addEventListener("click", () => {
        if (isShown(at)) state.hidden.add(column.name); else state.hidden.delete(column.name);
        applyHidden();
      });
      legend.appendChild(element("li", "")).appendChild(toggle);
    });
    if (hasFormer) {
      const item = legend.appendChild(element("li", "line fixed"));
      const name = item.appendChild(element("span", "name", figure.dataset.formerLabel ?? "before"));
      name.title = name.textContent;
      values.push(item.appendChild(element("span", "value num")));
    }

    const show = (index) => {
      current = index;
      const row = rows[index];
      const shown = columns.map((_, at) => at).filter(isShown);
      const total = shown.reduce((sum, at) => sum + (row.values[at] ?? 0), 0);
      const parts = [];
      if (isStacked) parts.push(`${state.hidden.size > 0 ? "sum of shown" : "total"} ${amount(total)} ${symbol}`.trim());
      if (isStacked && maxSupply) parts.push(`${percent((total / maxSupply) * 100)} of max supply`);
      readout.replaceChildren(element("b", "", row.day), ` ${row.isToday ? "(today) " : ""}${parts.length > 0 ? "· " : ""}${parts.join(" · ")}`);
      const text = (value) => (value === null ? "–" : isStacked ? amount(value) : percent(value));
      columns.forEach((_, at) => { values[at].textContent = isShown(at) ? text(row.values[at]) : "off"; });
      if (hasFormer) values[columns.length].textContent = text(row.former);
      area.setAttribute("aria-valuenow", String(index));
      const spoken = isStacked ? parts : shown.map((at) => `${columns[at].name} ${text(row.values[at])}`);
      area.setAttribute("aria-valuetext", `${row.day}: ${spoken.join(", ")}`);
    };

    const full = [xs[0], xs[xs.length - 1]];
    const range = () => state.zoom ?? full;
    const setZoom = (from, until) => {
      const span = Math.min(Math.max(until - from, MIN_SPAN), full[1] - full[0]);
      const start = Math.min(Math.max(from, full[0]), full[1] - span);
      state.zoom = span >= full[1] - full[0] ? null : [start, start + span];
      plot.setScale("x", { min: range()[0], max: range()[1] });
      refreshButtons();
    };
    const zoomBy = (factor) => {
      const [from, until] = range();
      const middle = current >= 0 && figure.dataset.inUse ? rows[current].at : (from + until) / 2;
      const share = Math.min(Math.max((middle - from) / (until - from), 0), 1), span = (until - from) * factor;
      setZoom(middle - span * share, middle + span * (1 - share));
    };
    button("Zoom in", () => zoomBy(0.5));
    const out = button("Zoom out", () => zoomBy(2));
    const reset = button("Reset zoom", () => setZoom(...full));
    const all = button("Show all", () => { state.hidden.clear(); applyHidden(); });
    const refreshButtons = () => {
      out.disabled = reset.disabled = state.zoom === null;
      all.hidden = state.hidden.size === 0;
    };
    const applyHidden = () => {
      legend.querySelectorAll("button").forEach((toggle, at) => toggle.setAttribute("aria-pressed", String(isShown(at))));
      order.forEach((column, at) => plot.setSeries(at + 1, { show: isShown(column) }));
      plot.setData(data(), false);
      plot.setScale("x", { min: range()[0], max: range()[1] });
      show(current >= 0 ? current : todayRow);
      refreshButtons();
    };

    /** Selects a row by keyboard, and scrolls a zoomed chart to it. */
    const select = (index) => {
      const to = Math.min(Math.max(index, 0), rows.length - 1), at = rows[to].at, [from, until] = range();
      if (at < from || at > until) setZoom(at - (until - from) / 2, at + (until - from) / 2);
      forced = to;
      figure.dataset.inUse = "1";
      plot.setCursor({ left: plot.valToPos(at, "x"), top: plot.over.clientHeight / 2 });
      forced = null;
    };
    const leave = () => { delete figure.dataset.inUse; forced = todayRow; plot.setCursor({ left: -10, top: -10 }); forced = null; show(todayRow); };
    area.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const moves = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 12, PageDown: -12, Home: -rows.length, End: rows.length };
      if (event.key in moves) select((current < 0 ? todayRow : current) + moves[event.key]);
      else if (event.key === "+" || event.key === "=") zoomBy(0.5);
      else if (event.key === "-" || event.key === "−") zoomBy(2);
      else if (event.key === "0" || event.key === "Escape") setZoom(...full);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    area.addEventListener("focus", () => { if (area.matches(":focus-visible")) select(current < 0 ? todayRow : current); });
    area.addEventListener("blur", leave);

    const drawMarks = (drawn) => {
      const { ctx, bbox: { left, top, width, height } } = drawn, ratio = devicePixelRatio || 1;
      ctx.save();
      ctx.font = `${12 * ratio}px system-ui, sans-serif`;
      const [min, max] = [drawn.scales.x.min, drawn.scales.x.max];
      if (isStacked) {
        const now = Math.min(Math.max(drawn.valToPos(marks[0][0], "x", true), left), left + width);
        ctx.globalAlpha = 0.4;
        ctx.fillStyle = color("--card");
        ctx.fillRect(now, top, left + width - now, height);
        ctx.globalAlpha = 1;
        ctx.fillStyle = color("--text");
        let last = -Infinity;
        for (const { x, row } of points) if (rows[row].isCliff && x === rows[row].at && x >= min && x <= max) {
          const at = drawn.valToPos(x, "x", true), foot = top + height;
          if (at - last < 6 * ratio) continue;
          last = at;
          ctx.beginPath(); ctx.moveTo(at, foot - 6 * ratio); ctx.lineTo(at + 3 * ratio, foot); ctx.lineTo(at - 3 * ratio, foot); ctx.fill();
        }
      }
      marks.forEach(([at, text, name, isDashed], line) => {
        if (!(at >= min && at <= max)) return;
        const x = Math.round(drawn.valToPos(at, "x", true)), isRight = x > left + width * 0.7;
        ctx.strokeStyle = ctx.fillStyle = color(name);
        ctx.lineWidth = ratio;
        ctx.setLineDash(isDashed ? [4 * ratio, 3 * ratio] : []);
        ctx.beginPath(); ctx.moveTo(x, top - (line === 1 ? 12 : 0) * ratio); ctx.lineTo(x, top + height); ctx.stroke();
        ctx.textAlign = isRight || line === 0 ? "right" : "left";
        ctx.lineWidth = 3 * ratio;
        ctx.setLineDash([]);
        ctx.strokeStyle = color("--card");
        const [tx, ty] = [x + (ctx.textAlign === "right" ? -5 : 5) * ratio, line === 1 ? top - 6 * ratio : top + 14 * ratio];
        ctx.strokeText(text, tx, ty);
        ctx.fillText(text, tx, ty);
      });
      ctx.restore();
    };

    /** Round percentages of the max supply, in tokens. */
    const percentSplits = (_, __, min, max) => {
      const top = (max / maxSupply) * 100, step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25, 50].find((step) => top / step <= 6) ?? 100;
      return Array.from({ length: Math.floor(top / step) + 1 }, (_, at) => (at * step * maxSupply) / 100);
    };
    const options = (width) => {
      const isNarrow = width < 560, dim = color("--dim"), card = color("--card"), grid = { stroke: color("--grid"), width: 1 };
      const tint = (column) => color(`--${columns[column].class}`);
      const font = "12px system-ui, sans-serif";
      const axis = { stroke: dim, grid, ticks: { ...grid, size: 5 }, font, labelFont: font, labelSize: 18, labelGap: 2 };
      const value = isStacked ? tick : (of) => `${Number(of.toFixed(3))}%`;
      return {
        width, height: isNarrow ? 320 : 380, padding: [20, maxSupply && isStacked ? 0 : 12, 0, 0], legend: { show: false },
        tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "Etc/UTC"),
        cursor: { y: false, drag: { x: true, y: false, dist: 8 }, points: { size: 7, width: 1.5, stroke: () => card, fill: (_, at) => (at <= order.length ? tint(order[at - 1]) : color("--text")) } },
        scales: { x: { time: true, range: (_, min, max) => [min, max] }, y: { range: (_, min, max) => [0, max > 0 ? max * 1.06 : 1] } },
        axes: [
          { ...axis, label: "Date (UTC)", size: 28, space: isNarrow ? 50 : 70, values: (_, splits, __, ___, step) => splits.map((at) => dateTick(at, step)) },
          { ...axis, label: `${unit}${symbol && isStacked ? ` (${symbol})` : ""}`, size: isNarrow ? 46 : 56, values: (_, splits) => splits.map(value) },
          ...(maxSupply && isStacked ? [{ ...axis, side: 1, scale: "y", label: "% of max supply", size: isNarrow ? 38 : 46, grid: { show: false }, splits: percentSplits, values: (_, splits) => splits.map((of) => (of > 0 && of <= maxSupply * 1.005 ? `${Number(((of / maxSupply) * 100).toFixed(2))}%` : "")) }] : []),
        ],
        series: [
          {},
          ...order.map((column) => ({ label: columns[column].name, show: isShown(column), points: { show: false }, ...(isStacked ? { stroke: card, width: 0.6, fill: tint(column) } : { stroke: tint(column), width: 2, points: { show: rows.length < 40, size: 6, fill: tint(column) } }) })),
          ...(hasFormer ? [{ label: "before", stroke: color("--text"), width: 1.5, dash: [5, 4], points: { show: false } }] : []),
        ],
        hooks: {
          draw: [drawMarks],
          setCursor: [(of) => {
            const at = of.cursor.idx;
            if (forced !== null) { show(forced); return; }
            if (at === null || at === undefined || of.cursor.left < 0) return;
            figure.dataset.inUse = "1";
            show(points[at].row);
          }],
          setSelect: [(of) => {
            const { left, width: wide } = of.select;
            if (wide < 8) return;
            state.zoom = [of.posToVal(left, "x"), of.posToVal(left + wide, "x")];
            refreshButtons();
          }],
        },
      };
    };
    const draw = () => {
      const width = Math.floor(area.clientWidth);
      if (width < 100) return;
      if (plot) plot.destroy();
      plot = new uPlot(options(width), data(), area);
      if (state.zoom) plot.setScale("x", { min: state.zoom[0], max: state.zoom[1] });
      plot.over.addEventListener("mouseleave", () => { if (document.activeElement !== area) leave(); });
      plot.over.addEventListener("dblclick", () => setZoom(...full));
      for (const kind of ["pointerdown", "pointermove"]) plot.over.addEventListener(kind, (event) => {
        if (event.pointerType !== "touch") return;
        const box = plot.over.getBoundingClientRect();
        plot.setCursor({ left: Math.min(Math.max(event.clientX - box.left, 0), box.width), top: box.height / 2 });
      });
    };
    figure.prepend(panel);
    figure.classList.add("is-live");
    draw();
    if (!plot) { panel.remove(); figure.classList.remove("is-live"); return; }
    refreshButtons();
    show(todayRow);
    new ResizeObserver(() => { if (plot && area.isConnected && Math.abs(area.clientWidth - plot.width) > 1) draw(); }).observe(area);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => {
      if (area.isConnected) { draw(); return; }
      scheme.removeEventListener("change", redraw);
      document.removeEventListener("cliffwatch:scheme", redraw);
    };
    scheme.addEventListener("change", redraw);
    document.addEventListener("cliffwatch:scheme", redraw);
  };

  const mountAll = (root) => { for (const figure of root.querySelectorAll("figure[data-plot]:not(.is-live)")) mount(figure); };
  mountAll(document);
  document.addEventListener("cliffwatch:refreshed", (event) => mountAll(event.target));

  // The arrow keys move between the bars of a drawing, each of which shows its values while it has the focus.
  document.addEventListener("keydown", (event) => {
    const bar = event.target.closest && event.target.closest("svg.chart .bar");
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!bar || !by || event.ctrlKey || event.metaKey || event.altKey) return;
    const bars = [...bar.ownerSVGElement.querySelectorAll(".bar")];
    bars[bars.indexOf(bar) + by]?.focus();
    event.preventDefault();
  });
})();
