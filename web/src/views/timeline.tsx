import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { get } from "../api/client.ts";
import type { Series, Timeline } from "../api/wire.ts";
import { onKey } from "../keys.ts";
import { type Span, around, pan, spanSince, zoom } from "../model/timeline.ts";
import { useAsked } from "../parts/asked.ts";
import { Empty, Failure, Later, Skeleton } from "../parts/common.tsx";
import { Gantt } from "../parts/gantt.tsx";
import { MARKS, Mark } from "../parts/icons.tsx";
import { useWidth } from "../parts/size.ts";
import * as store from "../store/store.ts";
import { phone } from "../store/width.ts";

/** Where tasks run many times as fast as in life, minutes are hours. */
const FAST = 4;
const SHORT: readonly [string, number][] = [
  ["2 min", 120],
  ["10 min", 600],
];
const USUAL: readonly [string, number][] = [
  ["30 min", 1800],
  ["3 h", 3 * 3600],
  ["6 h", 6 * 3600],
  ["12 h", 12 * 3600],
  ["24 h", 24 * 3600],
];
const spans = (): readonly [string, number][] => ((store.status.value?.time_scale ?? 1) >= FAST ? [...SHORT, ...USUAL.slice(0, 3)] : USUAL);
/** What is seen is asked for with a half on each side, so that small moves ask nothing. */
const MARGIN = 0.5;
const REFRESH_S = 5;

interface Known {
  timeline: Timeline;
  series: Map<number, Series>;
}

async function read(span: Span, gpus: readonly number[], now: number, signal: AbortSignal): Promise<Known> {
  const margin = MARGIN * (span.to - span.from);
  const timeline = get<Timeline>(`/v1/timeline?from_s=${span.from - margin}&to_s=${span.to + margin}`, signal);
  const series = new Map<number, Series>();
  const until = Math.min(now, span.to);
  if (gpus.length > 0 && until > span.from) {
    const of = gpus.map((g) => `gpu:${g}`).join(",");
    // The timeline is worth showing without the activity beneath it.
    const answer = await get<{ series: Series[] }>(`/v1/series?of=${of}&from_s=${span.from}&to_s=${until}&points=160`, signal).catch(() => ({ series: [] as Series[] }));
    for (const s of answer.series) series.set(Number(s.of.slice(4)), s);
  }
  return { timeline: await timeline, series };
}

/** Half a day, or three hours on a phone; less if everything is younger. */
function firstSpan(): Span {
  const now = store.now.peek();
  const oldest = Math.min(now, ...[...store.tasks.peek().values()].map((t) => t.submitted_s));
  return around(now, spanSince(now - oldest, spans().map(([, s]) => s), phone.peek() ? 3 * 3600 : 12 * 3600));
}

export function TimelineView(): JSX.Element {
  const span = useSignal<Span>(firstSpan());
  /** Whether the window moves with the clock. */
  const follows = useSignal(true);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const beat = Math.floor(store.now.value / REFRESH_S);
  const gpus = store.gpus.value.map((g) => g.index);
  useEffect(() => {
    if (follows.value) span.value = around(store.now.peek(), span.value.to - span.value.from);
  }, [beat]);
  const asked = `${Math.round(span.value.from)}-${Math.round(span.value.to)}`;
  const [known, again] = useAsked((signal) => read(span.value, gpus, store.now.peek(), signal), [asked, beat, gpus.length], 0);
  useTimelineKeys(span, follows);
  return (
    <>
      <div class="view-head">
        <h1>Timeline</h1>
        <Controls span={span} follows={follows} />
        <span class="grow" />
        <div class="legend">
          {MARKS.map(([kind, title]) => (
            <span key={kind}>
              <svg width="15" height="15" aria-hidden="true">
                <Mark kind={kind} x={7.5} y={8} />
              </svg>
              {title}
            </span>
          ))}
          <span>
            <svg width="18" height="11" aria-hidden="true">
              <rect x=".5" y=".5" width="17" height="10" rx="2" fill="none" stroke="var(--muted)" stroke-dasharray="3 2.5" />
            </svg>
            predicted
          </span>
        </div>
      </div>
      <div class="card timeline" ref={box} onWheel={(e) => wheel(e, span, follows, width)} onPointerDown={(e) => drag(e, span, follows, width)}>
        {known.word === "loading" ? (
          <Later>
            <Skeleton />
          </Later>
        ) : known.word === "failed" ? (
          <Failure title="The timeline could not be read." why={known.error.message} retry={again} />
        ) : gpus.length === 0 ? (
          <Empty title="There is no GPU on this machine." />
        ) : width > 0 ? (
          <Gantt timeline={known.value.timeline} series={known.value.series} gpus={store.gpus.value} span={span.value} width={width} now={store.now.value} />
        ) : null}
      </div>
      <p class="hint wide-only">
        Drag or <kbd>←</kbd> <kbd>→</kbd> to move, <kbd>Ctrl</kbd> and the wheel or <kbd>+</kbd> <kbd>−</kbd> to zoom, <kbd>Tab</kbd> and <kbd>Enter</kbd> to open a task. What lies after now is what would happen if nothing else were
        submitted.
      </p>
    </>
  );
}

type Cell<T> = { value: T };

function Controls({ span, follows }: { span: Cell<Span>; follows: Cell<boolean> }): JSX.Element {
  const wide = span.value.to - span.value.from;
  return (
    <>
      <div class="segmented" role="group" aria-label="Span">
        {spans().map(([title, seconds]) => (
          <button
            key={title}
            type="button"
            aria-pressed={Math.abs(wide - seconds) < 1}
            onClick={() => {
              follows.value = true;
              span.value = around(store.now.peek(), seconds);
            }}
          >
            {title}
          </button>
        ))}
      </div>
      <button type="button" class="button" aria-label="Earlier" onClick={() => move(span, follows, -0.25)}>
        ←
      </button>
      <button
        type="button"
        class="button"
        onClick={() => {
          follows.value = true;
          span.value = around(store.now.peek(), wide);
        }}
      >
        Now
      </button>
      <button type="button" class="button" aria-label="Later" onClick={() => move(span, follows, 0.25)}>
        →
      </button>
    </>
  );
}

function move(span: Cell<Span>, follows: Cell<boolean>, by: number): void {
  follows.value = false;
  span.value = pan(span.value, by);
}

function useTimelineKeys(span: Cell<Span>, follows: Cell<boolean>): void {
  useEffect(
    () =>
      onKey((event) => {
        const middle = (span.value.from + span.value.to) / 2;
        if (event.key === "ArrowLeft") move(span, follows, -0.1);
        else if (event.key === "ArrowRight") move(span, follows, 0.1);
        else if (event.key === "+" || event.key === "=") span.value = zoom(span.value, 0.7, follows.value ? store.now.peek() : middle);
        else if (event.key === "-" || event.key === "−") span.value = zoom(span.value, 1 / 0.7, follows.value ? store.now.peek() : middle);
        else return false;
        return true;
      }),
    [],
  );
}

/** Plain scrolling scrolls the page; with Ctrl, or sideways, it is the timeline's. */
function wheel(e: WheelEvent, span: Cell<Span>, follows: Cell<boolean>, width: number): void {
  if (e.ctrlKey) {
    e.preventDefault();
    const box = (e.currentTarget as HTMLElement).getBoundingClientRect();
    const at = span.value.from + ((e.clientX - box.left) / width) * (span.value.to - span.value.from);
    follows.value = false;
    span.value = zoom(span.value, Math.exp(e.deltaY / 300), at);
  } else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
    e.preventDefault();
    move(span, follows, e.deltaX / width);
  }
}

function drag(e: PointerEvent, span: Cell<Span>, follows: Cell<boolean>, width: number): void {
  if (e.button !== 0) return;
  const begun = span.value;
  const x = e.clientX;
  const moved = (m: PointerEvent): void => {
    if (Math.abs(m.clientX - x) < 4) return;
    follows.value = false;
    span.value = pan(begun, (x - m.clientX) / width);
  };
  const left = (): void => {
    removeEventListener("pointermove", moved);
    removeEventListener("pointerup", left);
    removeEventListener("pointercancel", left);
  };
  addEventListener("pointermove", moved);
  addEventListener("pointerup", left);
  addEventListener("pointercancel", left);
}
