// What a view shows is what the interface says, field by field. Both move while tasks run, so they are compared until they agree.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Foreseen, GpuView, Gpus, Listed, Savings, StatusView, TaskDetail, TaskView, Timeline, WhatIf } from "../../src/api/wire.ts";
import { clock, duration, energy, fixed, gib, gibNumber, percent, span, times, whole } from "../../src/model/format.ts";
import { foreignBytes, freeBytes, residentUsed, sharingText } from "../../src/model/memory.ts";
import { reasonText } from "../../src/model/queue.ts";
import { itemsOf } from "../../src/model/timeline.ts";
import { openBrowser, show, signIn, watch } from "./kit/browser.ts";
import { Daemon, until } from "./kit/daemon.ts";

let browser: Browser;
let daemon: Daemon;
let token: string;
let page: Page;
const now = (): number => Date.now() / 1000;

beforeAll(async () => {
  browser = await openBrowser();
  daemon = await Daemon.start("2xA100-40GB", "--time-scale", "20");
  await daemon.submit("ended", ["--memory", "2G", "--sm", "0.2", "--seconds", "20"], "--gpu-mem", "3G");
  await daemon.submit("first", ["--memory", "8G", "--sm", "0.4", "--seconds", "80000"], "--gpu-mem", "9G", "-t", "30:00:00");
  await daemon.submit("second", ["--memory", "11G", "--sm", "0.3", "--seconds", "80000"], "--gpu-mem", "12G");
  await daemon.submit("third", ["--memory", "11G", "--sm", "0.3", "--seconds", "80000"], "--gpu-mem", "13G");
  await daemon.submit("both", ["--memory", "30G", "--sm", "0.3", "--seconds", "400"], "--gpu-mem", "35G", "--gpus", "2");
  await daemon.submit("held", ["--memory", "1G", "--sm", "0.1", "--seconds", "400"], "--gpu-mem", "2G", "--hold");
  token = await daemon.token("read");
  await until("tasks to settle", async () => {
    const { tasks } = await daemon.get<Listed>("/v1/tasks?all=true", token);
    return tasks.filter((t) => t.state === "running" && t.peak_bytes > 2 ** 30).length >= 3 && tasks.some((t) => t.state === "completed");
  });
  const watched = await watch(browser, daemon.origin);
  page = watched.page;
  await signIn(page, await daemon.link("act"), daemon.origin);
});

afterAll(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** Texts of all fields below elements, by a key. */
const fields = (selector: string, key: string): Promise<Record<string, Record<string, string>>> =>
  page.evaluate(
    ([where, name]) => {
      const all: Record<string, Record<string, string>> = {};
      for (const element of document.querySelectorAll<HTMLElement>(where!)) {
        const found: Record<string, string> = {};
        for (const f of element.querySelectorAll<HTMLElement>("[data-f]")) found[f.dataset.f!] ??= (f.textContent ?? "").trim();
        all[element.dataset[name!]!] = found;
      }
      return all;
    },
    [selector, key],
  );

/** Compares until nothing differs; what differs last is what the test fails with. */
async function agree(what: string, compare: () => Promise<[string, string | undefined, string][]>): Promise<void> {
  let differ: string[] = ["not compared"];
  let compared = 0;
  await until(
    what,
    async () => {
      const rows = await compare();
      compared = rows.length;
      differ = rows.filter(([, shown, said]) => shown !== said).map(([field, shown, said]) => `${field}: shown ${shown}, said ${said}`);
      return differ.length === 0 && compared > 0;
    },
    30_000,
  ).catch(() => {});
  expect(differ).toEqual([]);
  expect(compared).toBeGreaterThan(0);
}

describe("each view equals the interface", () => {
  it("fleet", async () => {
    await show(page, "fleet");
    await page.waitForSelector("[data-gpu]");
    await agree("the fleet", async () => {
      const { gpus } = await daemon.get<Gpus>("/v1/gpus", token);
      const shown = await fields("article[data-gpu]", "gpu");
      const residents = await fields("[data-resident]", "resident");
      return gpus.flatMap((g: GpuView) => {
        const s = shown[g.index] ?? {};
        const rows: [string, string | undefined, string][] = [
          ["sharing", s.sharing, sharingText(g)],
          ["power", s.power, whole(g.power_w)],
          ["temperature", s.temperature, whole(g.temperature_c)],
          ["used", s.used, gib(residentUsed(g))],
          ["promised", s.promised, gib(g.memory_promised_bytes)],
          ["free", s.free, gib(freeBytes(g))],
          ["smact", s.smact, `${percent(g.smact)} %`],
          ["smocc", s.smocc, g.smocc == null ? "not seen" : `${percent(g.smocc)} %`],
          ["drama", s.drama, g.drama == null ? "not seen" : `${percent(g.drama)} %`],
          ["foreign", s.foreign, foreignBytes(g) > 0 ? gib(foreignBytes(g)) : (undefined as never)],
          ["verdict has the text", String((s.verdict ?? "").includes(g.verdict.text.slice(-12))), "true"],
        ];
        for (const r of g.residents) rows.push([`${r.id} used`, residents[r.id]?.used, gib(r.used_bytes)], [`${r.id} promised`, residents[r.id]?.promised, gib(r.promised_bytes)], [`${r.id} slowdown`, residents[r.id]?.slowdown, times(r.slowdown)]);
        return rows.map(([field, a, b]) => [`GPU ${g.index} ${field}`, a, b] as [string, string | undefined, string]);
      });
    });
  });

  it("figures above the fleet", async () => {
    await agree("the figures", async () => {
      const [{ tasks }, { gpus }, status] = await Promise.all([daemon.get<Listed>("/v1/tasks?all=true", token), daemon.get<Gpus>("/v1/gpus", token), daemon.get<StatusView>("/v1/status", token)]);
      const shown = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll<HTMLElement>("[data-figure]")].map((f) => [f.dataset.figure, (f.querySelector("dd")?.firstChild?.textContent ?? "").trim()])));
      const sum = (pick: (g: GpuView) => number | null): number => gpus.reduce((a, g) => a + (pick(g) ?? 0), 0);
      return [
        ["running", shown.running, whole(tasks.filter((t) => t.state === "running").length)],
        ["waiting", shown.waiting, whole(tasks.filter((t) => t.state === "pending").length)],
        ["memory", shown.memory, whole(gibNumber(sum((g) => g.memory_used_bytes)))],
        ["power", shown.power, fixed(sum((g) => g.power_w) / 1000, 2)],
        ["ooms", shown.ooms, whole(status.ooms_today)],
      ];
    });
  });

  it("queue", async () => {
    await show(page, "queue");
    await page.waitForSelector("tr[data-task]");
    await agree("the queue", async () => {
      const [{ tasks }, { tasks: foreseen }] = await Promise.all([daemon.get<Listed>("/v1/tasks?all=true", token), daemon.get<Foreseen>("/v1/expected", token)]);
      const shown = await fields("tr[data-task]", "task");
      const by = new Map(foreseen.map((e) => [e.id, e]));
      const open = tasks.filter((t) => t.ended_s == null);
      const count: [string, string | undefined, string] = ["rows", String(Object.keys(shown).length), String(open.length)];
      return [count, ...open.flatMap((t) => queueRow(t, shown[t.id] ?? {}, by.get(t.id)))];
    });
  });

  it("ended tasks", async () => {
    await page.click("[data-filter=ended]");
    await agree("what has ended", async () => {
      const { tasks } = await daemon.get<Listed>("/v1/tasks?all=true", token);
      const shown = await fields("tr[data-task]", "task");
      return tasks.filter((t) => t.ended_s != null).flatMap((t) => {
        const s = shown[t.id] ?? {};
        return [
          [`${t.id} name`, s.name, t.name],
          [`${t.id} peak`, s.peak, gib(t.peak_bytes)],
          [`${t.id} ends`, s.ends, clock(t.ended_s, now())],
          [`${t.id} for`, s.for, span((t.ended_s ?? 0) - (t.started_s ?? 0))],
        ] as [string, string | undefined, string][];
      });
    });
    await page.click("[data-filter=all]");
  });

  it("timeline", async () => {
    await show(page, "timeline");
    await page.waitForSelector(".timeline svg [data-task]");
    await agree("the timeline", async () => {
      const from = now() - 7200;
      const to = now() + 7200;
      const t = await daemon.get<Timeline>(`/v1/timeline?from_s=${from}&to_s=${to}`, token);
      const shown = await page.evaluate(() => [...document.querySelectorAll<SVGElement>(".timeline svg g[data-gpu]")].map((g) => [g.getAttribute("data-gpu"), [...g.querySelectorAll("[data-task]")].map((b) => `${b.getAttribute("data-task")}${b.getAttribute("data-kind")}`).sort().join()] as const));
      return shown.map(([gpu, tasks]) => [`GPU ${gpu}`, tasks, itemsOf(Number(gpu), t, from, to).filter((i) => i.task !== null).map((i) => `${i.task}${i.kind}`).sort().join()]);
    });
  });

  it("a task", async () => {
    const { tasks } = await daemon.get<Listed>("/v1/tasks?all=true", token);
    const id = tasks.find((t) => t.name === "first")!.id;
    await show(page, `task/${id}`);
    await page.waitForSelector("[data-fact=energy]");
    await agree("the task", async () => {
      const d = await daemon.get<TaskDetail>(`/v1/tasks/${id}`, token);
      const shown = await page.evaluate(() => ({
        facts: Object.fromEntries([...document.querySelectorAll<HTMLElement>("[data-fact]")].map((f) => [f.dataset.fact, (f.querySelector("dd")?.textContent ?? "").trim()])),
        story: document.querySelectorAll(".story > li").length,
        name: document.querySelector("h1")?.textContent ?? "",
        rejected: document.querySelectorAll(".story tr").length,
      }));
      return [
        ["name", shown.name, `${d.id} ${d.name}`],
        ["where", String(shown.facts.where?.startsWith(`GPU ${d.gpu_ids.join(", ")}`)), "true"],
        ["memory", shown.facts.memory, `${gib(d.used_bytes)} of ${gib(d.promised_bytes)} GiB`],
        ["energy", shown.facts.energy, energy(d.energy_j).join(" ").trim()],
        ["story", String(shown.story), String(d.story.length + d.decisions.length + 1)],
        ["decisions' GPUs", String(shown.rejected), String(d.decisions.reduce((n, x) => n + Math.min(8, x.gpus.length), 0))],
      ];
    });
  });

  it("what if", async () => {
    await show(page, "whatif");
    await page.waitForSelector("[data-policy=observed]", { timeout: 60_000 });
    const shown = await fields("[data-policy]", "policy");
    const w = await jobAnswer<WhatIf>("/v1/whatif", { since_s: now() - 7 * 86_400, user: null, fleet: null, policies: ["exclusive"] });
    expect(shown.observed?.jct_mean_s).toBe(duration(w.observed.jct_mean_s).join(" "));
    expect(shown.observed?.oom_count).toBe(whole(w.observed.oom_count));
    expect(shown.exclusive?.jct_mean_s).toBe(duration(w.rows[0]?.jct_mean_s).join(" "));
  });

  it("savings", async () => {
    await show(page, "savings");
    await page.waitForSelector("[data-saved=gpu_hours]", { timeout: 60_000 });
    const s = await jobAnswer<Savings>(`/v1/savings?since_s=${now() - 30 * 86_400}`, null);
    const shown = await fields("[data-user]", "user");
    const figures = (f: Record<string, string>): string[] => [f.tasks ?? "", f.energy_j ?? ""];
    expect(Object.fromEntries(Object.entries(shown).map(([user, f]) => [user, figures(f)]))).toEqual(Object.fromEntries(s.by_user.map((u) => [u.user, [whole(u.tasks), energy(u.energy_j).join(" ")]])));
  });
});

it("the output of the attempt that was chosen", async () => {
  const { tasks } = await daemon.get<Listed>("/v1/tasks", token);
  const id = tasks.find((t) => t.name === "third")!.id;
  await daemon.coloc("requeue", String(id));
  await until("a second attempt", async () => {
    const d = await daemon.get<TaskDetail>(`/v1/tasks/${id}`, token);
    return d.attempts === 2 && d.state === "running";
  });
  await show(page, `task/${id}`);
  await page.waitForSelector("[data-log][data-shows='2'] select");
  await page.selectOption("[data-log] select", "1");
  await page.waitForSelector("[data-log][data-shows='1'] .log");
  const response = await fetch(`${daemon.origin}/v1/tasks/${id}/log?attempt=1`, { headers: { authorization: `Bearer ${token}` } });
  const said = (await response.text()).trimEnd().split("\n");
  expect(response.headers.get("x-attempt")).toBe("1");
  await until("the first attempt's last line", async () => (await page.locator(".log > div").last().textContent()) === said.at(-1));
});

async function jobAnswer<T>(path: string, body: unknown): Promise<T> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  let response = await fetch(`${daemon.origin}${path}`, body === null ? { headers } : { method: "POST", headers, body: JSON.stringify(body) });
  while (response.status === 202) {
    const { job } = (await response.json()) as { job: string };
    await new Promise((resolve) => setTimeout(resolve, 200));
    response = await fetch(`${daemon.origin}${body === null ? path : `${path}/${job}`}`, { headers });
  }
  return (await response.json()) as T;
}

function queueRow(t: TaskView, s: Record<string, string>, e: { expected_start_s: number | null; expected_end_s: number | null } | undefined): [string, string | undefined, string][] {
  const waits = t.state === "pending";
  const rows: [string, string | undefined, string][] = [
    ["id", s.id, t.array_id == null ? String(t.id) : `${t.array_id}_${t.array_index}`],
    ["name", s.name, t.name],
    ["user", s.user, t.user],
    ["estimate", s.estimate, gib(t.estimate_bytes)],
    ["peak", s.peak, waits ? "–" : gib(t.peak_bytes)],
    ["starts", s.starts, waits ? clock(e?.expected_start_s, now()) : clock(t.started_s, now())],
    ["ends", s.ends, e?.expected_end_s != null ? clock(e.expected_end_s, now()) : waits && !e?.expected_start_s ? "–" : "unknown"],
  ];
  rows.push(waits ? ["why", s.where, reasonText(t)] : ["where", String((s.where ?? "").startsWith(`GPU ${t.gpu_ids.join(", ")}`)), "true"]);
  return rows.map(([field, a, b]) => [`${t.id} ${field}`, a, b]);
}
