// Scales and ticks. Pure.

/** Round steps between two numbers: at most so many. */
export function ticks(from: number, to: number, most: number): number[] {
  const span = to - from;
  if (!(span > 0)) return [from];
  const raw = span / most;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => span / s <= most) ?? 10 * power;
  const out: number[] = [];
  for (let v = Math.ceil(from / step - 1e-9) * step; v <= to + step * 1e-9; v += step) out.push(Number(v.toFixed(10)));
  return out;
}

/** The smallest round number at or above: 1, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((k) => k * power >= value * (1 - 1e-9)) ?? 10;
  return step * power;
}

const STEPS = [60, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400];

/** Times of day for an axis: whole minutes, hours or days of the local clock. */
export function timeTicks(from: number, to: number, most: number): number[] {
  const step = STEPS.find((s) => (to - from) / s <= most) ?? 86_400 * Math.ceil((to - from) / 86_400 / most);
  const day = new Date(from * 1000);
  const start = new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime() / 1000;
  const out: number[] = [];
  for (let t = start + Math.ceil((from - start) / step) * step; t <= to; t += step) out.push(t);
  return out;
}

export interface SparkRun {
  from: number;
  to: number;
  line: string;
}

/** A line of ratios as points on a canvas 100 wide; the newest value is at the right end, gaps break the line. */
export function sparkPoints(values: readonly (number | null)[], points: number, height: number): SparkRun[] {
  const shown = values.slice(-points);
  const first = points - shown.length;
  const runs: SparkRun[] = [];
  let line: string[] = [];
  let from = 0;
  let to = 0;
  const close = (): void => {
    if (line.length > 1) runs.push({ from, to, line: line.join(" ") });
    line = [];
  };
  shown.forEach((v, k) => {
    if (v === null || v === undefined) return close();
    const x = Number((((first + k) / Math.max(1, points - 1)) * 100).toFixed(2));
    if (line.length === 0) from = x;
    to = x;
    line.push(`${x},${(height - 1 - Math.max(0, Math.min(1, v)) * (height - 2)).toFixed(2)}`);
  });
  close();
  return runs;
}
