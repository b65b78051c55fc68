import type { GpuView, TaskView } from "../api/wire.ts";

export interface Hit {
  kind: "task" | "person" | "gpu";
  id: number;
  user: string;
  label: string;
  note: string;
}

const MOST = 12;

/** Tasks by number or name, people, GPUs by number or model; what begins with the text comes first, newer tasks before older. */
export function search(text: string, tasks: readonly TaskView[], gpus: readonly GpuView[]): Hit[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  const rank = (s: string): number => (s === wanted ? 0 : s.startsWith(wanted) ? 1 : s.includes(wanted) ? 2 : 9);
  const hits: [number, Hit][] = [];
  for (const g of gpus) {
    const r = Math.min(rank(`gpu ${g.index}`), rank(`gpu${g.index}`), rank(String(g.index)) === 0 ? 0 : 9, rank(g.model.toLowerCase()) + 1);
    if (r < 9) hits.push([r + 0.2, { kind: "gpu", id: g.index, user: "", label: `GPU ${g.index}`, note: g.model }]);
  }
  for (const user of new Set(tasks.map((t) => t.user))) {
    const r = rank(user.toLowerCase());
    if (r < 9) hits.push([r + 0.1, { kind: "person", id: 0, user, label: user, note: "" }]);
  }
  for (const t of tasks) {
    const r = Math.min(rank(t.name.toLowerCase()), rank(String(t.id)) < 2 ? rank(String(t.id)) : 9);
    if (r < 9) hits.push([r + 0.3 - t.id / 1e9, { kind: "task", id: t.id, user: t.user, label: t.name, note: t.state.replaceAll("_", " ") }]);
  }
  return hits.sort((a, b) => a[0] - b[0]).slice(0, MOST).map(([, hit]) => hit);
}
