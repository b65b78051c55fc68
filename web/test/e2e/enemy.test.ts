// What a user writes is text; what a link may not do it cannot.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Listed } from "../../src/api/wire.ts";
import { openBrowser, show, signIn, text, watch } from "./kit/browser.ts";
import { Daemon, until } from "./kit/daemon.ts";

const NAME = `<img src=x onerror="document.title='taken'">`;
let browser: Browser;
let daemon: Daemon;
let id: number;

beforeAll(async () => {
  browser = await openBrowser();
  daemon = await Daemon.start("1xA100-40GB", "--time-scale", "20");
  const script = `printf '\\033]0;title\\007\\033[31mred\\033[0m <script>document.title="taken"</script>\\n<img src=x onerror=alert(1)>\\n\\000\\r10 %%\\r90 %%\\n'; sleep 600`;
  const said = await daemon.coloc("submit", "-J", NAME, "--gpu-mem", "2G", "--", "sh", "-c", script);
  id = Number(/\d+/.exec(said)![0]);
});

afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

describe("an enemy", () => {
  it("calls a task and fills a log with markup and escapes: they stay text", async () => {
    const { page, faults, context } = await watch(browser, daemon.origin);
    await signIn(page, await daemon.link("act"), daemon.origin);
    for (const view of ["fleet", "queue", "timeline", `task/${id}`]) {
      await show(page, view);
      await until(`the name in ${view}`, async () => (await page.textContent("main"))?.includes("<img src=x"));
      expect(await page.locator("main img, main script").count()).toBe(0);
    }
    await until("the log", async () => (await text(page, ".log")).includes("red"));
    const log = await text(page, ".log");
    expect(log).toContain('red <script>document.title="taken"</script>');
    expect(log).toContain("<img src=x onerror=alert(1)>");
    expect(log).toContain("90 %");
    expect(log).not.toContain("\u001b");
    expect(await page.title()).toBe(`coloc · Task ${id}`);
    await page.keyboard.press("/");
    await page.waitForSelector("[role=combobox]:focus");
    await page.keyboard.type("<img");
    await page.waitForSelector("[role=option]");
    expect(await page.locator("[role=option] img").count()).toBe(0);
    expect(faults).toEqual([]);
    await context.close();
  });

  it("uses a link twice, which works once, and leaves no code in the address", async () => {
    const link = await daemon.link("read");
    const first = await watch(browser, daemon.origin);
    await signIn(first.page, link, daemon.origin);
    expect(first.page.url()).not.toContain("c=");
    const again = await watch(browser, daemon.origin);
    await again.page.goto(link.replace(/^https?:\/\/[^/]+/, daemon.origin));
    await again.page.waitForSelector("[role=alert]");
    expect(again.page.url()).not.toContain("c=");
    expect(await again.page.textContent("main")).toContain("coloc web");
    await first.context.close();
    await again.context.close();
  });

  it("may look with a read link and not act", async () => {
    const { page, context } = await watch(browser, daemon.origin);
    await signIn(page, await daemon.link("read"), daemon.origin);
    await show(page, `task/${id}`);
    await page.waitForSelector("[data-fact=where]");
    expect(await page.getByRole("button", { name: "Cancel…" }).count()).toBe(0);
    await page.keyboard.press("c");
    await page.waitForSelector(".toast");
    expect(await page.locator("dialog[open]").count()).toBe(0);
    const token = await page.evaluate(() => sessionStorage.getItem("coloc-token"));
    const refused = await fetch(`${daemon.origin}/v1/tasks/change`, { method: "POST", headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: JSON.stringify({ ids: [id], change: "cancel" }) });
    expect(refused.status).toBe(403);
    expect(((await refused.json()) as { code: string }).code).toBe("read_only");
    await context.close();
  });

  it("cancels with an act link, after a question", async () => {
    const { page, context } = await watch(browser, daemon.origin);
    await signIn(page, await daemon.link("act"), daemon.origin);
    const token = (await page.evaluate(() => sessionStorage.getItem("coloc-token"))) ?? "";
    await show(page, `task/${id}`);
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("button", { name: "Leave it" }).click();
    await until("the question to close", async () => (await page.locator("dialog[open]").count()) === 0);
    expect((await daemon.get<Listed>("/v1/tasks?all=true", token)).tasks.find((t) => t.id === id)?.ended_s).toBeNull();
    await page.keyboard.press("c");
    await page.getByRole("button", { name: "Cancel it" }).click();
    await until("the task to be cancelled", async () => (await text(page, "[data-f=state]")).includes("cancelled"));
    await context.close();
  });
});
