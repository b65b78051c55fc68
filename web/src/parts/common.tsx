import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { hueOf } from "../store/store.ts";
import { NONE } from "../model/format.ts";

/** A person's colour. The name stands beside it or in its title. */
export const Swatch = ({ user }: { user: string }): JSX.Element => (
  <svg class="swatch" width="9" height="9" aria-hidden="true">
    <rect width="9" height="9" rx="2.5" fill={hueOf(user)} />
  </svg>
);

export const Unit = ({ children }: { children: ComponentChildren }): JSX.Element => <span class="muted">{children}</span>;

/** A number with its unit in muted print. */
export const Num = ({ value, unit, predicted = false }: { value: string; unit?: string; predicted?: boolean }): JSX.Element => (
  <span class={predicted && value !== NONE ? "predicted" : undefined}>
    {value}
    {unit && value !== NONE ? <span class="muted"> {unit}</span> : null}
  </span>
);

export const Predicted = ({ children }: { children: ComponentChildren }): JSX.Element => <span class="predicted">{children}</span>;

/** Patterns that all pictures share: what is not ours, and what no task can reach. */
export const Patterns = (): JSX.Element => (
  <svg class="patterns" width="0" height="0" aria-hidden="true">
    <defs>
      {[
        ["hatch-foreign", "var(--others)"],
        ["hatch-none", "var(--line-strong)"],
      ].map(([id, colour]) => (
        <pattern key={id} id={id} width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect width="5" height="5" fill={colour} opacity="0.18" />
          <line x1="0" y1="0" x2="0" y2="5" stroke={colour} stroke-width="1.6" />
        </pattern>
      ))}
    </defs>
  </svg>
);

/** Shows its children after 200 ms: what is quick does not flash. */
export function Later({ children }: { children: ComponentChildren }): JSX.Element | null {
  const [due, setDue] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setDue(true), 200);
    return () => clearTimeout(timer);
  }, []);
  return due ? <>{children}</> : null;
}

export const Skeleton = (): JSX.Element => (
  <div class="skeleton" role="status" aria-label="Loading">
    <div class="bone w40" />
    <div class="bone tall" />
    <div class="bone w75" />
    <div class="bone w66" />
    <div class="bone tall" />
  </div>
);

export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element => (
  <div class="empty">
    <b>{title}</b>
    {children}
  </div>
);

export const Failure = ({ title, why, retry }: { title: string; why: string; retry?: () => void }): JSX.Element => (
  <div class="empty" role="alert">
    <b>{title}</b>
    <span>{why}</span>
    {retry ? (
      <button type="button" class="button" onClick={retry}>
        Try again
      </button>
    ) : null}
  </div>
);

export const EstimateMark = (): JSX.Element => (
  <svg width="6" height="12" aria-hidden="true">
    <line x1="3" x2="3" y1="0" y2="12" stroke="var(--text)" stroke-width="1.5" />
  </svg>
);

export const BoundMark = (): JSX.Element => (
  <svg width="6" height="12" aria-hidden="true">
    <path d="M1 .6H4.5V11.4H1" fill="none" stroke="var(--text)" stroke-width="1.25" />
  </svg>
);

export const Key = ({ fill, outline = false, opacity = 1 }: { fill: string; outline?: boolean; opacity?: number }): JSX.Element => (
  <svg width="14" height="10" aria-hidden="true">
    {outline ? <rect x="0.5" y="0.5" width="13" height="9" fill="none" stroke={fill} /> : <rect width="14" height="10" fill={fill} opacity={opacity} />}
  </svg>
);
