// Calls every operation of the data service, as a customer of the API does.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import { type Contract, failed, ok, patientFetch } from "./contract.js";
import type { paths } from "./generated/service.js";

/** A response with rows or an object in `data`. */
type Answer = { data?: { data: unknown; metadata: { queryDate: string; credit?: { used: number } } }; error?: unknown; response: Response };

export async function callService(url: string, key: string, contract: Contract): Promise<void> {
  // The description sets `explode: false`, which is not part of the types.
  const querySerializer = { array: { style: "form", explode: false } } as const;
  const client = createClient<paths>({ baseUrl: url, fetch: patientFetch, headers: { "x-api-key": key }, querySerializer });
  client.use(contract.middleware());
  const lists = [
    ok(await client.GET("/v1/token/list")).data,
    ok(await client.GET("/v2/token/list")).data,
    ok(await client.GET("/v3/token/list")).data,
    ok(await client.GET("/v4/token/list")).data,
    ok(await client.GET("/v5/token/list")).data,
  ];
  assert(lists.every((list, at) => list.length >= (lists[at - 1]?.length ?? 1)), "each version lists the tokens of the one before");
  // One token of each listing method: older versions return 404 for tokens that they do not cover.
  const examples = ["arbitrum"];
  const methods = new Set<unknown>();
  for (const token of lists.at(-1) ?? []) {
    const method = "listedMethod" in token ? token.listedMethod : null;
    if (token.id !== null && !methods.has(method)) examples.push(token.id);
    methods.add(method);
  }
  await callUnlocks(client, examples);

  const upcoming = ok(await client.GET("/v5/unlock/events/upcoming", { params: { query: { minMarketCap: 1e6, pageSize: 3 } } }));
  assert(upcoming.metadata.pageSize === 3 && upcoming.metadata.total >= upcoming.data.length, JSON.stringify(upcoming.metadata));
  ok(await client.GET("/v1/unlock/events/upcoming", { params: { query: { minMarketCap: 1e6 } } }));
  const investors = ok(await client.GET("/v5/fundraising/investors/list", { params: { query: { pageSize: 5 } } })).data;
  assert(ok(await client.GET("/v1/fundraising/investors/list")).data.length >= investors.length);
  const id = investors[0]?.investorId;
  assert(typeof id === "string", "investors");
  for (const answer of [
    await client.GET("/v1/fundraising/investors/{id}", { params: { path: { id } } }),
    await client.GET("/v5/fundraising/investors/{id}", { params: { path: { id }, query: { raisedAmountMin: 1 } } }),
  ]) {
    const investor = ok(answer).data;
    assert(investor.investorId === id && (investor.fundingRounds?.length ?? 0) > 0, id);
  }
  const error = failed(await client.GET("/v5/unlock/events/{id}", { params: { path: { id: "nothing" } } }), 404);
  assert(error.status === false && error.statusCode === 404 && (error.metadata?.credit.used ?? 0) > 0, JSON.stringify(error));
  const anonymous = createClient<paths>({ baseUrl: url, fetch: patientFetch });
  anonymous.use(contract.middleware());
  assert.equal(failed(await anonymous.GET("/v5/token/list"), 401).statusCode, 401);
}

async function callUnlocks(client: ReturnType<typeof createClient<paths>>, examples: string[]): Promise<void> {
  const calls: ((id: string) => Promise<Answer>)[] = [
    (tokenId) => client.GET("/v1/unlock/events", { params: { query: { tokenId } } }),
    (tokenId) => client.GET("/v2/unlock/events", { params: { query: { tokenId } } }),
    (tokenId) => client.GET("/v3/unlock/events", { params: { query: { tokenId } } }),
    (tokenId) => client.GET("/v4/unlock/events", { params: { query: { tokenId } } }),
    (id) => client.GET("/v5/unlock/events/{id}", { params: { path: { id } } }),
    (tokenId) => client.GET("/v1/daily-emission", { params: { query: { tokenId } } }),
    (tokenId) => client.GET("/v2/daily-emission", { params: { query: { tokenId } } }),
    (id) => client.GET("/v5/daily-emission/{id}", { params: { path: { id } } }),
    (tokenId) => client.GET("/v1/emission", { params: { query: { tokenId } } }),
    (tokenId) => client.GET("/v2/emission", { params: { query: { tokenId } } }),
    (tokenId) => client.GET("/v3/emission", { params: { query: { tokenId } } }),
    (tokenId) => client.GET("/v1/allocations", { params: { query: { tokenId } } }),
    (tokenId) => client.GET("/v2/allocations", { params: { query: { tokenId } } }),
    (id) => client.GET("/v5/allocations/{id}", { params: { path: { id } } }),
    (id) => client.GET("/v1/burn/{id}", { params: { path: { id } } }),
    (id) => client.GET("/v5/burn/{id}", { params: { path: { id } } }),
    (id) => client.GET("/v1/buyback/{id}", { params: { path: { id } } }),
    (id) => client.GET("/v5/buyback/{id}", { params: { path: { id } } }),
    (id) => client.GET("/v1/fundraising/token/{id}", { params: { path: { id } } }),
    (id) => client.GET("/v5/fundraising/token/{id}", { params: { path: { id } } }),
  ];
  const notFound: string[] = [];
  for (const call of calls) {
    const answers: Answer[] = [];
    for (const example of examples) {
      const answer = await call(example);
      answers.push(answer);
      if (answer.response.status !== 404) break;
    }
    const last = answers.at(-1);
    assert(last);
    if (last.response.status === 404) notFound.push(new URL(last.response.url).pathname);
    else {
      // The weekly emission of the vendor shows no credits.
      const { queryDate, credit } = ok(last).metadata;
      assert(Date.parse(queryDate) > 0 && (credit === undefined || credit.used > 0), last.response.url);
    }
  }
  assert.deepEqual(notFound, [], "no example has data");

  const events = ok(await client.GET("/v5/unlock/events/{id}", { params: { path: { id: "arbitrum" }, query: { pageSize: 2, standardAllocation: ["community", "founderTeam"] } } }));
  assert(events.data.length === 2 && events.metadata.total > 2, JSON.stringify(events.metadata));
  assert(events.data.every((event) => Date.parse(event.unlockDate ?? "") > 0 && (event.cliffUnlocks?.cliffAmount ?? 0) > 0), JSON.stringify(events.data));
}
