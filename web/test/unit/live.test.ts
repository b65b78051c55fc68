import { describe, expect, it } from "vitest";
import { EventParser } from "../../src/api/sse.ts";
import type { GpuView, TaskView } from "../../src/api/wire.ts";
import { KEPT_ENDED, TRACE_POINTS, applySample, applyTasks, applyTraces, placeOf } from "../../src/store/apply.ts";
// @ts-expect-error: a script without types
import { sample, world } from "../fake/data.mjs";
// @ts-expect-error: a script without types
import { generate } from "../../scripts/types.mjs";

describe("server-sent events", () => {
  const text = "retry: 1000\n: comment\nevent: task\nid: e.7\ndata: {\"a\":\ndata: 1}\n\nevent: hello\r\ndata: x\r\n\r\n";
  it("is the same however it is cut", () => {
    const whole = new EventParser().push(text);
    expect(whole).toEqual({ retryMs: 1000, events: [{ kind: "task", data: '{"a":\n1}', id: "e.7" }, { kind: "hello", data: "x", id: "e.7" }] });
    for (let cut = 1; cut < text.length; cut++) {
      const parser = new EventParser();
      const events = [...parser.push(text.slice(0, cut)).events, ...parser.push(text.slice(cut)).events];
      expect(events).toEqual(whole.events);
    }
  });
  it("knows an event's place", () => {
    expect(placeOf("a1.b.42")).toEqual({ epoch: "a1.b", seq: 42 });
    expect(placeOf("42")).toBeNull();
  });
});

describe("what an event does", () => {
  const w = world({ gpus: 2, tasks: 20, seed: 3 }) as { gpus: GpuView[]; tasks: TaskView[] };
  const tasks = applyTasks(new Map(), w.tasks);
  it("doubles and loses no task", () => {
    const again = applyTasks(tasks, [...w.tasks, ...w.tasks]);
    expect([...again.keys()]).toEqual([...tasks.keys()]);
  });
  it("keeps ended tasks within a bound, the newest of them", () => {
    const many = Array.from({ length: KEPT_ENDED + 50 }, (_, k) => ({ ...w.tasks[0]!, id: 10_000 + k, state: "completed", ended_s: k }) as TaskView);
    const kept = applyTasks(new Map(), many);
    expect(kept.size).toBe(KEPT_ENDED);
    expect(kept.has(10_000)).toBe(false);
  });
  it("takes a sample's figures and leaves the rest", () => {
    const effect = applySample(w.gpus, sample(w, 1), tasks);
    expect(effect.changed).toBe(false);
    expect(effect.gpus[0]?.model).toBe(w.gpus[0]?.model);
    expect(effect.gpus[0]?.residents[0]?.name).toBe(w.gpus[0]?.residents[0]?.name);
    expect(effect.gpus[0]?.residents[0]?.used_bytes).not.toBe(w.gpus[0]?.residents[0]?.used_bytes);
  });
  it("notices a task that came or left, and names it from the queue", () => {
    const frame = sample(w, 1);
    const stranger = w.tasks.find((t) => t.state === "pending")!;
    frame.gpus[0].residents = [{ id: stranger.id, used_bytes: 5, promised_bytes: 9, sm_share: null, slowdown: null }];
    const effect = applySample(w.gpus, frame, tasks);
    expect(effect.changed).toBe(true);
    expect(effect.gpus[0]?.residents.map((r) => [r.id, r.name, r.used_bytes, r.promised_bytes])).toEqual([[stranger.id, stranger.name, 5, 9]]);
  });
  it("keeps traces within their length", () => {
    let traces = applyTraces(new Map(), sample(w, 0));
    for (let k = 0; k < 2 * TRACE_POINTS; k++) traces = applyTraces(traces, sample(w, k));
    expect(traces.get(0)?.smact).toHaveLength(TRACE_POINTS);
  });
});

describe("types of the document", () => {
  it("makes what is answered complete, and what is sent optional where it may be left out", () => {
    const ref = (name: string): object => ({ content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } } });
    const text = generate({
      paths: { "/a": { post: { requestBody: ref("Sent"), responses: { 200: ref("Told") } } } },
      components: { schemas: { Sent: { properties: { a: { type: "integer" }, b: { type: ["string", "null"] } }, required: ["a"] }, Told: { description: "It.", properties: { c: { type: "array", items: { anyOf: [{ type: "number" }, { type: "null" }] } }, d: { enum: ["x", "y"] } } } } },
    });
    expect(text).toContain("export interface Sent {\n  a: number;\n  b?: string | null;\n}");
    expect(text).toContain('/** It. */\nexport interface Told {\n  c: (number | null)[];\n  d: "x" | "y";\n}');
  });
});
