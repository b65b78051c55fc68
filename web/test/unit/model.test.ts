import { describe, expect, it } from "vitest";
import type { GpuView, TaskView, Timeline, WhyView } from "../../src/api/wire.ts";
import { alignTo, spread } from "../../src/model/chart.ts";
import { assignHues } from "../../src/model/hues.ts";
import { appendLog, KEPT_LOG, logLines, readableLine } from "../../src/model/log.ts";
import { bulletScale, freeBytes, migSlices, stackSegments } from "../../src/model/memory.ts";
import { counts, foldArrays, groups, idText, whatWouldHelp } from "../../src/model/queue.ts";
import { roundUp, sparkPoints, ticks, timeTicks } from "../../src/model/scale.ts";
import { search } from "../../src/model/search.ts";
import { asText, commandText, storyOf } from "../../src/model/story.ts";
import { around, bands, itemsOf, packLanes, pan, spanSince, zoom } from "../../src/model/timeline.ts";
import { doneWithin } from "../../src/model/whatif.ts";
import { visible } from "../../src/model/window.ts";
import { parseRoute } from "../../src/route.ts";

const GIB = 2 ** 30;
const task = (id: number, more: Partial<TaskView> = {}): TaskView =>
  ({ id, name: `t${id}`, user: "ana", state: "pending", reason: null, gpus: 1, gpu_ids: [], submitted_s: 0, started_s: null, ended_s: null, priority: 0, position: null, array_id: null, peak_bytes: 0, ooms: 0, ...more }) as TaskView;

describe("hues", () => {
  it("gives the reader blue and the four who hold most a hue each", () => {
    const hues = assignHues(new Map(), "ana", new Map([["ana", 1], ["ben", 9], ["chen", 8], ["dara", 7], ["emil", 6], ["fay", 5]]));
    expect(hues.get("ana")).toBe("you");
    expect(["ben", "chen", "dara", "emil"].map((u) => hues.get(u))).toEqual(["u1", "u2", "u3", "u4"]);
    expect(hues.has("fay")).toBe(false);
  });
  it("keeps hues when two people change places, and takes one from the last for a newcomer who holds most", () => {
    const before = assignHues(new Map(), "", new Map([["a", 4], ["b", 3], ["c", 2], ["d", 1]]));
    expect(assignHues(before, "", new Map([["b", 4], ["a", 3], ["c", 2], ["d", 1]]))).toEqual(before);
    const after = assignHues(before, "", new Map([["new", 9], ["a", 4], ["b", 3], ["c", 2], ["d", 1]]));
    expect(after.get("new")).toBe("u4");
    expect(after.has("d")).toBe(false);
  });
});

describe("memory", () => {
  const gpu = { index: 0, memory_total_bytes: 40 * GIB, memory_promised_bytes: 20 * GIB, residents: [{ id: 1, name: "a", user: "u", promised_bytes: 12 * GIB, used_bytes: 14 * GIB }, { id: 2, name: "b", user: "u", promised_bytes: 8 * GIB, used_bytes: 2 * GIB }], foreign: [{ pid: 7, user: "g", bytes: 3 * GIB, name: "x" }], foreign_bytes: 4 * GIB } as unknown as GpuView;
  it("lays tasks from the left and what is not ours from the right", () => {
    const { own, foreign } = stackSegments(gpu);
    expect(own.map((s) => [s.from / GIB, s.width / GIB])).toEqual([[0, 14], [14, 8]]);
    expect(foreign.map((s) => [s.from / GIB, s.width / GIB])).toEqual([[37, 3], [36, 1]]);
    expect(freeBytes(gpu) / GIB).toBe(16);
  });
  it("shows which slices no instance can reach", () => {
    const mig = { ...gpu, instances: [{ profile: "3g.20gb", start_slice: 0, slices: 4, memory_bytes: 20 * GIB, task: 1 }, { profile: "2g.10gb", start_slice: 4, slices: 2, memory_bytes: 10 * GIB, task: null }] } as GpuView;
    const { slices, unreachable } = migSlices(mig);
    expect(slices.map((s) => [s.at, s.width, s.profile])).toEqual([[0, 4, "3g.20gb"], [4, 2, "2g.10gb"], [6, 2, null]]);
    expect(unreachable / GIB).toBe(10);
  });
  it("takes one scale for all bullets", () => {
    expect(bulletScale([17 * GIB, 3]) / GIB).toBe(20);
    expect(bulletScale([]) / GIB).toBe(1);
  });
});

describe("queue", () => {
  const view = { filter: { word: "all" }, sort: null, me: "ana", now: 1000, unfolded: new Set<number>() } as const;
  it("puts waiting tasks in the order in which they are asked, and the running by their end", () => {
    const tasks = [task(1, { position: 2 }), task(2, { position: 1 }), task(3, { state: "running" }), task(4, { state: "running" }), task(5, { state: "completed" })];
    const expected = new Map([[3, { id: 3, expected_start_s: 0, expected_end_s: 90, expected_gpus: [], expected_basis: "" }], [4, { id: 4, expected_start_s: 0, expected_end_s: 50, expected_gpus: [], expected_basis: "" }]]);
    expect(groups(tasks, expected, view).map((g) => [g.word, g.rows.map((r) => r.task.id)])).toEqual([["running", [4, 3]], ["waiting", [2, 1]]]);
  });
  it("folds an array's tasks that wait for the same reason, and unfolds them", () => {
    const tasks = [1, 2, 3].map((k) => task(460 + k, { array_id: 460, array_index: k, reason: k === 3 ? "other" : "limit" }));
    const rows = foldArrays(tasks, new Set());
    expect(rows.map(idText)).toEqual(["461–462", "460_3"]);
    expect(foldArrays(tasks, new Set([460]))).toHaveLength(3);
  });
  it("counts an ended task on its day alone", () => {
    const now = new Date(2026, 10, 18, 12).getTime() / 1000;
    const n = counts([task(1), task(2, { state: "completed", ended_s: now - 60 }), task(3, { state: "failed", ended_s: now - 86_400 }), task(4, { state: "running", user: "ben" })], "ana", now);
    expect(n).toEqual({ all: 2, yours: 1, running: 1, waiting: 1, ended: 1 });
  });
  it("says what would help only where it would", () => {
    const why = { task: task(7, { reason_code: "memory" }), summary: "", ahead: 2, awaits: null, gpus: [{ gpu: 0, refusals: [], rules: [{ rule: "memory", have: 8 * GIB, limit: 8 * GIB, short: GIB, unit: "bytes", text: "" }] }, { gpu: 1, refusals: [], rules: [{ rule: "hot", have: 0.9, limit: 0.8, short: 0.1, unit: "", text: "" }, { rule: "memory", have: 20 * GIB, limit: 20 * GIB, short: GIB, unit: "bytes", text: "" }] }] } as unknown as WhyView;
    expect(whatWouldHelp(why, { id: 7, expected_start_s: 50, expected_end_s: null, expected_gpus: [], expected_basis: "" }).map((h) => h.command ?? h.text)).toEqual(["coloc update 7 --gpu-mem 8192M", "as it is: 2 tasks before it"]);
  });
});

describe("timeline", () => {
  it("puts each span into the first lane that is free", () => {
    expect(packLanes([{ from: 0, to: 5 }, { from: 1, to: 3 }, { from: 4, to: 6 }, { from: 6, to: 7 }], 0)).toEqual([0, 1, 1, 0]);
    expect(packLanes([{ from: 0, to: 5 }, { from: 5, to: 6 }], 1)).toEqual([0, 1]);
  });
  const t = { schema: 1, from_s: 0, to_s: 100, now_s: 50, truncated: false, attempts: [{ task: 1, name: "a", user: "u", number: 1, gpus: [0], instance: null, started_s: 10, ended_s: 20, outcome: "out_of_memory", predicted_end_s: null, ooms: 1 }, { task: 1, name: "a", user: "u", number: 2, gpus: [0, 1], instance: null, started_s: 25, ended_s: null, outcome: null, predicted_end_s: 40, ooms: 0 }], waiting: [{ task: 2, name: "b", user: "u", gpus: [0], expected_start_s: 60, expected_end_s: null }], foreign: [] } satisfies Timeline;
  it("marks what ran out and what was brought back, and lets what runs reach now", () => {
    const items = itemsOf(0, t, 0, 100);
    expect(items.map((i) => [i.key, i.from, i.to, i.begins, i.ends, i.kind])).toEqual([["1.1", 10, 20, null, "oom", "past"], ["1.2", 25, 50, "recovered", null, "run"], ["w2", 60, 100, null, null, "next"]]);
    expect(itemsOf(1, t, 0, 100)).toHaveLength(1);
    expect(bands([0, 1], t, 0, 100, 0).bands.map((b) => b.lanes)).toEqual([2, 2]);
  });
  it("moves and zooms about a moment", () => {
    const a = around(1000, 100);
    expect([a.from, a.to]).toEqual([945, 1045]);
    expect([spanSince(60, [1800, 10_800], 43_200), spanSince(5000, [1800, 10_800], 43_200), spanSince(1e6, [1800], 43_200)]).toEqual([1800, 10_800, 43_200]);
    expect(pan({ from: 0, to: 100 }, 0.25)).toEqual({ from: 25, to: 125 });
    const z = zoom({ from: 0, to: 1000 }, 0.5, 250);
    expect([z.from, z.to]).toEqual([125, 625]);
  });
});

describe("scales", () => {
  it("has round steps", () => {
    expect(ticks(0, 40, 4)).toEqual([0, 10, 20, 30, 40]);
    expect([7.3, 12.1, 0, 100].map(roundUp)).toEqual([8, 15, 1, 100]);
    expect(timeTicks(1000, 1000 + 7200, 13)).toHaveLength(12);
  });
  it("breaks a line at a gap and ends it at the right", () => {
    const runs = sparkPoints([0, 1, null, 0.5, 0.5], 5, 12);
    expect(runs.map((r) => [r.from, r.to])).toEqual([[0, 25], [75, 100]]);
  });
  it("draws what is in sight of a long list, and all of a short one", () => {
    expect(visible(200, 34, 5000, 900)).toEqual({ start: 0, end: 200 });
    const w = visible(5000, 34, 34_000, 900);
    expect(w.start).toBe(980);
    expect(w.end).toBeLessThan(1060);
    expect(visible(5000, 34, 1e9, 900)).toEqual({ start: 5000, end: 5000 });
  });
  it("keeps labels apart and within the picture", () => {
    const l = (y: number) => ({ text: String(y), value: "", strong: false, y });
    expect(spread([l(50), l(52), l(20)], 15, 100).map((x) => x.y)).toEqual([20, 50, 65]);
    expect(spread([l(98), l(99)], 15, 100).map((x) => x.y)).toEqual([85, 100]);
  });
  it("lays a series on the moments of another", () => {
    expect(alignTo([0, 2, 20], { of: "gpu:0", start_s: 0, step_s: 2, columns: { smact: [0.1, 0.2] }, max: {} }, "smact")).toEqual([0.1, 0.2, null]);
  });
  it("counts what is done within a time", () => {
    expect(doneWithin([1, 10, 100], 1, 100, 2).map((d) => d.share)).toEqual([1 / 3, 2 / 3, 1]);
  });
});

describe("text", () => {
  it("shows a log's escapes and controls as text, and the last state of a line that overwrites itself", () => {
    expect(readableLine("\u001b[31mred\u001b[0m")).toBe("red");
    expect(readableLine("\u001b]0;title\u0007after")).toBe("after");
    expect(readableLine("10 %\r20 %\r30 %\r")).toBe("30 %");
    expect(readableLine("a\u0000b\u202ec")).toBe("a·b·c");
    expect(logLines("<img onerror=x>\nb\n")).toEqual(["<img onerror=x>", "b"]);
    expect(appendLog("x".repeat(KEPT_LOG), "\nend").length).toBeLessThanOrEqual(KEPT_LOG);
  });
  it("quotes a command as a shell would", () => {
    expect(commandText(["python", "a b.py", "it's"])).toBe("python 'a b.py' 'it'\\''s'");
    expect(asText({ hex: "68c3a9ff" })).toBe("hé\ufffd");
  });
  it("tells a story with the chosen GPU first", () => {
    const story = storyOf({ story: [{ at: 1, what: "Submitted. By replay." }], decisions: [{ at_s: 2, attempt: 1, kind: "starts", chosen: [2], gpus: [{ gpu: 0, fits: false, score: null, text: "short", refusals: [] }, { gpu: 2, fits: true, score: 1, text: "fits", refusals: [] }], left_out: 0 }] } as never);
    expect(story.map((s) => s.head)).toEqual(["Submitted.", "Attempt 1 on GPU 2."]);
    expect(story[1]?.gpus.map((g) => g.gpu)).toEqual([2, 0]);
  });
  it("finds tasks, people and GPUs", () => {
    const tasks = [task(12, { name: "resnet" }), task(7, { name: "bert", user: "resi" })];
    expect(search("res", tasks, []).map((h) => h.label)).toEqual(["resi", "resnet"]);
    expect(search("7", tasks, [{ index: 7, model: "A100" } as GpuView]).map((h) => h.kind)).toEqual(["gpu", "task"]);
  });
  it("reads the address", () => {
    expect(parseRoute("#/task/450")).toEqual({ view: "task", id: 450 });
    expect(parseRoute("#/task/<img>")).toEqual({ view: "queue", id: null });
    expect(parseRoute("#c=code")).toEqual({ view: "fleet", id: null });
  });
});
