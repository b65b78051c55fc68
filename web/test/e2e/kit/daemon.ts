// A live daemon on emulated GPUs, started, killed and asked by a test.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { BINARY } from "./places.ts";

const run = promisify(execFile);

export async function until<T>(what: string, look: () => Promise<T | null | undefined | false> | T | null | undefined | false, ms = 60_000): Promise<T> {
  const end = Date.now() + ms;
  let last: unknown = null;
  for (;;) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${ms} ms${last ? `; ${String(last)}` : ""}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address ? address.port : 0;
      server.close(() => resolve(port));
    });
  });

export class Daemon {
  private child: ChildProcess | null = null;
  private said = "";

  private constructor(
    readonly folder: string,
    readonly port: number,
    private readonly arguments_: string[],
  ) {}

  static async start(fleet: string, ...more: string[]): Promise<Daemon> {
    const folder = mkdtempSync(join(tmpdir(), "coloc-web-"));
    const daemon = new Daemon(folder, await freePort(), ["--emulate", fleet, ...more]);
    try {
      await daemon.boot();
    } catch (error) {
      await daemon.stop();
      throw error;
    }
    return daemon;
  }

  get socket(): string {
    return join(this.folder, "socket");
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async boot(): Promise<void> {
    const child = spawn(BINARY, ["daemon", ...this.arguments_, "--socket", this.socket, "--state", join(this.folder, "state"), "--web", `127.0.0.1:${this.port}`], { stdio: ["ignore", "pipe", "pipe"] });
    const hear = (part: Buffer): void => void (this.said += part.toString());
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    this.child = child;
    await until(`the daemon to answer\n${this.said}`, async () => {
      if (child.exitCode !== null) throw new Error(`the daemon ended: ${this.said}`);
      await this.coloc("gpus");
      return true;
    });
  }

  async kill(): Promise<void> {
    const child = this.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }

  async stop(): Promise<void> {
    await this.coloc("cancel", "all").catch(() => {});
    const child = this.child;
    if (child && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await Promise.race([gone, new Promise((resolve) => setTimeout(resolve, 10_000))]);
      await this.kill();
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  async coloc(...args: string[]): Promise<string> {
    const { stdout } = await run(BINARY, [...args], { env: { ...process.env, COLOC_SOCKET: this.socket }, cwd: this.folder });
    return stdout;
  }

  /** Submits a trainer and gives its number. */
  async submit(name: string, train: string[], ...options: string[]): Promise<number> {
    const said = await this.coloc("submit", "-J", name, ...options, "--", BINARY, "emu", "train", ...train);
    const id = /\d+/.exec(said);
    if (!id) throw new Error(`no number in: ${said}`);
    return Number(id[0]);
  }

  /** What a program would be told, over the same listener as the page. */
  async get<T>(path: string, token: string): Promise<T> {
    const response = await fetch(`${this.origin}${path}`, { headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** A link that signs a browser in. */
  async link(scope: "read" | "act" = "act"): Promise<string> {
    const said = await this.coloc("web", "--print", `--${scope}`);
    const url = /https?:\/\/\S+/.exec(said);
    if (!url) throw new Error(`no link in: ${said}`);
    return url[0];
  }

  /** A token as the page would get one. */
  async token(scope: "read" | "act" = "act"): Promise<string> {
    const link = await this.link(scope);
    const code = decodeURIComponent(link.split("#c=")[1] ?? "");
    const response = await fetch(`${this.origin}/v1/web/session`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code }) });
    if (!response.ok) throw new Error(`signing in: ${response.status} ${await response.text()}`);
    return ((await response.json()) as { token: string }).token;
  }
}
