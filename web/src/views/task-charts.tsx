import type { JSX } from "preact";
import type uPlot from "uplot";
import type { Attempt, GpuView, Series, TaskDetail } from "../api/wire.ts";
import { alignTo, moments } from "../model/chart.ts";
import { gib, gibNumber, percent } from "../model/format.ts";
import { roundUp, ticks } from "../model/scale.ts";
import { Chart, colour, resolved } from "../parts/chart.tsx";
import * as store from "../store/store.ts";
import { phone } from "../store/width.ts";

const inGib = (column: readonly (number | null)[]): (number | null)[] => column.map((v) => (v === null ? null : gibNumber(v)));
const last = (column: readonly (number | null)[]): number | null => column.findLast((v) => v !== null) ?? null;

/** From a little before the first attempt to a little after now, or after its end. */
export function chartSpan(detail: TaskDetail, now: number): { from: number; to: number } {
  const begun = detail.attempts_list?.[0]?.started_s ?? detail.first_started_s ?? detail.started_s ?? detail.submitted_s;
  const until = detail.ended_s ?? now;
  const length = Math.max(20, until - begun);
  return { from: begun - 0.05 * length, to: until + (detail.ended_s ? 0.05 : 0.15) * length };
}

interface Props {
  detail: TaskDetail;
  own: Series;
  gpu: Series | undefined;
  view: GpuView | undefined;
}

export function TaskCharts({ detail, own, gpu, view }: Props): JSX.Element {
  const now = detail.ended_s ?? store.now.value;
  const { from, to } = chartSpan(detail, now);
  const at = moments(own);
  const side = phone.value ? 84 : 108;
  const where = detail.gpu_ids.length > 0 ? `GPU ${detail.gpu_ids.join(", ")}, ` : "";
  return (
    <section class="card pad">
      <div class="section-head">
        <h2>GPU memory</h2>
        <span class="muted small">
          GiB, {where}every {own.step_s <= 1 ? "second" : `${Math.round(own.step_s)} s`}
        </span>
        <span class="right legend wide-only">
          <span>
            <svg width="18" height="10" aria-hidden="true">
              <rect width="18" height="10" fill="var(--band)" />
              <line x2="18" y1="9.5" y2="9.5" stroke="var(--text)" />
            </svg>
            estimate to bound
          </span>
        </span>
      </div>
      <MemoryChart detail={detail} own={own} at={at} from={from} to={to} now={now} side={side} />
      <div class="section-head apart">
        <h2>SM activity</h2>
        <span class="muted small">%{view?.source ? `, ${view.source} for the GPU` : ""}</span>
      </div>
      <ActivityChart detail={detail} own={own} gpu={gpu} at={at} from={from} to={to} side={side} />
    </section>
  );
}

interface MemoryProps {
  detail: TaskDetail;
  own: Series;
  at: number[];
  from: number;
  to: number;
  now: number;
  side: number;
}

function MemoryChart({ detail, own, at, from, to, now, side }: MemoryProps): JSX.Element {
  const used = inGib(own.columns.memory_bytes ?? own.columns.used_bytes ?? []);
  const promised = inGib(own.columns.promised_bytes ?? []);
  const peak = inGib(own.max?.memory_bytes ?? []);
  const bound = detail.bound_bytes ?? detail.estimate_bound_bytes ?? null;
  const nowUsed = last(used);
  const nowPromised = last(promised) ?? (detail.promised_bytes == null ? null : gibNumber(detail.promised_bytes));
  const all = [...used, ...promised, ...peak, bound === null ? 0 : gibNumber(bound), nowPromised ?? 0].filter((v): v is number => v !== null);
  const most = roundUp(1.15 * Math.max(0.1, ...all));
  const labels = [
    nowPromised === null ? null : { text: "promised", value: nowPromised.toFixed(1), at: nowPromised, strong: false },
    nowUsed === null ? null : { text: "used", value: nowUsed.toFixed(1), at: nowUsed, strong: true },
    bound === null ? null : { text: "bound", value: gib(bound), at: gibNumber(bound), strong: false },
    detail.estimate_bytes == null ? null : { text: "estimate", value: gib(detail.estimate_bytes), at: gibNumber(detail.estimate_bytes), strong: false },
  ].filter((l) => l !== null);
  const hue = store.hueOf(detail.user);
  return (
    <Chart
      label={`GPU memory of task ${detail.id} over time: ${labels.map((l) => `${l.text} ${l.value} GiB`).join(", ")}`}
      height={216}
      data={[at, used, promised] as uPlot.AlignedData}
      from={from}
      to={to}
      most={most}
      yTicks={ticks(0, most, 4)}
      yText={String}
      xAxis
      side={side}
      labels={labels}
      series={() => [
        { stroke: resolved(hue), width: 2, fill: `${resolved(hue)}33`, points: { show: false }, spanGaps: false },
        { stroke: resolved(hue), width: 1.5, dash: [5, 3], points: { show: false }, spanGaps: false },
      ]}
      under={(u) => drawEstimate(u, detail, bound, from, now)}
      over={(u) => drawAttempts(u, detail.attempts_list ?? [], detail.ended_s == null ? now : null)}
    />
  );
}

function drawEstimate(u: uPlot, detail: TaskDetail, bound: number | null, from: number, now: number): void {
  if (detail.estimate_bytes == null) return;
  const { ctx } = u;
  const x0 = u.valToPos(Math.max(from, detail.attempts_list?.[0]?.started_s ?? from), "x", true);
  const x1 = u.valToPos(now, "x", true);
  const y = u.valToPos(gibNumber(detail.estimate_bytes), "y", true);
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.strokeStyle = colour("text");
  if (bound !== null) {
    const top = u.valToPos(gibNumber(bound), "y", true);
    ctx.fillStyle = colour("band");
    ctx.fillRect(x0, top, x1 - x0, y - top);
    ctx.setLineDash([1.5 * devicePixelRatio, 3 * devicePixelRatio]);
    line(ctx, x0, top, x1, top);
    ctx.setLineDash([]);
  }
  line(ctx, x0, y, x1, y);
  ctx.restore();
}

function line(ctx: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.lineTo(x1, y1);
  ctx.stroke();
}

/** Where attempts begin, where one ran out of memory, and now. */
function drawAttempts(u: uPlot, attempts: readonly Attempt[], now: number | null): void {
  const { ctx } = u;
  const scale = devicePixelRatio;
  const bottom = u.bbox.top + u.bbox.height;
  ctx.save();
  // uPlot leaves its last dash and alignment behind.
  ctx.setLineDash([]);
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.font = `${11 * scale}px ${getComputedStyle(document.body).fontFamily}`;
  attempts.forEach((a, k) => {
    if (a.started_s === null) return;
    const x = u.valToPos(a.started_s, "x", true);
    const next = attempts[k + 1]?.started_s ?? null;
    const room = (next !== null ? u.valToPos(next, "x", true) : u.bbox.left + u.bbox.width) - x;
    ctx.fillStyle = colour("text");
    if (attempts.length > 1 && room > 70 * scale) ctx.fillText(`attempt ${a.number}`, x + 9 * scale, bottom - 5 * scale);
    const oom = /out.of.memory|oom/i.test(a.outcome ?? "") || (a.ooms ?? 0) > 0;
    if (oom && a.ended_s != null) drawOom(u, u.valToPos(a.ended_s, "x", true), a, scale);
    if (k > 0) {
      ctx.beginPath();
      ctx.arc(x, bottom - 8 * scale, 4.2 * scale, 0, 2 * Math.PI);
      ctx.fillStyle = colour("surface");
      ctx.strokeStyle = colour("warn");
      ctx.lineWidth = 2 * scale;
      ctx.fill();
      ctx.stroke();
    }
  });
  if (now !== null) {
    ctx.strokeStyle = colour("text");
    ctx.lineWidth = scale;
    const x = u.valToPos(now, "x", true);
    line(ctx, x, u.bbox.top, x, bottom);
  }
  ctx.restore();
}

function drawOom(u: uPlot, x: number, attempt: Attempt, scale: number): void {
  const { ctx } = u;
  const y = u.valToPos(gibNumber(attempt.peak_bytes ?? attempt.promised_bytes ?? 0), "y", true);
  ctx.fillStyle = colour("warn");
  ctx.strokeStyle = colour("warn");
  ctx.lineWidth = scale;
  line(ctx, x, y - 8 * scale, x, Math.max(u.bbox.top, y - 40 * scale));
  ctx.beginPath();
  ctx.moveTo(x, y - 8 * scale);
  ctx.lineTo(x + 6 * scale, y + 2.5 * scale);
  ctx.lineTo(x - 6 * scale, y + 2.5 * scale);
  ctx.fill();
  ctx.textAlign = x - u.bbox.left > 90 * scale ? "right" : "left";
  ctx.fillText("out of memory", x + (ctx.textAlign === "right" ? -6 : 6) * scale, Math.max(u.bbox.top + 10 * scale, y - 32 * scale));
  ctx.textAlign = "left";
}

interface ActivityProps {
  detail: TaskDetail;
  own: Series;
  gpu: Series | undefined;
  at: number[];
  from: number;
  to: number;
  side: number;
}

function ActivityChart({ detail, own, gpu, at, from, to, side }: ActivityProps): JSX.Element {
  const share = own.columns.sm_share ?? own.columns.smact ?? [];
  const whole = gpu ? alignTo(at, gpu, "smact") : at.map(() => null);
  const limit = store.status.value?.limits?.smact ?? null;
  const nowWhole = last(whole);
  const nowOwn = last(share);
  const hue = store.hueOf(detail.user);
  const labels = [
    nowWhole === null ? null : { text: `GPU ${gpu?.of.slice(4) ?? ""}`, value: `${percent(nowWhole)} %`, at: nowWhole, strong: false },
    nowOwn === null ? null : { text: "this task", value: `${percent(nowOwn)} %`, at: nowOwn, strong: true },
  ].filter((l) => l !== null);
  return (
    <Chart
      label={`SM activity: ${labels.map((l) => `${l.text} ${l.value}`).join(", ") || "not seen"}`}
      height={96}
      data={[at, whole, share.slice(0, at.length)] as uPlot.AlignedData}
      from={from}
      to={to}
      most={1}
      yTicks={[0, 0.5, 1]}
      yText={(v) => String(100 * v)}
      xAxis={false}
      side={side}
      labels={labels}
      series={() => [
        { stroke: colour("text"), width: 1.3, points: { show: false } },
        { stroke: resolved(hue), width: 0, fill: `${resolved(hue)}8c`, points: { show: false } },
      ]}
      under={(u) => {
        if (limit === null) return;
        const y = u.valToPos(limit, "y", true);
        u.ctx.save();
        u.ctx.strokeStyle = colour("muted");
        u.ctx.setLineDash([2 * devicePixelRatio, 3 * devicePixelRatio]);
        line(u.ctx, u.bbox.left, y, u.bbox.left + u.bbox.width, y);
        u.ctx.restore();
      }}
    />
  );
}
