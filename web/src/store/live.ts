// Keeps the store true: lists once, then follows the events. After a gap it lists again, so nothing is lost or doubled.
import { batch } from "@preact/signals";
import { Refused, get, request } from "../api/client.ts";
import { EventParser, type ServerEvent } from "../api/sse.ts";
import { midnight } from "../model/format.ts";
import type { DecisionNews, Foreseen, GpuView, Gpus, Hello, Listed, Sample, SeriesAnswer, StatusNews, StatusView, TaskView } from "../api/wire.ts";
import { TRACE_POINTS, type Trace, applySample, applyTasks, applyTraces, placeOf } from "./apply.ts";
import * as store from "./store.ts";

/** A stream that brings no frame for so long is dead, whatever TCP says: frames come every second. */
const SILENCE_MS = 3_000;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 5_000;
const FORECAST_MS = 5_000;

let generation = 0;
let abort: AbortController | null = null;

export function start(): void {
  stop();
  const mine = ++generation;
  abort = new AbortController();
  void loop(mine, abort.signal);
}

export function stop(): void {
  generation++;
  abort?.abort();
  abort = null;
}

/** Tries at once instead of when the countdown ends. */
let wake: (() => void) | null = null;
export const tryNow = (): void => wake?.();

interface Session {
  epoch: string | null;
  lastId: string | null;
  retryMs: number;
}

async function loop(mine: number, outer: AbortSignal): Promise<void> {
  const session: Session = { epoch: null, lastId: null, retryMs: FIRST_RETRY_MS };
  let failures = 0;
  while (mine === generation) {
    let why = "The daemon closed the stream.";
    try {
      await follow(session, outer, () => (failures = 0));
    } catch (error) {
      if (outer.aborted) return;
      if (error instanceof Refused && error.status === 401) return;
      why = error instanceof Error ? error.message : String(error);
    }
    if (mine !== generation) return;
    failures++;
    const delay = Math.min(LAST_RETRY_MS, session.retryMs * (failures > 30 ? 5 : 1));
    const before = store.link.value;
    store.link.value = {
      word: "stale",
      sinceS: before.word === "stale" ? before.sinceS : Date.now() / 1000 + store.skew.value,
      retryAtMs: Date.now() + delay,
      why,
    };
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, delay);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** One connection, until it ends. */
async function follow(session: Session, outer: AbortSignal, connected: () => void): Promise<void> {
  const controller = new AbortController();
  const leave = (): void => controller.abort();
  outer.addEventListener("abort", leave);
  let silence: ReturnType<typeof setTimeout> | undefined;
  let quiet = false;
  const heard = (): void => {
    clearTimeout(silence);
    silence = setTimeout(() => {
      quiet = true;
      controller.abort();
    }, SILENCE_MS);
  };
  try {
    heard();
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (session.lastId) headers["last-event-id"] = session.lastId;
    const response = await request("/v1/events?kinds=task,sample,status,decision", { headers, signal: controller.signal });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    const feed = new Feed(session, controller.signal, connected);
    for (;;) {
      const { done, value } = await reader.read();
      heard();
      if (done) return;
      const parsed = parser.push(value);
      if (parsed.retryMs !== null) session.retryMs = Math.max(200, Math.min(LAST_RETRY_MS, parsed.retryMs));
      feed.take(parsed.events);
      if (feed.failed) throw feed.failed;
    }
  } catch (error) {
    if (quiet) throw new Error("The daemon has said nothing for 3 s.");
    throw error;
  } finally {
    clearTimeout(silence);
    outer.removeEventListener("abort", leave);
    controller.abort();
  }
}

/** Events of one connection. Until the lists are read they are kept; then they are applied once a frame. */
class Feed {
  private kept: ServerEvent[] = [];
  private listing: Promise<void> | null = null;
  private drawing = false;
  failed: unknown = null;

  constructor(
    private readonly session: Session,
    private readonly signal: AbortSignal,
    private readonly connected: () => void,
  ) {}

  take(events: readonly ServerEvent[]): void {
    for (const event of events) {
      if (event.kind === "hello") this.greet(JSON.parse(event.data) as Hello);
      else if (event.kind === "missed") this.list();
      else {
        this.kept.push(event);
        if (event.id) this.session.lastId = event.id;
      }
    }
    if (!this.listing) this.draw();
  }

  private greet(hello: Hello): void {
    const epoch = String(hello.epoch);
    store.skew.value = hello.now_s - Date.now() / 1000;
    const resumed = this.session.epoch === epoch && this.session.lastId !== null;
    this.session.epoch = epoch;
    if (resumed) {
      this.connected();
      store.link.value = { word: "live" };
      return;
    }
    this.session.lastId = `${epoch}.${hello.seq}`;
    this.list();
  }

  private list(): void {
    this.listing = readAll(this.signal).then(
      () => {
        this.listing = null;
        this.connected();
        store.link.value = { word: "live" };
        this.draw();
      },
      (error: unknown) => {
        if (!this.signal.aborted) this.failed = error;
      },
    );
  }

  private draw(): void {
    if (this.drawing || this.kept.length === 0) return;
    this.drawing = true;
    const go = (): void => {
      this.drawing = false;
      const events = this.kept;
      this.kept = [];
      if (!this.listing) applyEvents(events, this.session.epoch);
      else this.kept = events.concat(this.kept);
    };
    // A page in the background gets no frames; it must not pile up events.
    if (document.visibilityState === "visible") requestAnimationFrame(go);
    else setTimeout(go, 500);
  }
}

function applyEvents(events: readonly ServerEvent[], epoch: string | null): void {
  const changed: TaskView[] = [];
  const samples: Sample[] = [];
  let status = null as Partial<StatusView> | null;
  const decided: number[] = [];
  for (const event of events) {
    const place = placeOf(event.id);
    if (place && epoch !== null && place.epoch !== epoch) continue;
    if (event.kind === "task") changed.push(JSON.parse(event.data) as TaskView);
    else if (event.kind === "sample") samples.push(JSON.parse(event.data) as Sample);
    else if (event.kind === "status") status = { ...(status ?? {}), ...(JSON.parse(event.data) as StatusNews) };
    else if (event.kind === "decision") decided.push((JSON.parse(event.data) as DecisionNews).task);
  }
  let stale = false;
  batch(() => {
    if (changed.length > 0) {
      stale = changed.some((task) => residence(store.tasks.value.get(task.id)) !== residence(task));
      store.tasks.value = applyTasks(store.tasks.value, changed);
      for (const task of changed) decided.push(task.id);
      forecastSoon();
    }
    for (const sample of samples) {
      const effect = applySample(store.gpus.value, sample, store.tasks.value);
      store.gpus.value = effect.gpus;
      store.traces.value = applyTraces(store.traces.value, sample);
      stale ||= effect.changed;
      store.skew.value = sample.at_s - Date.now() / 1000;
    }
    if (status && store.status.value) store.status.value = { ...store.status.value, ...status };
    for (const task of decided) store.touched.value = { task, n: store.touched.value.n + 1 };
    if (changed.length > 0 || samples.length > 0) store.refreshHues();
  });
  if (stale) gpusSoon();
}

/** Where a task is, so far as the list of GPUs shows it. */
const residence = (task: TaskView | undefined): string => (task ? `${task.state}@${task.gpu_ids.join()}` : "");

async function readAll(signal: AbortSignal): Promise<void> {
  const [status, tasks, gpus] = await Promise.all([
    get<StatusView>("/v1/status", signal),
    get<Listed>(`/v1/tasks?all=true&since_s=${midnight(Date.now() / 1000 + store.skew.value)}`, signal),
    get<Gpus>("/v1/gpus", signal),
  ]);
  const traces = await readTraces(gpus.gpus, status.now_s, signal);
  batch(() => {
    store.status.value = status;
    store.skew.value = status.now_s - Date.now() / 1000;
    store.tasks.value = applyTasks(new Map(), tasks.tasks);
    store.gpus.value = gpus.gpus;
    store.traces.value = traces;
    store.touched.value = { task: -1, n: store.touched.value.n + 1 };
    store.refreshHues();
  });
  void readForecast();
}

/** The minutes before the page was opened. A daemon that keeps no series has none: the lines then grow from here. */
async function readTraces(gpus: readonly GpuView[], now: number, signal: AbortSignal): Promise<Map<number, Trace>> {
  if (gpus.length === 0) return new Map();
  const of = gpus.map((g) => `gpu:${g.index}`).join(",");
  try {
    const answer = await get<SeriesAnswer>(`/v1/series?of=${of}&from_s=${now - TRACE_POINTS}&to_s=${now}&points=${TRACE_POINTS}`, signal);
    return new Map(
      answer.series.map((s) => {
        const column = (name: string): (number | null)[] => (s.columns[name] ?? []).slice(-TRACE_POINTS);
        return [Number(s.of.slice(4)), { smact: column("smact"), smocc: column("smocc"), drama: column("drama") }];
      }),
    );
  } catch (error) {
    if (error instanceof Refused && error.status !== 401) return new Map();
    throw error;
  }
}

const soon = (ms: number, act: () => Promise<void>): (() => void) => {
  let timer: ReturnType<typeof setTimeout> | null = null;
  return () => {
    if (timer) return;
    const mine = generation;
    timer = setTimeout(() => {
      timer = null;
      // What fails here is tried again with the next event; the stream tells whether the daemon is there.
      if (mine === generation) act().catch(() => {});
    }, ms);
  };
};

const gpusSoon = soon(250, async () => {
  const answer = await get<Gpus>("/v1/gpus", abort?.signal);
  batch(() => {
    store.gpus.value = answer.gpus;
    store.refreshHues();
  });
});

const forecastSoon = soon(FORECAST_MS, readForecast);

async function readForecast(): Promise<void> {
  try {
    const answer = await get<Foreseen>("/v1/expected", abort?.signal);
    store.expected.value = new Map(answer.tasks.map((e) => [e.id, e]));
    store.unforeseen.value = null;
  } catch (error) {
    if (error instanceof Refused && error.status !== 401) store.unforeseen.value = error.message;
  }
}

/** The page's clock: the daemon's, a second at a time. */
export function startClock(): void {
  const tick = (): void => {
    store.now.value = Date.now() / 1000 + store.skew.value;
  };
  tick();
  setInterval(tick, 1000);
}
