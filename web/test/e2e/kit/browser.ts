// A browser that notes everything that must not happen.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, type Page, chromium } from "playwright-core";
import { CHROMIUM } from "./places.ts";

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const openBrowser = (): Promise<Browser> => chromium.launch({ executablePath: CHROMIUM, args: FLAGS });

export interface Watched {
  page: Page;
  context: BrowserContext;
  /** Console errors, exceptions, and requests to anywhere but the daemon. */
  faults: string[];
}

export interface Look {
  width?: number;
  theme?: "light" | "dark";
}

export async function watch(browser: Browser, origin: string, look: Look = {}): Promise<Watched> {
  const width = look.width ?? 1280;
  const context = await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 900 }, colorScheme: look.theme ?? "light", reducedMotion: "reduce" });
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) faults.push(`foreign request: ${url}`);
  });
  return { page, context, faults };
}

/** Signs in with a link and waits until the page is live. */
export async function signIn(page: Page, link: string, origin?: string): Promise<void> {
  const url = origin ? link.replace(/^https?:\/\/[^/]+/, origin) : link;
  await page.goto(url);
  await page.waitForSelector("[data-link=live]", { state: "attached", timeout: 60_000 });
}

export async function show(page: Page, view: string): Promise<void> {
  await page.evaluate((hash) => void (location.hash = hash), `#/${view}`);
  await page.waitForFunction((hash) => location.hash === hash, `#/${view}`);
}

export const sidewaysScroll = (page: Page): Promise<number> => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Findings of axe-core, each in a line. */
export async function axe(page: Page): Promise<string[]> {
  await page.evaluate(axeSource);
  return page.evaluate(async () => {
    interface Found {
      id: string;
      nodes: { html: string; failureSummary?: string }[];
    }
    const { violations } = await (window as unknown as { axe: { run(): Promise<{ violations: Found[] }> } }).axe.run();
    return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")}`);
  });
}

export const text = async (page: Page, selector: string): Promise<string> => ((await page.locator(selector).first().textContent()) ?? "").trim();
