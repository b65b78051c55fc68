// Everything works by keyboard. On invented data: what is pressed does not depend on a daemon.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
// @ts-expect-error: a script without types
import { fake } from "../fake/serve.mjs";
import { openBrowser, signIn, watch } from "./kit/browser.ts";
import { until } from "./kit/daemon.ts";

let browser: Browser;
let page: Page;
let faults: string[];
const server = fake({ gpus: 4, tasks: 60 });

beforeAll(async () => {
  browser = await openBrowser();
  const origin = `http://127.0.0.1:${await server.listen()}`;
  ({ page, faults } = await watch(browser, origin));
  await signIn(page, `${origin}/#c=once`);
});
afterAll(async () => {
  await browser?.close();
  server.close();
});

const at = (hash: string): Promise<boolean> => until(`the address ${hash}`, () => page.evaluate((h) => location.hash === h, hash), 10_000);
const focused = (): Promise<string | null> => page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset.task ?? null);

it("goes everywhere and asks before it acts", async () => {
  for (const [key, view] of ["fleet", "queue", "timeline", "whatif", "savings"].map((v, k) => [String(k + 1), v] as const)) {
    await page.keyboard.press(key);
    await at(`#/${view}`);
  }
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  await page.keyboard.press("t");
  expect(await page.evaluate(() => document.documentElement.dataset.theme)).not.toBe(theme);
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open] kbd");
  await page.keyboard.press("Escape");
  await until("the help to close", async () => (await page.locator("dialog[open]").count()) === 0);

  await page.keyboard.press("2");
  await page.waitForSelector("tr[data-task]");
  await page.keyboard.press("j");
  const first = await focused();
  await page.keyboard.press("j");
  const second = await focused();
  expect(first).not.toBeNull();
  expect(second).not.toBe(first);
  await page.keyboard.press("k");
  expect(await focused()).toBe(first);
  await page.keyboard.press("Enter");
  await at(`#/task/${first}`);
  await page.keyboard.press("Escape");
  await at("#/queue");

  const waiting = server.world.tasks.find((t: { state: string }) => t.state === "pending").id as number;
  await page.locator(`tr[data-task="${waiting}"]`).focus();
  await page.keyboard.press("w");
  await page.waitForSelector(`[data-why="${waiting}"]`);
  await page.keyboard.press("w");
  await until("why to close", async () => (await page.locator("[data-why]").count()) === 0);
  for (const [key, title] of [["c", "Cancel"], ["h", "Hold"], ["r", "Requeue"]] as const) {
    await page.locator(`tr[data-task="${waiting}"]`).focus();
    await page.keyboard.press(key);
    await page.waitForSelector(`dialog[open][aria-label="${title} task ${waiting}?"]`);
    await page.keyboard.press("Escape");
    await until("the question to close", async () => (await page.locator("dialog[open]").count()) === 0);
  }

  await page.keyboard.press("/");
  await page.keyboard.type(String(waiting));
  await page.waitForSelector("[role=option]");
  await page.keyboard.press("Enter");
  await at(`#/task/${waiting}`);

  await page.keyboard.press("3");
  await page.waitForSelector(".timeline svg [data-gpu]");
  const ticks = (): Promise<string> => page.evaluate(() => [...document.querySelectorAll(".timeline svg > g > text")].map((t) => t.textContent).join());
  const before = await ticks();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("+");
  await until("the timeline to move", async () => (await ticks()) !== before);
  await page.locator(".timeline [data-task]").first().focus();
  await page.keyboard.press("Enter");
  await until("a task", () => page.evaluate(() => location.hash.startsWith("#/task/")));
  expect(faults).toEqual([]);
});
