// Receives Cliffwatch's webhooks and verifies each: node receiver.mjs whsec_… [PORT]. Node's own library is all it needs.
//
// Prints the address that it listens on, then a line for each message. What is verified, and what to keep from here:
// `verify` over the exact bytes of the body, before anything reads them.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const TOLERANCE_SECONDS = 5 * 60;

/** The message, if `body` was signed with `secret` a short while ago; throws if not. */
export function verify(secret, headers, body) {
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  if (!id || !timestamp || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_SECONDS)) {
    throw new Error("not signed, or too old");
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  // While a secret is being changed there is a signature by each.
  const isOurs = (headers["webhook-signature"] ?? "").split(" ").some((each) => {
    const [version, signature] = each.split(",");
    const given = Buffer.from(signature ?? "", "base64");
    return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!isOurs) throw new Error("signed by somebody else");
  return JSON.parse(body.toString("utf8"));
}

const [secret, port = "0"] = process.argv.slice(2);
const seen = new Set();

const server = createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    let message;
    try {
      message = verify(secret, request.headers, Buffer.concat(chunks));
    } catch (problem) {
      response.writeHead(401).end(problem.message);
      return;
    }
    response.writeHead(204).end();
    // A message may come again where its answer was lost: it has the same id.
    const id = request.headers["webhook-id"];
    if (seen.has(id)) return;
    seen.add(id);
    for (const alert of message.data.alerts) {
      console.log(message.type, alert.id, alert.annotations.summary ?? "");
    }
  });
});
server.listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
