// Puts the built page where the daemon embeds it: compressed, with a list and the licences of what is in it.
// `pack.mjs write` writes crates/coloc-daemon/web-dist; `pack.mjs compare` fails if that is not what was built.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";

const web = fileURLToPath(new URL("..", import.meta.url));
const built = join(web, "dist");
const kept = join(web, "../crates/coloc-daemon/web-dist");
/** The most that a first load may weigh, compressed. */
const MOST = 120_000;
/** What is in the bundle. A package that is bundled and not named here fails the build. */
const BUNDLED = ["preact", "@preact/signals", "@preact/signals-core", "uplot"];

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8" };

function fail(why) {
  console.error(`web: ${why}`);
  process.exit(1);
}

function files(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? files(join(folder, entry.name)) : [join(folder, entry.name)]))
    .sort();
}

function licences() {
  const declared = Object.keys(JSON.parse(readFileSync(join(web, "package.json"), "utf8")).dependencies);
  for (const name of declared) if (!BUNDLED.includes(name)) fail(`${name} is bundled, but scripts/pack.mjs does not ship its licence`);
  const parts = BUNDLED.map((name) => {
    const folder = join(web, "node_modules", name);
    const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const licence = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    if (!licence) fail(`${name} has no licence file`);
    return `${name} ${about.version} (${about.license})\n\n${readFileSync(join(folder, licence), "utf8").trim()}\n`;
  });
  return Buffer.from(`What the page of coloc is made of besides coloc itself.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`);
}

function contents() {
  const all = new Map(files(built).map((file) => [`/${relative(built, file).split("\\").join("/")}`, readFileSync(file)]));
  all.set("/THIRD-PARTY.txt", licences());
  return new Map([...all].sort(([a], [b]) => (a < b ? -1 : 1)));
}

const hash = (bytes) => createHash("sha256").update(bytes).digest("hex");
// The header's time is 0 and its level is fixed; the byte for the system is set so that it is the same everywhere.
function compress(bytes) {
  const packed = gzipSync(bytes, { level: 9 });
  packed[9] = 255;
  return packed;
}

function list(all) {
  const rows = [...all].map(([path, bytes]) => ({
    path,
    file: `${path.slice(1)}.gz`,
    type: TYPES[path.slice(path.lastIndexOf("."))] ?? fail(`${path} has no known type`),
    bytes: bytes.length,
    sha256: hash(bytes),
    // Names in /assets/ have a hash of what is in them, so they may be kept for ever.
    immutable: path.startsWith("/assets/"),
  }));
  return `${JSON.stringify({ files: rows }, null, 2)}\n`;
}

function weigh(all) {
  const first = [...all].filter(([path]) => path !== "/THIRD-PARTY.txt");
  const weight = first.reduce((sum, [, bytes]) => sum + compress(bytes).length, 0);
  if (weight > MOST) fail(`a first load is ${weight} bytes compressed, at most ${MOST}`);
  console.log(`web: a first load is ${weight} bytes compressed, of ${MOST}`);
}

function write(all) {
  rmSync(kept, { recursive: true, force: true });
  for (const [path, bytes] of all) {
    const file = join(kept, `${path}.gz`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, compress(bytes));
  }
  writeFileSync(join(kept, "manifest.json"), list(all));
}

function compare(all) {
  if (!existsSync(kept)) fail("crates/coloc-daemon/web-dist is not there; run `cargo xtask web`");
  const differ = [];
  for (const [path, bytes] of all) {
    const file = join(kept, `${path}.gz`);
    if (!existsSync(file) || !statSync(file).isFile() || !gunzipSync(readFileSync(file)).equals(bytes)) differ.push(path);
  }
  for (const file of files(kept)) {
    const path = `/${relative(kept, file)}`.replace(/\.gz$/, "");
    if (path !== "/manifest.json" && !all.has(path)) differ.push(`${path} (left over)`);
  }
  if (readFileSync(join(kept, "manifest.json"), "utf8") !== list(all)) differ.push("/manifest.json");
  if (differ.length > 0) fail(`the page that is embedded is not the one that was built: ${differ.join(", ")}; run \`cargo xtask web\``);
  console.log("web: the embedded page is the one that was built");
}

const all = contents();
weigh(all);
if (process.argv[2] === "write") write(all);
else if (process.argv[2] === "compare") compare(all);
else fail("say `write` or `compare`");
