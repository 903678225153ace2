// Usage: main.js PAGES TOKEN SERVICE KEY RECIPE. Calls every operation of the daemon and of the data service, and fails if one is not called,
// or if a response differs from the description. Then tries the recipe for Grafana in the file RECIPE.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { Contract } from "./contract.js";
import { callDaemon } from "./daemon.js";
import { tryRecipe } from "./grafana.js";
import { callService } from "./service.js";

const [pages, token, service, key, recipe] = process.argv.slice(2);
assert(pages && token && service && key && recipe, "usage: main.js PAGES TOKEN SERVICE KEY RECIPE");
const read = (name: string): Contract => new Contract(JSON.parse(readFileSync(new URL(`../../${name}.json`, import.meta.url), "utf8")));
const [ofDaemon, ofService] = [read("daemon"), read("service")];
await callDaemon(pages, token, ofDaemon);
await callService(service, key, ofService);
for (const contract of [ofDaemon, ofService]) assert.deepEqual(contract.uncalled(), [], "not called");
console.log(`${ofDaemon.operations.size} operations of the daemon and ${ofService.operations.size} of the data service called by typed TypeScript clients`);
console.log(`${await tryRecipe(pages, token, recipe)} panels of the recipe for Grafana tried`);
