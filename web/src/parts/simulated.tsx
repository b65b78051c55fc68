// What the views that ask the simulator have in common.
import type { ComponentChildren, JSX } from "preact";
import type { Asked } from "./asked.ts";
import { Empty, Failure, Later, Skeleton } from "./common.tsx";

const SPANS: readonly [string, number][] = [
  ["hour", 3600],
  ["day", 86_400],
  ["7 days", 7 * 86_400],
  ["30 days", 30 * 86_400],
];

/** How far back is looked. */
export function LastSpan({ value, set }: { value: number; set: (seconds: number) => void }): JSX.Element {
  return (
    <label class="field">
      the last
      <select value={value} onChange={(e) => set(Number(e.currentTarget.value))}>
        {SPANS.map(([title, s]) => (
          <option key={s} value={s}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

interface Props<T> {
  known: Asked<T>;
  /** What is said if there is no answer, and how it is asked for again. */
  failure: string;
  retry: () => void;
  /** What is said if nothing ran. */
  nothing: string;
  isEmpty: (value: T) => boolean;
  children: (value: T) => ComponentChildren;
}

/** An answer of the simulator's, or how it stands. */
export function Simulated<T>({ known, failure, retry, nothing, isEmpty, children }: Props<T>): JSX.Element {
  if (known.word === "loading") {
    return (
      <Later>
        <div class="card">
          <p class="pad muted" role="status">
            The simulator runs…
          </p>
          <Skeleton />
        </div>
      </Later>
    );
  }
  if (known.word === "failed") {
    return (
      <div class="card">
        <Failure title={failure} why={known.error.message} retry={retry} />
      </div>
    );
  }
  if (isEmpty(known.value)) {
    return (
      <div class="card">
        <Empty title="Nothing has ended in that time.">
          <span>{nothing}</span>
        </Empty>
      </div>
    );
  }
  return <>{children(known.value)}</>;
}

/** What was assumed, a sentence each. */
export function Assumptions({ title, list, children }: { title: string; list: readonly string[]; children?: ComponentChildren }): JSX.Element {
  const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
  return (
    <p class="note">
      <b>{title}</b> {list.map(sentence).join(" ")} {children}
    </p>
  );
}
