// Writes src/api/types.ts from the OpenAPI document: `coloc api | node scripts/types.mjs [--check]`.
// A daemon answers every field that its document names, so none is optional here; unknown is null.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const target = fileURLToPath(new URL("../src/api/types.ts", import.meta.url));

const reference = (ref) => ref.replace("#/components/schemas/", "");

function literal(value) {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}

/** The TypeScript of a JSON schema. */
export function typeOf(schema) {
  if (schema === true || schema === undefined || Object.keys(schema).length === 0) return "unknown";
  if (schema.$ref) return reference(schema.$ref);
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(" | ");
  const union = schema.anyOf ?? schema.oneOf;
  if (union) return [...new Set(union.map(typeOf))].join(" | ");
  if (schema.allOf) return schema.allOf.map(typeOf).join(" & ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(" | ");
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array": {
      const item = typeOf(schema.items ?? true);
      return /[ |&]/.test(item) ? `(${item})[]` : `${item}[]`;
    }
    case "object":
      if (schema.properties) return inline(schema);
      return `Record<string, ${typeOf(schema.additionalProperties ?? true)}>`;
    default:
      return schema.properties ? inline(schema) : "unknown";
  }
}

const key = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name));

function fields(schema, optional) {
  const required = new Set(schema.required ?? []);
  return Object.entries(schema.properties ?? {}).map(([name, value]) => `${key(name)}${optional(name, required) ? "?" : ""}: ${typeOf(value)};`);
}

const inline = (schema) => `{ ${fields(schema, (name, required) => !required.has(name)).join(" ")} }`;

/** What the page may send may be left out; what it is answered is always there. */
function declared(name, schema, answered) {
  const note = schema.description ? `/** ${schema.description.replaceAll("*/", "* /").replaceAll("\n", " ")} */\n` : "";
  if (schema.properties && !schema.anyOf && !schema.oneOf) {
    const lines = fields(schema, (field, required) => !answered && !required.has(field)).map((line) => `  ${line}`);
    return `${note}export interface ${name} {\n${lines.join("\n")}\n}`;
  }
  return `${note}export type ${name} = ${typeOf(schema)};`;
}

/** Names that a schema leads to, itself included. */
function reach(name, schemas, found = new Set()) {
  if (found.has(name) || !schemas[name]) return found;
  found.add(name);
  for (const [, ref] of JSON.stringify(schemas[name]).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)) reach(ref, schemas, found);
  return found;
}

export function generate(document) {
  const schemas = document.components.schemas;
  const sent = new Set();
  for (const path of Object.values(document.paths))
    for (const operation of Object.values(path))
      for (const [, ref] of JSON.stringify(operation.requestBody ?? {}).matchAll(/schemas\/([^"]+)"/g)) reach(ref, schemas, sent);
  const answered = new Set();
  for (const path of Object.values(document.paths))
    for (const operation of Object.values(path))
      for (const [, ref] of JSON.stringify(operation.responses ?? {}).matchAll(/schemas\/([^"]+)"/g)) reach(ref, schemas, answered);
  const head = "// Made from the OpenAPI document by scripts/types.mjs. Not written by hand: `cargo xtask web` makes it again.\n";
  const body = Object.keys(schemas)
    .sort()
    .map((name) => declared(name, schemas[name], answered.has(name) || !sent.has(name)));
  return `${head}\n${body.join("\n\n")}\n`;
}

const main = process.argv[1] === fileURLToPath(import.meta.url);
if (main) {
  const text = generate(JSON.parse(readFileSync(0, "utf8")));
  if (process.argv.includes("--check")) {
    if (readFileSync(target, "utf8") !== text) {
      console.error("web: src/api/types.ts is not what the OpenAPI document says; run `cargo xtask web`");
      process.exit(1);
    }
  } else writeFileSync(target, text);
}
