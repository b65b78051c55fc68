// 64 GPUs and 5,000 tasks, of invented data: how long an update takes and what the page weighs.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
// @ts-expect-error: a script without types
import { fake } from "../fake/serve.mjs";
import { openBrowser, show, signIn, watch } from "./kit/browser.ts";
import { PATIENCE } from "./kit/places.ts";

const FIRST_LOAD = 120_000;
let browser: Browser;
const server = fake({ gpus: 64, tasks: 5000 });
let origin = "";

beforeAll(async () => {
  browser = await openBrowser();
  origin = `http://127.0.0.1:${await server.listen()}`;
});
afterAll(async () => {
  await browser?.close();
  server.close();
});

it("stays within its budgets with 64 GPUs and 5,000 tasks", async () => {
  const { page, faults } = await watch(browser, origin);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  const own = new Set<string>();
  let weight = 0;
  cdp.on("Network.requestWillBeSent", ({ requestId, request }) => void (request.url.includes("/v1/") || own.add(requestId)));
  cdp.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => void (own.has(requestId) && (weight += encodedDataLength)));
  await signIn(page, `${origin}/#c=once`);
  await cdp.send("Performance.enable");
  const metric = async (name: string): Promise<number> => (await cdp.send("Performance.getMetrics")).metrics.find((m) => m.name === name)?.value ?? 0;
  const updates = async (seconds: number): Promise<number> => {
    const [task, frames] = [await metric("TaskDuration"), seconds];
    await page.waitForTimeout(1000 * seconds);
    return (1000 * ((await metric("TaskDuration")) - task)) / frames;
  };
  await show(page, "fleet");
  await page.waitForSelector("[data-gpu='63']");
  const fleet = await updates(4);
  const began = Date.now();
  await show(page, "queue");
  await page.waitForSelector("tr[data-task]");
  const first = Date.now() - began;
  const queue = await updates(4);
  expect(await page.locator("tr[data-task]").count()).toBeLessThan(200);
  await page.evaluate(() => scrollTo(0, 80_000));
  await page.waitForFunction(() => document.querySelectorAll("tr[data-task]").length > 10 && document.querySelector("tr.spacer") !== null);
  await cdp.send("HeapProfiler.collectGarbage");
  const heap = (await metric("JSHeapUsedSize")) / 1e6;
  console.log(`64 GPUs, 5,000 tasks: ${fleet.toFixed(0)} ms of work a second for the fleet, ${queue.toFixed(0)} for the queue, first row after ${first} ms, heap ${heap.toFixed(1)} MB, first load ${weight} B`);
  expect(fleet).toBeLessThanOrEqual(150 * PATIENCE);
  expect(queue).toBeLessThanOrEqual(150 * PATIENCE);
  expect(heap).toBeLessThanOrEqual(60);
  expect(weight).toBeGreaterThan(50_000);
  expect(weight).toBeLessThanOrEqual(FIRST_LOAD);
  expect(faults).toEqual([]);
});

it("weighs no more after an hour of events", async () => {
  const { page, faults } = await watch(browser, origin);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable");
  const heap = async (): Promise<number> => {
    await cdp.send("HeapProfiler.collectGarbage");
    return ((await cdp.send("Performance.getMetrics")).metrics.find((m) => m.name === "JSHeapUsedSize")?.value ?? 0) / 1e6;
  };
  await signIn(page, `${origin}/#c=once`);
  await show(page, "fleet");
  await page.waitForSelector("[data-gpu='63']");
  const before = await heap();
  const began = Date.now();
  await server.replay(3600);
  await page.waitForSelector(".banner.bad", { timeout: 60_000 });
  const took = (Date.now() - began) / 1000;
  const fleet = await heap();
  await show(page, "queue");
  await page.waitForSelector("tr[data-task]");
  const queue = await heap();
  console.log(`an hour of events in ${took.toFixed(1)} s: heap ${before.toFixed(1)} MB before, ${fleet.toFixed(1)} after, ${queue.toFixed(1)} with the queue`);
  expect(Math.max(fleet, queue)).toBeLessThanOrEqual(60);
  expect(faults).toEqual([]);
});
