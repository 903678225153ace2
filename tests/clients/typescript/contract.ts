// Compares each response with the OpenAPI description, and collects the operations that were called.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import type { Middleware } from "openapi-fetch";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type JsonObject = { [name: string]: Json };

const MAX_ATTEMPTS = 10;
const METHODS = ["get", "post", "put", "patch", "delete"];

function isObject(json: Json | undefined): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

/** Returns the JSON Schema of a schema of OpenAPI 3.0 or 3.1. An object of ours has no fields that are not described. */
function asJsonSchema(schema: Json, isClosed = true): Json {
  if (Array.isArray(schema)) return schema.map((item) => asJsonSchema(item, isClosed));
  if (!isObject(schema)) return schema;
  const { nullable, discriminator, example, ...rest } = schema;
  const parts = Object.entries(rest).map(([name, value]): [string, Json] => {
    if (name === "properties" && isObject(value)) {
      return [name, Object.fromEntries(Object.entries(value).map(([key, one]) => [key, asJsonSchema(one, isClosed)]))];
    }
    return [name, asJsonSchema(value, isClosed)];
  });
  const own: JsonObject = Object.fromEntries(parts);
  if (isClosed && isObject(own["properties"]) && own["additionalProperties"] === undefined) own["unevaluatedProperties"] = false;
  return nullable === true ? { anyOf: [own, { type: "null" }] } : own;
}

/** The description of an API, as its server returns it. */
export class Contract {
  readonly operations: Map<string, JsonObject> = new Map();
  readonly called: Set<string> = new Set();
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true });
  private readonly validators: Map<string, ValidateFunction> = new Map();

  constructor(private readonly document: JsonObject) {
    formats.default(this.ajv);
    this.ajv.addSchema({ $id: "document", components: asJsonSchema(document["components"] ?? {}) });
    for (const [path, methods] of Object.entries(document["paths"] as { [path: string]: JsonObject })) {
      for (const method of METHODS) {
        const operation = methods[method];
        if (isObject(operation)) this.operations.set(`${method} ${path}`, operation);
      }
    }
  }

  /** Returns the operations that no checked response belongs to. */
  uncalled(): string[] {
    return [...this.operations.keys()].filter((operation) => !this.called.has(operation));
  }

  /** Checks the responses of a client. */
  middleware(): Middleware {
    return {
      onResponse: async ({ request, response, schemaPath }) => {
        const name = `${request.method.toLowerCase()} ${schemaPath}`;
        await this.check(name, response);
        this.called.add(name);
        return undefined;
      },
    };
  }

  private async check(name: string, response: Response): Promise<void> {
    const of = `${name}: ${response.status}`;
    const operation = this.operations.get(name);
    assert(operation, `${name} is not in the description`);
    const declared = (operation["responses"] as JsonObject)[String(response.status)];
    assert(declared, `${of} is not in the description`);
    const described = this.resolved(declared);
    const content = described["content"];
    const type = (response.headers.get("content-type") ?? "").split(";")[0] ?? "";
    if (!isObject(content)) {
      assert.equal(await response.clone().text(), "", `${of} has a body`);
      return;
    }
    const schema = content[type];
    assert(isObject(schema), `${of} has the undescribed type ${JSON.stringify(type)}`);
    if (!type.endsWith("json")) return;
    const key = `${of} ${type}`;
    const validate = this.validators.get(key) ?? this.ajv.compile(this.withAbsoluteReferences(asJsonSchema(schema["schema"] ?? {})) as object);
    this.validators.set(key, validate);
    const body: unknown = await response.clone().json();
    assert(validate(body), `${of} differs from the description: ${this.ajv.errorsText(validate.errors).slice(0, 2000)}`);
  }

  private resolved(of: Json): JsonObject {
    assert(isObject(of));
    const reference = of["$ref"];
    if (typeof reference !== "string") return of;
    const found = reference.replace("#/", "").split("/").reduce<Json | undefined>((at, part) => (isObject(at) ? at[part] : undefined), this.document);
    assert(isObject(found), reference);
    return found;
  }

  private withAbsoluteReferences(schema: Json): Json {
    return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')) as Json;
  }
}

/** Requests like `fetch`, and as often as a busy server asks for. */
export async function patientFetch(request: Request): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    const response = await fetch(request.clone());
    if (response.status !== 503 || attempt === MAX_ATTEMPTS) return response;
    await sleep(1000 * Number(response.headers.get("retry-after") ?? 1));
  }
}

type Result<T> = { data?: T; error?: unknown; response: Response };

/** Returns the body of a response with this status. */
export function ok<T>(result: Result<T>, status = 200): T {
  assert.equal(result.response.status, status, `${result.response.url}: ${JSON.stringify(result.error)?.slice(0, 300)}`);
  assert(result.data !== undefined, `${result.response.url}: no body`);
  return result.data;
}

/** Returns the body of an error with this status. */
export function failed<E>(result: { error?: E; response: Response }, status: number): NonNullable<E> {
  assert.equal(result.response.status, status, result.response.url);
  assert(result.error !== undefined && result.error !== null, `${result.response.url}: no error`);
  return result.error;
}
