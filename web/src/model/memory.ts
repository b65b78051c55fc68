// Where things lie in a GPU's memory. Pure.
import type { GpuView, Resident } from "../api/wire.ts";
import { gib, plural } from "./format.ts";

export interface Segment {
  id: number;
  name: string;
  user: string;
  used: number;
  promised: number;
  from: number;
  width: number;
}

export interface ForeignSegment {
  key: string;
  label: string;
  from: number;
  width: number;
}

/** What processes that coloc did not start hold; a process whose memory is hidden counts into the sum if that is known. */
export function foreignBytes(gpu: GpuView): number {
  if (gpu.foreign_bytes != null) return gpu.foreign_bytes;
  return (gpu.foreign ?? []).reduce((sum, f) => sum + (f.bytes ?? 0), 0);
}

export const foreignLabel = (f: { pid: number; user?: string | null; name?: string | null; bytes?: number | null }): string =>
  `${f.name ?? "a process"}${f.user ? ` of ${f.user}` : ""}, pid ${f.pid}: ${gib(f.bytes)} GiB, not started by coloc`;

export function stackSegments(gpu: GpuView): { own: Segment[]; foreign: ForeignSegment[] } {
  let x = 0;
  const own = gpu.residents.map((r) => {
    const used = r.used_bytes ?? 0;
    const segment = { id: r.id, name: r.name, user: r.user, used, promised: r.promised_bytes, from: x, width: Math.max(used, r.promised_bytes) };
    x += segment.width;
    return segment;
  });
  let right = gpu.memory_total_bytes;
  const listed = (gpu.foreign ?? []).filter((f) => (f.bytes ?? 0) > 0);
  const foreign: ForeignSegment[] = listed.map((f) => {
    right -= f.bytes ?? 0;
    return { key: String(f.pid), label: foreignLabel(f), from: right, width: f.bytes ?? 0 };
  });
  const rest = foreignBytes(gpu) - listed.reduce((sum, f) => sum + (f.bytes ?? 0), 0);
  if (rest > 0) foreign.push({ key: "rest", label: `${gib(rest)} GiB not started by coloc`, from: right - rest, width: rest });
  return { own, foreign };
}

/** What is neither promised nor held by others. */
export const freeBytes = (gpu: GpuView): number => Math.max(0, gpu.memory_total_bytes - gpu.memory_promised_bytes - foreignBytes(gpu));

export const residentUsed = (gpu: GpuView): number => gpu.residents.reduce((sum, r) => sum + (r.used_bytes ?? 0), 0);

export interface Slice {
  at: number;
  width: number;
  profile: string | null;
  task: Resident | null;
  /** How much of the instance its task uses, 0 to 1. */
  filled: number;
  label: string;
}

/** Instances on the board's memory slices. Slices that no instance holds are given too, as out of reach. */
export function migSlices(gpu: GpuView): { slices: Slice[]; total: number; unreachable: number } {
  const instances = [...(gpu.instances ?? [])].sort((a, b) => a.start_slice - b.start_slice);
  const total = Math.max(8, ...instances.map((i) => i.start_slice + i.slices));
  const perSlice = gpu.memory_total_bytes / total;
  const slices: Slice[] = [];
  let at = 0;
  let unreachable = 0;
  const gap = (until: number): void => {
    if (until <= at) return;
    const bytes = (until - at) * perSlice;
    unreachable += bytes;
    slices.push({ at, width: until - at, profile: null, task: null, filled: 0, label: `${gib(bytes)} GiB out of reach: no instance lies there` });
    at = until;
  };
  for (const i of instances) {
    gap(i.start_slice);
    const task = gpu.residents.find((r) => r.id === i.task) ?? null;
    const used = task?.used_bytes ?? 0;
    const label = task
      ? `${i.profile} at slice ${i.start_slice}: ${task.id} ${task.name} (${task.user}), ${gib(used)} of ${gib(i.memory_bytes)} GiB used`
      : `${i.profile} at slice ${i.start_slice}: free, ${gib(i.memory_bytes)} GiB`;
    slices.push({ at: i.start_slice, width: i.slices, profile: i.profile, task, filled: i.memory_bytes ? used / i.memory_bytes : 0, label });
    at = i.start_slice + i.slices;
  }
  gap(total);
  return { slices, total, unreachable };
}

export function bulletLabel(p: { used?: number | null; promised?: number | null; estimate?: number | null; bound?: number | null; word?: string }): string {
  const parts = [`${gib(p.used)} GiB ${p.word ?? "used"}`];
  if (p.promised) parts.push(`${gib(p.promised)} promised`);
  parts.push(p.estimate ? `estimated ${gib(p.estimate)}` : "no estimate");
  if (p.bound) parts.push(`at most ${gib(p.bound)}`);
  return parts.join(", ");
}

/** One scale for every bullet in sight: the first of these at or above the largest amount. */
export function bulletScale(amounts: readonly number[]): number {
  const most = Math.max(0, ...amounts);
  const steps = [1, 2, 4, 5, 8, 10, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 512];
  return (steps.find((g) => g * 2 ** 30 >= most) ?? Math.ceil(most / 2 ** 30)) * 2 ** 30;
}

export const sharingText = (gpu: GpuView): string => {
  if (gpu.mig) return `MIG, ${plural((gpu.instances ?? []).length, "instance")}`;
  const clients = gpu.residents.length;
  if (gpu.sharing === "mps") return `MPS, ${plural(clients, "client")}`;
  if (gpu.sharing === "mig") return `MIG, ${plural((gpu.instances ?? []).length, "instance")}`;
  if (gpu.sharing === "streams") return `streams, ${plural(clients, "task")}`;
  return gpu.sharing ?? plural(clients, "task");
};
