// Comparing policies. Pure.
import type { PolicyOutcome, WhatIf } from "../api/wire.ts";
import { offBy } from "./format.ts";

export type Figure = "makespan_s" | "jct_mean_s" | "jct_p95_s" | "wait_mean_s" | "energy_j" | "oom_count" | "smact_mean";

/** The least of a figure among what was predicted; what was observed does not compete. */
export function best(rows: readonly PolicyOutcome[], figure: Figure): number | null {
  const values = rows.map((r) => r[figure]).filter((v): v is number => v != null);
  return values.length > 0 ? Math.min(...values) : null;
}

export interface Belief {
  title: string;
  observed: number | null;
  predicted: number | null;
  off: string;
  /** Off by more than a tenth. */
  doubtful: boolean;
  kind: "time" | "energy";
}

/** The model on the policy that really ran, beside what was seen. */
export function beliefs(w: WhatIf): Belief[] {
  const rows: [string, Figure, Belief["kind"]][] = [
    ["Makespan", "makespan_s", "time"],
    ["Mean completion", "jct_mean_s", "time"],
    ["Mean wait", "wait_mean_s", "time"],
    ["Energy", "energy_j", "energy"],
  ];
  return rows
    .map(([title, figure, kind]) => {
      const observed = w.observed[figure] ?? null;
      const predicted = w.model?.[figure] ?? null;
      const doubtful = observed !== null && predicted !== null && observed !== 0 && Math.abs(predicted / observed - 1) > 0.1;
      return { title, observed, predicted, off: offBy(predicted, observed), doubtful, kind };
    })
    .filter((b) => b.observed !== null || b.predicted !== null);
}

/** Completion times of an outcome, shortest first. */
export const completions = (row: PolicyOutcome): number[] =>
  (row.tasks ?? [])
    .filter((t) => t.end_s != null)
    .map((t) => (t.end_s ?? 0) - t.submit_s)
    .filter((s) => s >= 0)
    .sort((a, b) => a - b);

/** Steps of the share done within a time, as points of a logarithmic axis from `from` to `to` seconds. */
export function doneWithin(times: readonly number[], from: number, to: number, points = 80): { s: number; share: number }[] {
  const out: { s: number; share: number }[] = [];
  let k = 0;
  for (let q = 0; q <= points; q++) {
    const s = from * (to / from) ** (q / points);
    while (k < times.length && times[k]! <= s) k++;
    out.push({ s, share: times.length > 0 ? k / times.length : 0 });
  }
  return out;
}
