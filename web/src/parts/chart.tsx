// uPlot in a component. It draws on a canvas and sets styles through the CSSOM, so the page's policy lets it.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { type SideLabel, spread } from "../model/chart.ts";
import { clock } from "../model/format.ts";
import { now } from "../store/store.ts";
import { theme } from "../theme.ts";
import { useWidth } from "./size.ts";

/** A colour as the theme has it: a canvas knows no variables. */
export const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** `var(--u1)` as the theme has it. */
export const resolved = (variable: string): string => colour(variable.replace(/^var\(--/, "").replace(/\)$/, ""));

export interface ChartProps {
  label: string;
  height: number;
  data: uPlot.AlignedData;
  from: number;
  to: number;
  most: number;
  series: () => uPlot.Series[];
  yTicks: number[];
  yText: (v: number) => string;
  xAxis: boolean;
  /** Room for the labels at the right. */
  side: number;
  labels: { text: string; value: string; at: number; strong: boolean }[];
  under?: (u: uPlot) => void;
  over?: (u: uPlot) => void;
  children?: ComponentChildren;
}

const LEFT = 34;
const TOP = 8;

function options(p: ChartProps, width: number): uPlot.Options {
  const grid = { stroke: colour("grid"), width: 1 };
  const font = `11px ${getComputedStyle(document.body).fontFamily}`;
  return {
    width,
    height: p.height,
    padding: [TOP, p.side, p.xAxis ? 0 : 6, 0],
    legend: { show: false },
    cursor: { x: true, y: false, points: { show: false }, drag: { setScale: false, x: false, y: false } },
    scales: { x: { time: false, range: () => [p.from, p.to] }, y: { range: () => [0, p.most] } },
    series: [{}, ...p.series()],
    axes: [
      {
        show: p.xAxis,
        font,
        stroke: colour("muted"),
        grid: { show: false },
        ticks: { stroke: colour("line-strong"), size: 4, width: 1 },
        size: 24,
        space: 80,
        incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400],
        values: (_, splits) => splits.map((s) => clockOf(s, p.to - p.from)),
      },
      { font, stroke: colour("muted"), grid, ticks: { show: false }, size: LEFT, gap: 7, splits: () => p.yTicks, values: (_, splits) => splits.map(p.yText) },
    ],
    hooks: { drawAxes: p.under ? [p.under] : [], draw: p.over ? [p.over] : [] },
  };
}

const clockOf = (s: number, span: number): string => {
  if (span > 300) return clock(s, now.peek());
  const d = new Date(s * 1000);
  return `${clock(s, now.peek())}:${String(d.getSeconds()).padStart(2, "0")}`;
};

export function Chart(p: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const width = useWidth(box);
  // What is drawn beside the lines is read when it is drawn, so that new data need no new plot.
  const latest = useRef(p);
  latest.current = p;
  useEffect(() => {
    if (width === 0 || !host.current) return;
    const live: ChartProps = { ...p };
    for (const key of ["from", "to", "most", "yTicks", "under", "over"] as const) Object.defineProperty(live, key, { get: () => latest.current[key] });
    const made = options(live, width);
    made.hooks = { drawAxes: [(u) => latest.current.under?.(u)], draw: [(u) => latest.current.over?.(u)] };
    plot.current = new uPlot(made, p.data, host.current);
    return () => plot.current?.destroy();
  }, [width, theme.value, p.side, p.series().length]);
  useEffect(() => plot.current?.setData(p.data), [p.data, p.from, p.to, p.most]);
  const inner = p.height - TOP - (p.xAxis ? 24 : 6);
  const labels: SideLabel[] = p.labels.map((l) => ({ text: l.text, value: l.value, strong: l.strong, y: TOP + (1 - l.at / p.most) * inner }));
  return (
    <div class="chart" ref={box}>
      <div ref={host} role="img" aria-label={p.label} />
      {spread(labels, 15, p.height - 8).map((l) => (
        <span key={l.text} class="side" style={{ top: `${l.y}px` }}>
          <span>{l.strong ? <b>{l.text}</b> : l.text}</span>
          <b>{l.value}</b>
        </span>
      ))}
    </div>
  );
}
