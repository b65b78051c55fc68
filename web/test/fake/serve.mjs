// A server of the contract with invented data: `node test/fake/serve.mjs [PORT] [GPUS] [TASKS]`. It serves the embedded page too, with the daemon's policy.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expected, sample, status, world } from "./data.mjs";
import { detail, savings, series, timeline, whatif, why } from "./detail.mjs";

const DIST = fileURLToPath(new URL("../../../crates/coloc-daemon/web-dist", import.meta.url));
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
const LOG = ["resuming from checkpoints/step-690.pt", "step  690/5200  loss 0.8421  0.75 it/s", "\u001b[31mwarning: 212 samples were cut\u001b[0m", "<img src=x onerror=alert(1)>", "step 1728/5200  loss 0.7588  0.76 it/s", ""].join("\n");

export function fake({ gpus = 4, tasks = 60, seed = 1, token = "fake" } = {}) {
  const w = world({ gpus, tasks, seed });
  const listeners = new Set();
  let seq = 0;
  let beat = 0;
  const send = (kind, data) => {
    const text = `event: ${kind}\nid: fake.${++seq}\ndata: ${JSON.stringify(data)}\n\n`;
    for (const l of listeners) l.write(text);
  };
  const timer = setInterval(() => send("sample", sample(w, beat++)), 1000);
  /** What some time brings, as fast as it is read: a look and five changed tasks a second, and a new task every six. In the end a fault says that it is over. */
  const replay = async (seconds) => {
    clearInterval(timer);
    const begun = Date.now() / 1000;
    for (let k = 1; k <= seconds; k++) {
      const at = begun + k;
      send("sample", { ...sample(w, beat++), at_s: at });
      for (let n = 0; n < 5; n++) {
        const t = w.tasks[(5 * k + n) % w.tasks.length];
        send("task", { ...t, peak_bytes: t.peak_bytes + k, ...(n === 0 && t.started_s !== null ? { state: "completed", ended_s: at, exit_code: 0 } : {}) });
      }
      if (k % 6 === 0) send("task", { ...w.tasks.at(-1), id: 1_000_000 + k, name: `later-${k}`, submitted_s: at });
      if (k % 20 === 0) await Promise.all([...listeners].filter((l) => l.writableNeedDrain).map((l) => new Promise((resolve) => l.once("drain", resolve))));
    }
    send("status", { now_s: begun + seconds, faults: [{ word: "over", text: "The replay is over." }] });
  };
  const json = (res, value, code = 200) => res.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(value));
  const refuse = (res, code, word, error) => json(res, { schema: 1, error, code: word }, code);
  const api = (req, res, url, body) => {
    const q = (name, otherwise) => Number(url.searchParams.get(name) ?? otherwise);
    const path = url.pathname.slice(3);
    if (path === "/web/session") return body.code === "once" ? json(res, { token, scope: "act", user: "ana", expires_s: 0 }) : refuse(res, 403, "no_code", "The code was used, or is older than a minute.");
    if (req.headers.authorization !== `Bearer ${token}`) return refuse(res, 401, "no_token", "No token, or one that has ended.");
    if (path === "/status") return json(res, { ...status(w), seq });
    if (path === "/tasks") return json(res, { schema: 1, tasks: w.tasks });
    if (path === "/gpus") return json(res, { schema: 1, emulated: true, gpus: w.gpus });
    if (path === "/expected") return json(res, { schema: 1, at_s: w.now, tasks: expected(w) });
    if (path === "/series") return json(res, { schema: 1, series: url.searchParams.get("of").split(",").map((of) => series(w, of, q("from_s"), q("to_s"), q("points", 600))) });
    if (path === "/timeline") return json(res, timeline(w, q("from_s"), q("to_s"), Date.now() / 1000, expected(w)));
    if (path === "/whatif") return json(res, { schema: 1, job: JSON.stringify(body), done: 0, of: 4 }, 202);
    if (path.startsWith("/whatif/")) return json(res, whatif(JSON.parse(decodeURIComponent(path.slice(8)))));
    if (path === "/savings") return json(res, savings());
    if (path === "/tasks/change") return json(res, { schema: 1, done: body.ids, refused: [] });
    if (path === "/events") {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(`retry: 1000\nevent: hello\ndata: ${JSON.stringify({ epoch: "fake", seq, schema: 1, now_s: Date.now() / 1000 })}\n\n`);
      listeners.add(res);
      return res.on("close", () => listeners.delete(res));
    }
    const one = /^\/tasks\/(\d+)(\/\w+)?$/.exec(path);
    const t = one ? w.tasks.find((v) => v.id === Number(one[1])) : undefined;
    if (!t) return refuse(res, 404, "no_such_task", "There is no such task.");
    if (one[2] === "/why") return json(res, why(w, t));
    if (one[2] === "/log") return t.user === "ana" ? res.writeHead(200, { "content-type": "application/octet-stream" }).end(LOG) : refuse(res, 403, "not_yours", `The log is ${t.user}'s.`);
    return json(res, detail(w, t));
  };
  const files = new Map(JSON.parse(readFileSync(join(DIST, "manifest.json"), "utf8")).files.map((f) => [f.path, f]));
  const page = (res, path) => {
    const file = files.get(path === "/" ? "/index.html" : path);
    if (!file) return res.writeHead(404).end();
    return res.writeHead(200, { "content-type": file.type, "content-encoding": "gzip", "content-security-policy": CSP, "x-content-type-options": "nosniff" }).end(readFileSync(join(DIST, file.file)));
  };
  const server = createServer((req, res) => {
    const url = new URL(req.url, "http://localhost");
    if (!url.pathname.startsWith("/v1/")) return page(res, url.pathname);
    let text = "";
    req.on("data", (part) => (text += part));
    req.on("end", () => api(req, res, url, text ? JSON.parse(text) : {}));
  });
  return {
    world: w,
    send,
    replay,
    server,
    listen: (port = 0) => new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server.address().port))),
    close: () => {
      clearInterval(timer);
      server.closeAllConnections();
      server.close();
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [port = "7451", gpus = "4", tasks = "60"] = process.argv.slice(2);
  const at = await fake({ gpus: Number(gpus), tasks: Number(tasks) }).listen(Number(port));
  console.log(`http://127.0.0.1:${at}/#c=once`);
}
