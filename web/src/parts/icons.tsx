import type { JSX } from "preact";
import type { TaskView } from "../api/wire.ts";
import { isEnded, isRunning } from "../store/apply.ts";

const PATHS: Record<string, string> = {
  queue: "M3 5h14M3 10h14M3 15h9",
  timeline: "M3 5h7M7 10h9M5 15h6",
  whatif: "M4 16V4M4 16h13M7 12l3-4 3 2 4-5",
  savings: "M5 16V9M10 16V4M15 16v-5",
};

export const ViewIcon = ({ name }: { name: string }): JSX.Element => (
  <svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" aria-hidden="true">
    {name === "fleet" ? [3, 11].map((x) => [3, 11].map((y) => <rect key={`${x}${y}`} x={x} y={y} width="6" height="6" rx="1" />)) : <path d={PATHS[name]} />}
  </svg>
);

export interface StateWords {
  word: string;
  glyph: "run" | "retry" | "wait" | "held" | "done" | "failed" | "gone";
}

export function stateWords(task: TaskView): StateWords {
  if (isRunning(task)) return task.ooms > 0 || task.attempts > 1 ? { word: `running, attempt ${task.attempts}`, glyph: task.ooms > 0 ? "retry" : "run" } : { word: task.state, glyph: "run" };
  if (!isEnded(task)) return task.reason_code === "held" || task.held_by ? { word: "held", glyph: "held" } : { word: task.state === "pending" ? "waiting" : task.state, glyph: "wait" };
  if (task.state === "completed") return { word: "completed", glyph: "done" };
  return { word: task.state.replaceAll("_", " "), glyph: task.state === "cancelled" ? "gone" : "failed" };
}

export function StateGlyph({ task }: { task: TaskView }): JSX.Element {
  const { word, glyph } = stateWords(task);
  return (
    <svg class="state-glyph" width="12" height="12" role="img" aria-label={word}>
      <title>{word}</title>
      {glyph === "run" ? <circle cx="6" cy="6" r="4" fill="var(--muted)" /> : null}
      {glyph === "retry" ? <path d="M6 1l5.4 9.5H.6z" fill="var(--warn)" /> : null}
      {glyph === "wait" ? <circle cx="6" cy="6" r="3.5" fill="none" stroke="var(--muted)" stroke-width="1.5" /> : null}
      {glyph === "held" ? <path d="M3.7 2v8M8.3 2v8" stroke="var(--muted)" stroke-width="2.2" /> : null}
      {glyph === "done" ? <path d="M2 6.5l3 3 5-6.5" fill="none" stroke="var(--muted)" stroke-width="1.8" /> : null}
      {glyph === "gone" ? <path d="M2.5 6h7" stroke="var(--muted)" stroke-width="2" /> : null}
      {glyph === "failed" ? <path d="M2.5 2.5l7 7m0-7l-7 7" stroke="var(--bad)" stroke-width="2" /> : null}
    </svg>
  );
}

export type MarkKind = "oom" | "recovered" | "preempted" | "failed";

/** What happened to an attempt, on a timeline or a chart. */
export function Mark({ kind, x, y }: { kind: MarkKind; x: number; y: number }): JSX.Element {
  switch (kind) {
    case "oom":
      return <path d={`M${x} ${y - 6}l6 10.5h-12z`} fill="var(--warn)" stroke="var(--surface)" stroke-width="1.5" />;
    case "recovered":
      return <circle cx={x} cy={y} r="4.2" fill="var(--surface)" stroke="var(--warn)" stroke-width="2" />;
    case "preempted":
      return (
        <g stroke="var(--surface)" stroke-width="1.5" fill="var(--text)">
          <rect x={x - 5.5} y={y - 6} width="4.5" height="12" />
          <rect x={x + 0.5} y={y - 6} width="4.5" height="12" />
        </g>
      );
    default:
      return (
        <g stroke-linecap="round" fill="none">
          <path d={`M${x - 4} ${y - 4}l8 8m0-8l-8 8`} stroke="var(--surface)" stroke-width="5" />
          <path d={`M${x - 4} ${y - 4}l8 8m0-8l-8 8`} stroke="var(--bad)" stroke-width="2.4" />
        </g>
      );
  }
}

export const MARKS: readonly [MarkKind, string][] = [
  ["oom", "out of memory"],
  ["recovered", "brought back"],
  ["preempted", "preempted"],
  ["failed", "failed"],
];
