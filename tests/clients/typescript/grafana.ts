// Tries the recipe for Grafana in docs/how-to.md without Grafana: requests each URL, and selects rows and columns as the data source Infinity
// does. Its root selectors are JSONata or jq, evaluated here by the reference implementation of JSONata and by jq itself. Its columns are
// paths of names with dots.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import jsonata from "jsonata";

type Column = { path: string; type: string };
type Panel = { name: string; url: string; jsonata: string; jq: string; columns: Column[] };

const HEADING = "## Show unlocks and alerts in Grafana";

/** Returns the panels of the table in the recipe. */
function panelsOf(text: string): Panel[] {
  const section = text.split(`${HEADING}\n`)[1]?.split("\n## ")[0];
  assert(section, `docs/how-to.md has no section ${HEADING}`);
  const quoted = (cell: string | undefined): string[] => [...(cell ?? "").matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");
  const panels: Panel[] = [];
  for (const line of section.split("\n").filter((line) => line.includes("| `/api/v1/"))) {
    const [, name, url, root, columns] = line.split("|").map((cell) => cell.trim());
    const [ofJsonata = "", ofJq = ""] = quoted(root);
    const parsed = [...(columns ?? "").matchAll(/`([^`]+)` (\w+)/g)].map(([, path = "", type = ""]) => ({ path, type }));
    panels.push({ name: name ?? "", url: quoted(url)[0] ?? "", jsonata: ofJsonata, jq: ofJq, columns: parsed });
  }
  return panels;
}

function valueAt(row: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((at, name) => (at as Record<string, unknown> | null | undefined)?.[name], row);
}

const isOfType: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  time: (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)),
};

/** Returns the number of panels of the recipe in `docs`, after trying each of them. */
export async function tryRecipe(base: string, token: string, docs: string): Promise<number> {
  const panels = panelsOf(readFileSync(docs, "utf8"));
  assert(panels.length >= 5, `${panels.length} panels`);
  const request = async (url: string): Promise<string> => {
    const response = await fetch(base + url, { headers: { authorization: `Bearer ${token}` } });
    assert.equal(response.status, 200, `${url}: ${response.status}`);
    return response.text();
  };
  for (const panel of panels) {
    const body = await request(panel.url);
    const byJsonata: unknown = panel.jsonata === "" ? JSON.parse(body) : await jsonata(panel.jsonata).evaluate(JSON.parse(body));
    const rows: unknown = JSON.parse(JSON.stringify(byJsonata));
    assert(Array.isArray(rows) && rows.length > 0, `${panel.name}: no rows`);
    const byJq: unknown = JSON.parse(execFileSync("jq", [panel.jq === "" ? "." : panel.jq], { input: body, encoding: "utf8", maxBuffer: 64 << 20 }));
    assert.deepEqual(byJq, rows, `${panel.name}: the selectors of JSONata and jq differ`);
    assert(panel.columns.length > 0, `${panel.name}: no columns`);
    for (const { path, type } of panel.columns) {
      const values = rows.map((row) => valueAt(row, path)).filter((value) => value !== null);
      assert(values.length > 0, `${panel.name}: all values of ${path} are null`);
      const check = isOfType[type];
      assert(check && values.every(check), `${panel.name}: ${path} is not always of the type ${type}`);
    }
  }
  // The variables of the time range, as Grafana writes them.
  const range = `from=${new Date(0).toISOString()}&to=${new Date(Date.now() + 60_000).toISOString()}`;
  for (const list of ["alerts", "changes"]) {
    assert((JSON.parse(await request(`/api/v1/${list}?${range}&limit=200`)) as unknown[]).length > 0, list);
  }
  return panels.length;
}
