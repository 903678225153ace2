// Receives and verifies webhooks of Cliffwatch: node receiver.mjs whsec_… [PORT]. Needs only the standard library.
//
// Prints the URL that it listens on, then a line for each alert. For your own receiver, copy `verify`, and call it with the exact bytes of
// the body before you parse them.

import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const TOLERANCE_SECONDS = 5 * 60;

/** Returns the message. Throws unless `body` was recently signed with `secret`. */
export function verify(secret, headers, body) {
  const id = headers["webhook-id"];
  const timestamp = headers["webhook-timestamp"];
  if (!id || !timestamp || !(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TOLERANCE_SECONDS)) {
    throw new Error("not signed or too old");
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  // During a rotation there is one signature per secret.
  const isValid = (headers["webhook-signature"] ?? "").split(" ").some((each) => {
    const [version, signature] = each.split(",");
    const given = Buffer.from(signature ?? "", "base64");
    return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!isValid) throw new Error("wrong signature");
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
    } catch (error) {
      response.writeHead(401).end(error.message);
      return;
    }
    response.writeHead(204).end();
    // A message is repeated, with the same id, if the response was lost.
    const id = request.headers["webhook-id"];
    if (seen.has(id)) return;
    seen.add(id);
    for (const alert of message.data.alerts) {
      console.log(message.type, alert.id, alert.annotations.summary ?? "");
    }
  });
});
server.listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
