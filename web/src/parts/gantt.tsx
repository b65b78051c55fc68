import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { GpuView, Series, Timeline } from "../api/wire.ts";
import { clock } from "../model/format.ts";
import { timeTicks } from "../model/scale.ts";
import { type Band, LANE, type Lane, type Span, bands } from "../model/timeline.ts";
import { go } from "../route.ts";
import { hueOf } from "../store/store.ts";
import { Mark } from "./icons.tsx";

export interface GanttProps {
  timeline: Timeline;
  series: ReadonlyMap<number, Series>;
  gpus: readonly GpuView[];
  span: Span;
  width: number;
  now: number;
}

const RIGHT = 14;

export function Gantt(p: GanttProps): JSX.Element {
  const small = p.width < 700;
  const left = small ? 52 : 100;
  const { from, to } = p.span;
  const x = (s: number): number => left + ((s - from) / (to - from)) * (p.width - left - RIGHT);
  const pixel = (to - from) / Math.max(1, p.width - left - RIGHT);
  const layout = useMemo(() => bands(p.gpus.map((g) => g.index), p.timeline, from, to, 2 * pixel), [p.timeline, p.gpus.length, from, to, pixel]);
  const nowX = x(p.now);
  const nowSeen = p.now > from && p.now < to;
  const bottom = layout.height - 8;
  const frame: Frame = { x, left, right: p.width - RIGHT, now: p.now, small };
  return (
    <svg width={p.width} height={layout.height} role="group" aria-label="Tasks on GPUs over time">
      {timeTicks(from, to, small ? 4 : 13).map((t) => (
        <g key={t}>
          <line x1={x(t)} x2={x(t)} y1="18" y2={bottom} class="grid" />
          {nowSeen && Math.abs(x(t) - nowX) < 62 ? null : x(t) < left + 10 || x(t) > p.width - 24 ? null : (
            <text x={x(t)} y="12" text-anchor="middle">
              {clock(t, p.now)}
            </text>
          )}
        </g>
      ))}
      {nowSeen ? <line x1={nowX} x2={nowX} y1="18" y2={bottom} stroke="var(--text)" stroke-width="1.25" /> : null}
      {layout.bands.map((band) => (
        <GpuBand key={band.gpu} band={band} frame={frame} gpu={p.gpus.find((g) => g.index === band.gpu)} series={p.series.get(band.gpu)} width={p.width} />
      ))}
      {nowSeen ? (
        <g>
          <rect x={nowX - 34} y="1" width="68" height="16" rx="4" fill="var(--text)" />
          <text x={nowX} y="12.5" text-anchor="middle" class="now-text">
            now {clock(p.now, p.now)}
          </text>
        </g>
      ) : null}
    </svg>
  );
}

interface Frame {
  x: (s: number) => number;
  left: number;
  right: number;
  now: number;
  small: boolean;
}

function GpuBand({ band, frame, gpu, series, width }: { band: Band; frame: Frame; gpu: GpuView | undefined; series: Series | undefined; width: number }): JSX.Element {
  const inset = frame.small ? 4 : 16;
  const y = band.y + band.lanes * LANE + 2;
  return (
    <g data-gpu={band.gpu}>
      <line x1="0" x2={width} y1={band.y - 4} y2={band.y - 4} stroke="var(--line)" />
      <text x={inset} y={band.y + 13} class="strong gpu-name">
        GPU {band.gpu}
      </text>
      {frame.small ? null : (
        <text x={inset} y={band.y + 29}>
          {gpu?.mig ? "MIG" : gpu?.sharing === "mps" ? "MPS" : (gpu?.sharing ?? "")}
        </text>
      )}
      {band.items.map((item) => (
        <Block key={item.key} item={item} y={band.y + item.lane * LANE} frame={frame} />
      ))}
      {series ? <Activity series={series} y={y} frame={frame} /> : null}
      {frame.small ? null : (
        <text x={inset} y={y + 13}>
          SM activity
        </text>
      )}
    </g>
  );
}

/** A line of SM activity from the left edge to now, with the time's own axis. */
function Activity({ series, y, frame }: { series: Series; y: number; frame: Frame }): JSX.Element {
  const height = 16;
  const runs: string[][] = [];
  let run: string[] | null = null;
  (series.columns.smact ?? []).forEach((v, k) => {
    const px = frame.x(series.start_s + k * series.step_s);
    if (v === null || px < frame.left || px > frame.right) {
      run = null;
      return;
    }
    if (!run) runs.push((run = []));
    run.push(`${px.toFixed(1)},${(y + height - Math.min(1, v) * height).toFixed(1)}`);
  });
  return (
    <g aria-hidden="true">
      {runs.map((points, k) => (
        <g key={k}>
          <polygon points={`${points[0]!.split(",")[0]},${y + height} ${points.join(" ")} ${points.at(-1)!.split(",")[0]},${y + height}`} fill="var(--shade)" />
          <polyline points={points.join(" ")} fill="none" stroke="var(--muted)" stroke-width="1" />
        </g>
      ))}
    </g>
  );
}

function Block({ item, y, frame }: { item: Lane; y: number; frame: Frame }): JSX.Element {
  const { x, left, right, now } = frame;
  const x0 = Math.max(x(item.from), left);
  const x1 = Math.max(x0 + 2, Math.min(x(item.to), right));
  const width = x1 - x0;
  const colour = item.user ? hueOf(item.user) : "var(--others)";
  const seen = item.kind === "run" ? Math.max(x0, Math.min(x1, x(now))) : x1;
  const end = item.kind === "next" ? ", predicted" : item.kind === "run" ? (item.open ? ", end unknown" : ", end predicted") : "";
  const title = `${item.label}${item.user ? ` of ${item.user}` : ""}, ${clock(item.from, now)} to ${item.open ? "?" : clock(item.to, now)}${end}`;
  const inset = item.begins && x(item.from) >= left ? 13 : 8;
  const open = (): void => (item.task === null ? undefined : go(`task/${item.task}`));
  return (
    <g
      class="block"
      data-task={item.task ?? undefined}
      data-kind={item.kind}
      role={item.task === null ? "img" : "link"}
      tabindex={item.task === null ? undefined : 0}
      aria-label={title}
      onClick={open}
      onKeyDown={(e) => (e.key === "Enter" ? (e.stopPropagation(), open()) : undefined)}
    >
      <title>{title}</title>
      {item.kind === "next" ? <rect class="outline" x={x0 + 0.5} y={y + 0.5} width={Math.max(1, width - 1)} height="16" rx="2" fill="transparent" stroke="var(--line-strong)" stroke-dasharray="3 2.5" /> : null}
      {item.kind === "foreign" ? (
        <>
          <rect x={x0} y={y} width={width} height="17" rx="2" fill="var(--others)" opacity="0.16" />
          <rect x={x0} y={y} width={Math.min(6, width)} height="17" fill="url(#hatch-foreign)" />
        </>
      ) : null}
      {item.kind === "past" || item.kind === "run" ? (
        <>
          <rect x={x0} y={y} width={Math.max(0, seen - x0)} height="17" rx="2" fill={colour} opacity={item.kind === "run" ? 0.34 : 0.17} />
          {item.kind === "run" && x1 > seen ? (
            <>
              <rect x={seen} y={y + 0.5} width={x1 - seen} height="16" fill={colour} opacity="0.1" />
              <path d={`M${seen} ${y + 0.5}H${x1}${item.open ? `M${x1} ${y + 16.5}` : `V${y + 16.5}`}H${seen}`} fill="none" stroke={colour} stroke-dasharray="3 2.5" />
            </>
          ) : null}
          <rect class="outline" x={x0} y={y} width={width} height="17" rx="2" fill="none" stroke="none" />
          {x(item.from) >= left ? <rect x={x0} y={y} width="3" height="17" rx="1" fill={colour} /> : null}
        </>
      ) : null}
      {width > 34 ? (
        <svg x={x0} y={y} width={Math.max(0, width - 4)} height="17" overflow="hidden" aria-hidden="true">
          <text x={inset} y="12.5" class={item.kind === "next" ? undefined : "strong"}>
            {item.label}
          </text>
        </svg>
      ) : null}
      {item.ends && item.to <= now && x(item.to) > left && x(item.to) < right ? <Mark kind={item.ends} x={x(item.to) - (item.ends === "oom" ? 5 : 0)} y={y + 8.5} /> : null}
      {item.begins && x(item.from) >= left ? <Mark kind={item.begins} x={x(item.from) + 4} y={y + 8.5} /> : null}
    </g>
  );
}
