// The queue's rows: which tasks, in which groups and order, arrays put together. Pure.
import type { Expected, TaskView, WhyView } from "../api/wire.ts";
import { isEnded, isRunning, isWaiting } from "../store/apply.ts";
import { gib, midnight, plural } from "./format.ts";

export type Filter = { word: "all" | "yours" | "running" | "waiting" | "ended" } | { word: "user"; user: string };
export type SortKey = "id" | "name" | "for" | "starts" | "ends";

export interface Row {
  task: TaskView;
  /** The other waiting tasks of its array that wait for the same reason; empty for a row of its own. */
  more: TaskView[];
}

export interface Group {
  word: "running" | "waiting" | "ended";
  rows: Row[];
  /** Tasks, counting each of an array. */
  tasks: number;
  people: number;
}

export const endedToday = (task: TaskView, now: number): boolean => isEnded(task) && (task.ended_s ?? 0) >= midnight(now);

export function counts(tasks: Iterable<TaskView>, me: string, now: number): Record<"all" | "yours" | "running" | "waiting" | "ended", number> {
  const n = { all: 0, yours: 0, running: 0, waiting: 0, ended: 0 };
  for (const t of tasks) {
    if (isEnded(t)) {
      if (endedToday(t, now)) n.ended++;
      continue;
    }
    n.all++;
    if (t.user === me) n.yours++;
    if (isRunning(t)) n.running++;
    else n.waiting++;
  }
  return n;
}

/** The order in which waiting tasks are asked: the daemon's position, then what has none. */
function asked(a: TaskView, b: TaskView): number {
  return (a.position ?? Infinity) - (b.position ?? Infinity) || b.priority - a.priority || a.id - b.id;
}

function key(task: TaskView, by: SortKey, expected: ReadonlyMap<number, Expected>, now: number): number | string {
  const e = expected.get(task.id);
  switch (by) {
    case "id":
      return task.id;
    case "name":
      return task.name.toLowerCase();
    case "for":
      return task.ended_s != null && task.started_s != null ? task.ended_s - task.started_s : now - (isRunning(task) ? (task.started_s ?? now) : task.submitted_s);
    case "starts":
      return task.started_s ?? e?.expected_start_s ?? Infinity;
    case "ends":
      return task.ended_s ?? e?.expected_end_s ?? Infinity;
  }
}

function order(tasks: TaskView[], sort: { key: SortKey; down: boolean } | null, natural: (a: TaskView, b: TaskView) => number, expected: ReadonlyMap<number, Expected>, now: number): TaskView[] {
  if (!sort) return tasks.sort(natural);
  const keyed = tasks.map((t) => [key(t, sort.key, expected, now), t] as const);
  const sign = sort.down ? -1 : 1;
  keyed.sort(([a, x], [b, y]) => (a === b ? x.id - y.id : a < b ? -sign : sign));
  return keyed.map(([, t]) => t);
}

/** Tasks of an array that follow each other and wait for the same reason are one row. */
export function foldArrays(tasks: readonly TaskView[], unfolded: ReadonlySet<number>): Row[] {
  const rows: Row[] = [];
  for (const task of tasks) {
    const last = rows.at(-1);
    const same = last && task.array_id != null && last.task.array_id === task.array_id && last.task.reason === task.reason && !unfolded.has(task.array_id);
    if (same) last.more.push(task);
    else rows.push({ task, more: [] });
  }
  return rows;
}

export interface View {
  filter: Filter;
  sort: { key: SortKey; down: boolean } | null;
  me: string;
  now: number;
  unfolded: ReadonlySet<number>;
}

export function groups(all: Iterable<TaskView>, expected: ReadonlyMap<number, Expected>, view: View): Group[] {
  const { filter, sort, now } = view;
  const tasks = [...all].filter((t) => {
    switch (filter.word) {
      case "yours":
        return t.user === view.me && !isEnded(t);
      case "user":
        return t.user === filter.user && (!isEnded(t) || endedToday(t, now));
      case "running":
        return isRunning(t);
      case "waiting":
        return isWaiting(t);
      case "ended":
        return endedToday(t, now);
      default:
        return !isEnded(t);
    }
  });
  const ends = (t: TaskView): number => expected.get(t.id)?.expected_end_s ?? Infinity;
  const byEnd = (a: TaskView, b: TaskView): number => (ends(a) === ends(b) ? a.id - b.id : ends(a) - ends(b));
  const newest = (a: TaskView, b: TaskView): number => (b.ended_s ?? 0) - (a.ended_s ?? 0) || b.id - a.id;
  const made: [Group["word"], TaskView[]][] = [
    ["running", order(tasks.filter(isRunning), sort, byEnd, expected, now)],
    ["waiting", order(tasks.filter(isWaiting), sort, asked, expected, now)],
    ["ended", order(tasks.filter(isEnded), sort, newest, expected, now)],
  ];
  return made
    .filter(([, list]) => list.length > 0)
    .map(([word, list]) => ({
      word,
      rows: word === "waiting" ? foldArrays(list, view.unfolded) : list.map((task) => ({ task, more: [] })),
      tasks: list.length,
      people: new Set(list.map((t) => t.user)).size,
    }));
}

/** A reason that says no more than that there is no GPU; the code then says why. */
export const BARE = "waiting for a GPU";

/** Why a task waits, in a sentence with an amount where one is known. */
export function reasonText(task: TaskView): string {
  const reason = task.reason ?? "";
  if (reason !== BARE) return reason;
  const wants = task.gpu_mem_bytes ?? task.promised_bytes ?? task.bound_bytes ?? task.estimate_bytes;
  const each = task.gpus > 1 ? `${task.gpus} GPUs with ` : "";
  switch (task.reason_code) {
    case "memory":
      return wants == null ? "No GPU has room for it" : task.gpus > 1 ? `Wants ${each}${gib(wants)} GiB at once` : `No GPU has ${gib(wants)} GiB to promise`;
    case "gpus":
      return `Wants ${task.gpus} GPUs at once`;
    case "sm":
      return "Would bring the SM demand of a GPU over its limit";
    case "hot":
      return "GPUs with room for it are hot";
    case "taken":
      return "GPUs with room for it are taken";
    case "exclusive":
      return "Wants a GPU to itself; all have tasks";
    case "settling":
      return "Waits until the memory of its neighbours has settled";
    case "order":
      return "Others go before it";
    case "drained":
      return "GPUs that it may use take nothing new";
    case "lost_gpu":
      return "GPUs that it may use are lost";
    case "quota":
      return "Its user or group holds as much as it may";
    case "host":
      return "The machine’s CPUs or memory are taken";
    default:
      return "Waits for a GPU";
  }
}

/** `460_1` for a task of an array, `461–474` for several that are one row, else the number. */
export function idText(row: Row): string {
  const last = row.more.at(-1);
  if (last) return `${row.task.id}–${last.id}`;
  return row.task.array_id != null && row.task.array_index != null ? `${row.task.array_id}_${row.task.array_index}` : String(row.task.id);
}

export interface Help {
  when: number | null;
  text: string;
  command: string | null;
}

/** The most memory that as many GPUs as the task wants could promise now, if memory is all that they refuse it for. */
function roomFor(why: WhyView): number {
  const rooms = why.gpus
    .filter((g) => g.rules.every((r) => r.rule === "memory" && r.unit === "bytes" && r.have !== null))
    .map((g) => Math.min(Infinity, ...g.rules.map((r) => r.have ?? 0)))
    .sort((a, b) => b - a);
  const room = rooms[why.task.gpus - 1] ?? 0;
  return Number.isFinite(room) ? room : 0;
}

/** What would bring a waiting task on sooner, as far as its refusals tell. */
export function whatWouldHelp(why: WhyView, expected: Expected | undefined): Help[] {
  const helps: Help[] = [];
  const code = why.task.reason_code ?? "";
  if (code === "held") helps.push({ when: null, text: "if it were released", command: `coloc release ${why.task.id}` });
  if (code === "exclusive") helps.push({ when: null, text: "beside others, without a GPU to itself", command: `coloc update ${why.task.id} --exclusive=false` });
  if (why.awaits != null) helps.push({ when: null, text: `when task ${why.awaits} has ended`, command: null });
  const most = code === "memory" ? roomFor(why) : 0;
  if (most > 2 ** 28) helps.push({ when: null, text: `at once, with ${gib(most)} GiB or less`, command: `coloc update ${why.task.id} --gpu-mem ${Math.floor(most / 2 ** 20)}M` });
  if (expected?.expected_start_s != null) {
    const place = why.ahead === 0 ? "first in line" : `${plural(why.ahead, "task")} before it`;
    helps.push({ when: expected.expected_start_s, text: `as it is: ${place}`, command: null });
  }
  return helps;
}
