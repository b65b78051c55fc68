// What an event does to what is known. Pure, so that a lost or doubled task is a matter for a unit test.
import type { GpuView, Resident, Sample, SampleGpu, TaskView } from "../api/wire.ts";

/** Figures of a GPU over the last minutes, oldest first. */
export interface Trace {
  smact: (number | null)[];
  smocc: (number | null)[];
  drama: (number | null)[];
}

export const TRACE_POINTS = 72;

const RUNNING = new Set(["launching", "running", "preempting"]);
const ENDED = new Set(["completed", "failed", "cancelled", "timed_out", "out_of_memory", "lost"]);

export const isEnded = (task: TaskView): boolean => ENDED.has(task.state);
export const isRunning = (task: TaskView): boolean => RUNNING.has(task.state);
export const isWaiting = (task: TaskView): boolean => !isEnded(task) && !isRunning(task);

const definedOf = <T extends object>(values: T): Partial<T> =>
  Object.fromEntries(Object.entries(values).filter(([, v]) => v !== undefined)) as Partial<T>;

function applyResidents(gpu: GpuView, sample: SampleGpu, tasks: ReadonlyMap<number, TaskView>): Resident[] {
  const before = new Map(gpu.residents.map((r) => [r.id, r]));
  return sample.residents.map((now) => {
    const task = tasks.get(now.id);
    const known: Resident = before.get(now.id) ?? residentOf(task, now.id);
    return { ...known, ...definedOf(now), promised_bytes: now.promised_bytes ?? known.promised_bytes };
  });
}

/** A task that came since the list was read: what the queue knows of it stands in until the list is read again. */
function residentOf(task: TaskView | undefined, id: number): Resident {
  return {
    id,
    name: task?.name ?? "",
    user: task?.user ?? "",
    promised_bytes: task?.promised_bytes ?? 0,
    estimate_bytes: task?.estimate_bytes ?? null,
    bound_bytes: task?.bound_bytes ?? null,
    since_s: task?.started_s ?? null,
    attempt: task?.attempts ?? 1,
    ooms: task?.ooms ?? 0,
    gpus: task?.gpu_ids.length ?? 1,
    settled: false,
    instance: null,
    leader_pid: null,
    used_bytes: null,
    slowdown: null,
    sm_share: null,
  };
}

export interface SampleEffect {
  gpus: GpuView[];
  /** Whether something is on a GPU that the list did not tell of, or has left it: then the list is worth reading again. */
  changed: boolean;
}

export function applySample(gpus: readonly GpuView[], sample: Sample, tasks: ReadonlyMap<number, TaskView>): SampleEffect {
  const by = new Map(sample.gpus.map((g) => [g.index, g]));
  let changed = false;
  const next = gpus.map((gpu) => {
    const now = by.get(gpu.index);
    if (!now) return gpu;
    const residents = applyResidents(gpu, now, tasks);
    const same = residents.length === gpu.residents.length && residents.every((r, k) => r.id === gpu.residents[k]?.id);
    if (!same) changed = true;
    const { residents: _, foreign_bytes, ...figures } = now;
    return { ...gpu, ...definedOf(figures), ...(foreign_bytes === undefined ? {} : { foreign_bytes }), residents };
  });
  return { gpus: next, changed };
}

const push = (column: (number | null)[], value: number | null | undefined): (number | null)[] => [...column.slice(-(TRACE_POINTS - 1)), value ?? null];

export function applyTraces(traces: ReadonlyMap<number, Trace>, sample: Sample): Map<number, Trace> {
  const next = new Map(traces);
  for (const g of sample.gpus) {
    const t = traces.get(g.index) ?? { smact: [], smocc: [], drama: [] };
    next.set(g.index, { smact: push(t.smact, g.smact), smocc: push(t.smocc, g.smocc), drama: push(t.drama, g.drama) });
  }
  return next;
}

/** How many ended tasks a page keeps: a page that is open for a week must not grow. */
export const KEPT_ENDED = 2000;

export function applyTasks(tasks: ReadonlyMap<number, TaskView>, changed: readonly TaskView[]): Map<number, TaskView> {
  const next = new Map(tasks);
  for (const task of changed) next.set(task.id, task);
  const ended = [...next.values()].filter(isEnded);
  if (ended.length > KEPT_ENDED) {
    ended.sort((a, b) => (a.ended_s ?? 0) - (b.ended_s ?? 0));
    for (const task of ended.slice(0, ended.length - KEPT_ENDED)) next.delete(task.id);
  }
  return next;
}

/** An event of another life of the daemon, or one that was seen already, is not applied. */
export interface Place {
  epoch: string;
  seq: number;
}

export function placeOf(id: string | null): Place | null {
  const match = id === null ? null : /^(.+)\.(\d+)$/.exec(id);
  return match ? { epoch: match[1] ?? "", seq: Number(match[2]) } : null;
}
