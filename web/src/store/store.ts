// Everything that the page knows, as signals. Written by `live.ts` and by views that ask for more; read everywhere.
import { batch, computed, signal } from "@preact/signals";
import type { Expected, GpuView, StatusView, TaskView } from "../api/wire.ts";
import { assignHues, type Hue, sameHues } from "../model/hues.ts";
import { type Trace, isEnded, isRunning, isWaiting } from "./apply.ts";

export type Link =
  | { word: "loading" }
  | { word: "live" }
  | { word: "stale"; sinceS: number; retryAtMs: number; why: string };

export const link = signal<Link>({ word: "loading" });
export const status = signal<StatusView | null>(null);
export const gpus = signal<GpuView[]>([]);
export const tasks = signal<ReadonlyMap<number, TaskView>>(new Map());
export const traces = signal<ReadonlyMap<number, Trace>>(new Map());
export const expected = signal<ReadonlyMap<number, Expected>>(new Map());
/** Why nothing can be foreseen; null while it can. */
export const unforeseen = signal<string | null>(null);
/** Counts what happened to each task, so that a view of one task knows when to ask again. */
export const touched = signal<{ task: number; n: number }>({ task: 0, n: 0 });
/** Seconds by the daemon's clock. */
export const now = signal(Date.now() / 1000);
/** By how much the daemon's clock is ahead of the browser's. */
export const skew = signal(0);
export const notice = signal<{ text: string; bad: boolean } | null>(null);

export const me = computed(() => status.value?.user ?? "");
export const mayAct = computed(() => status.value?.scope === "act");
export const running = computed(() => [...tasks.value.values()].filter(isRunning));
export const waiting = computed(() => [...tasks.value.values()].filter(isWaiting));
export const ended = computed(() => [...tasks.value.values()].filter(isEnded));

export const hues = signal<ReadonlyMap<string, Hue>>(new Map());

/** Hues follow what people hold on GPUs; people who only wait come after them. */
export function refreshHues(): void {
  const held = new Map<string, number>();
  for (const gpu of gpus.value) for (const r of gpu.residents) if (r.user) held.set(r.user, (held.get(r.user) ?? 0) + r.promised_bytes);
  for (const task of tasks.value.values()) if (!held.has(task.user) && !isEnded(task)) held.set(task.user, 0);
  const next = assignHues(hues.value, me.value, held);
  if (!sameHues(hues.value, next)) hues.value = next;
}

export const hueOf = (user: string): string => `var(--${hues.value.get(user) ?? (user && user === me.value ? "you" : "others")})`;

export function forget(): void {
  batch(() => {
    link.value = { word: "loading" };
    status.value = null;
    gpus.value = [];
    tasks.value = new Map();
    traces.value = new Map();
    expected.value = new Map();
    hues.value = new Map();
    notice.value = null;
  });
}

let noticeTimer: ReturnType<typeof setTimeout> | undefined;

/** Says something for a few seconds. */
export function say(text: string, bad = false): void {
  clearTimeout(noticeTimer);
  notice.value = { text, bad };
  noticeTimer = setTimeout(() => (notice.value = null), bad ? 12_000 : 5_000);
}
