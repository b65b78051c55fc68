// The timeline's layout: a block a GPU, lanes packed by time. Pure.
import type { Timeline } from "../api/wire.ts";
import type { MarkKind } from "../parts/icons.tsx";

export type SpanKind = "past" | "run" | "next" | "foreign";

export interface Item {
  key: string;
  task: number | null;
  label: string;
  user: string | null;
  from: number;
  to: number;
  kind: SpanKind;
  /** Drawn at its beginning and its end. */
  begins: MarkKind | null;
  ends: MarkKind | null;
  /** Its end is not known: it is drawn to the right edge. */
  open: boolean;
}

/** Puts each item into the first lane that is free when it begins. Items must be sorted by their beginning. */
export function packLanes(items: readonly { from: number; to: number }[], gap: number): number[] {
  const ends: number[] = [];
  return items.map((item) => {
    let lane = ends.findIndex((end) => end + gap <= item.from);
    if (lane < 0) lane = ends.push(0) - 1;
    ends[lane] = item.to;
    return lane;
  });
}

const OOM = /out.of.memory|oom/i;

function endMark(outcome: string | null | undefined, ooms: number): MarkKind | null {
  const word = outcome ?? "";
  if (OOM.test(word) || (ooms > 0 && /recover|retry/i.test(word))) return "oom";
  if (/preempt/i.test(word)) return "preempted";
  if (/fail|lost|timed/i.test(word)) return "failed";
  return null;
}

/** Everything that is or was on one GPU within a window of time. */
export function itemsOf(gpu: number, t: Timeline, from: number, to: number): Item[] {
  const items: Item[] = [];
  const oomed = new Set(t.attempts.filter((a) => endMark(a.outcome, a.ooms ?? 0) === "oom").map((a) => `${a.task}.${a.number}`));
  for (const a of t.attempts) {
    if (!a.gpus.includes(gpu)) continue;
    const runs = a.ended_s == null;
    items.push({
      key: `${a.task}.${a.number}`,
      task: a.task,
      label: `${a.task} ${a.name}`,
      user: a.user,
      from: a.started_s,
      to: a.ended_s ?? a.predicted_end_s ?? to,
      kind: runs ? "run" : "past",
      begins: oomed.has(`${a.task}.${a.number - 1}`) ? "recovered" : null,
      ends: runs ? null : endMark(a.outcome, a.ooms ?? 0),
      open: runs && a.predicted_end_s == null,
    });
  }
  for (const w of t.waiting) {
    if (!w.gpus.includes(gpu) || w.expected_start_s == null) continue;
    const open = w.expected_end_s == null;
    items.push({ key: `w${w.task}`, task: w.task, label: `${w.task} ${w.name}`, user: w.user, from: w.expected_start_s, to: w.expected_end_s ?? to, kind: "next", begins: null, ends: null, open });
  }
  for (const f of t.foreign) {
    if (f.gpu !== gpu) continue;
    items.push({ key: `p${f.pid}@${f.from_s}`, task: null, label: `pid ${f.pid}${f.user ? ` of ${f.user}` : ""}`, user: null, from: f.from_s, to: f.to_s ?? t.now_s, kind: "foreign", begins: null, ends: null, open: false });
  }
  // An attempt that runs goes on at least until now, whatever was predicted.
  for (const item of items) if (item.kind === "run") item.to = Math.max(item.to, t.now_s);
  return items.filter((i) => i.to > from && i.from < to).sort((a, b) => a.from - b.from || (a.task ?? 0) - (b.task ?? 0));
}

export interface Lane extends Item {
  lane: number;
}

export interface Band {
  gpu: number;
  y: number;
  height: number;
  lanes: number;
  items: Lane[];
}

export const LANE = 23;
const TRACE = 26;
const HEAD = 26;
const LEAST = 2;

/** Bands from top to bottom, each as high as its lanes. */
export function bands(gpus: readonly number[], t: Timeline, from: number, to: number, pixel: number): { bands: Band[]; height: number } {
  let y = HEAD;
  const made = gpus.map((gpu) => {
    const items = itemsOf(gpu, t, from, to);
    const lane = packLanes(items, pixel);
    const lanes = Math.max(LEAST, ...lane.map((l) => l + 1));
    const band = { gpu, y, height: lanes * LANE + TRACE, lanes, items: items.map((item, k) => ({ ...item, lane: lane[k] ?? 0 })) };
    y += band.height + 4;
    return band;
  });
  return { bands: made, height: y };
}

export interface Span {
  from: number;
  to: number;
}

/** A window around now: a little more behind than ahead. */
export const around = (now: number, seconds: number): Span => ({ from: now - 0.55 * seconds, to: now + 0.45 * seconds });

/** The shortest of some spans that shows everything since a moment; the longest if none does. */
export const spanSince = (age: number, spans: readonly number[], most: number): number => spans.find((s) => 0.55 * s >= age && s <= most) ?? most;

export const pan = (s: Span, by: number): Span => ({ from: s.from + by * (s.to - s.from), to: s.to + by * (s.to - s.from) });

const SHORTEST = 120;
const LONGEST = 14 * 86_400;

/** Zooms about a moment, which stays where it is. */
export function zoom(s: Span, factor: number, at: number): Span {
  const width = Math.max(SHORTEST, Math.min(LONGEST, (s.to - s.from) * factor));
  const share = (at - s.from) / (s.to - s.from);
  return { from: at - share * width, to: at + (1 - share) * width };
}
