// What a chart needs that is no drawing. Pure.
import type { Series } from "../api/wire.ts";

/** The moments of a series, in seconds. */
export const moments = (s: Series): number[] => {
  const n = Math.max(0, ...Object.values(s.columns).map((c) => c.length));
  return Array.from({ length: n }, (_, k) => s.start_s + k * s.step_s);
};

export interface SideLabel {
  text: string;
  value: string;
  /** Where it would stand, in pixels from the top. */
  y: number;
  strong: boolean;
}

/** Moves labels apart so that none lies on another, keeping their order from top to bottom. */
export function spread(labels: readonly SideLabel[], gap: number, height: number): SideLabel[] {
  const sorted = [...labels].sort((a, b) => a.y - b.y).map((l) => ({ ...l }));
  for (let k = 1; k < sorted.length; k++) {
    const above = sorted[k - 1]!;
    const label = sorted[k]!;
    if (label.y < above.y + gap) label.y = above.y + gap;
  }
  for (let k = sorted.length - 1, floor = height; k >= 0; k--, floor -= gap) {
    const label = sorted[k]!;
    if (label.y > floor) label.y = floor;
    else break;
  }
  return sorted;
}

/** Joins two series of different steps on the moments of the first: the nearest value at or before each moment. */
export function alignTo(at: readonly number[], s: Series, column: string): (number | null)[] {
  const values = s.columns[column] ?? [];
  return at.map((t) => {
    const k = Math.round((t - s.start_s) / s.step_s);
    return k >= 0 && k < values.length ? (values[k] ?? null) : null;
  });
}
