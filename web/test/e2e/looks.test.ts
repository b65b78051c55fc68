// Every view in two themes and two widths: no console error, no foreign request, no axe finding, no sideways scroll.
// Once on a live daemon, once on invented data that have every kind of GPU and task.
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
// @ts-expect-error: a script without types
import { fake } from "../fake/serve.mjs";
import { axe, openBrowser, show, sidewaysScroll, signIn, watch } from "./kit/browser.ts";
import { Daemon, until } from "./kit/daemon.ts";
import { SHOTS } from "./kit/places.ts";

const VIEWS = ["fleet", "queue", "timeline", "task", "whatif", "savings", "states"];
/** What is there when a view has been drawn. */
const DRAWN: Record<string, string> = {
  fleet: "[data-gpu]",
  queue: "[data-task]",
  timeline: ".timeline svg [data-gpu]",
  task: "[data-fact=energy]",
  whatif: "[data-policy=observed], .empty",
  savings: "[data-saved=gpu_hours], .empty",
  states: ".states",
};

let browser: Browser;
beforeAll(async () => void (browser = await openBrowser()));
afterAll(() => browser?.close());

async function look(kind: string, origin: string, link: () => Promise<string>, task: number, theme: "light" | "dark", width: number): Promise<void> {
  const { page, context, faults } = await watch(browser, origin, { theme, width });
  await signIn(page, await link(), origin);
  const found: string[] = [];
  for (const view of VIEWS) {
    await show(page, view === "task" ? `task/${task}` : view);
    await page.waitForSelector(DRAWN[view]!, { timeout: 60_000 });
    // Charts come with the series, which is asked for after the task.
    if (view === "task") await page.waitForSelector(".uplot canvas", { timeout: 60_000 });
    await page.screenshot({ path: join(SHOTS, `${kind}-${view}-${theme}-${width}.png`), fullPage: true });
    found.push(...(await axe(page)).map((finding) => `${view}: ${finding}`));
    const over = await sidewaysScroll(page);
    if (over > 0) found.push(`${view}: ${over} px too wide`);
  }
  await context.close();
  expect([...found, ...faults]).toEqual([]);
}

const EACH = (["light", "dark"] as const).flatMap((theme) => [1280, 390].map((width) => [theme, width] as const));

describe("on invented data", () => {
  const server = fake({ gpus: 4, tasks: 60 });
  let origin = "";
  beforeAll(async () => void (origin = `http://127.0.0.1:${await server.listen()}`));
  afterAll(() => server.close());
  it.each(EACH)("%s, %i px", async (theme, width) => {
    const task = server.world.tasks.find((t: { ooms: number }) => t.ooms > 0).id;
    await look("fake", origin, async () => `${origin}/#c=once`, task, theme, width);
  });
});

describe("on a live daemon", () => {
  let daemon: Daemon;
  let task: number;
  beforeAll(async () => {
    daemon = await Daemon.start("4xA100-40GB", "--time-scale", "20");
    await daemon.submit("quick", ["--memory", "2G", "--sm", "0.2", "--seconds", "20"], "--gpu-mem", "3G");
    task = await daemon.submit("resnet50", ["--memory", "8G", "--sm", "0.4", "--seconds", "40000"], "--gpu-mem", "9G", "-t", "20:00:00");
    for (let k = 0; k < 3; k++) await daemon.submit(`bert-${k}`, ["--memory", "12G", "--sm", "0.3", "--seconds", "40000"], "--gpu-mem", "14G");
    await daemon.submit("wide", ["--memory", "30G", "--sm", "0.3", "--seconds", "40000"], "--gpu-mem", "36G", "--gpus", "4");
    const token = await daemon.token("read");
    await until("a task to have ended and one to run", async () => {
      const { tasks } = await daemon.get<{ tasks: { id: number; state: string; peak_bytes: number }[] }>("/v1/tasks?all=true", token);
      return tasks.some((t) => t.state === "completed") && tasks.some((t) => t.id === task && t.peak_bytes > 0);
    });
  });
  afterAll(() => daemon?.stop());
  it.each(EACH)("%s, %i px", async (theme, width) => {
    await look("live", daemon.origin, () => daemon.link("act"), task, theme, width);
  });
});
