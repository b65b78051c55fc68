// Memory drawn: solid is used, tint is promised, hatch is not ours, sunk is free.
import type { JSX } from "preact";
import type { GpuView } from "../api/wire.ts";
import { bulletLabel, migSlices, stackSegments } from "../model/memory.ts";
import { gib, gibNumber } from "../model/format.ts";
import { ticks } from "../model/scale.ts";
import { hueOf } from "../store/store.ts";
import { go } from "../route.ts";

const pc = (ratio: number): string => `${(100 * Math.max(0, Math.min(1, ratio))).toFixed(2)}%`;

export interface BulletProps {
  user: string;
  used?: number | null;
  promised?: number | null;
  estimate?: number | null;
  bound?: number | null;
  /** Bytes at the right end. */
  scale: number;
  word?: string;
  tint?: number;
}

/** What a task uses in what it was promised, with its estimate as a tick and its bound as a bracket. */
export function Bullet(p: BulletProps): JSX.Element {
  const middle = 11;
  const x = (bytes: number): string => pc(bytes / p.scale);
  const used = p.used ?? 0;
  const colour = hueOf(p.user);
  const label = bulletLabel(p);
  return (
    <svg class="bullet" width="100%" height="22" role="img" aria-label={label}>
      <title>{label}</title>
      <line x1="0" x2="100%" y1={middle} y2={middle} class="grid" />
      {p.promised ? <rect x="0" y={middle - 5.5} width={x(p.promised)} height="11" rx="1.5" fill={colour} opacity={p.tint ?? 0.26} /> : null}
      <rect x="0" y={middle - 2.5} width={x(used)} height="5" rx="1" fill={colour} />
      {p.bound && used > p.bound ? <rect x={x(p.bound)} y={middle - 2.5} width={x(used - p.bound)} height="5" fill="var(--warn)" /> : null}
      {p.estimate ? <line x1={x(p.estimate)} x2={x(p.estimate)} y1={middle - 7} y2={middle + 7} stroke="var(--text)" stroke-width="1.5" /> : null}
      {p.bound ? (
        <svg x={x(p.bound)} overflow="visible">
          <path d={`M-3 ${middle - 6.5}H0V${middle + 6.5}H-3`} fill="none" stroke="var(--text)" stroke-width="1.25" />
        </svg>
      ) : null}
    </svg>
  );
}

const open = (task: number) => (): void => go(`task/${task}`);

/** The whole of a GPU's memory, task by task from the left, what coloc did not start from the right. */
export function Stack({ gpu, height = 28, axis = true }: { gpu: GpuView; height?: number; axis?: boolean }): JSX.Element {
  const total = gpu.memory_total_bytes || 1;
  const { own, foreign } = stackSegments(gpu);
  const label = `Memory of GPU ${gpu.index}: ${gib(gpu.memory_used_bytes)} of ${gib(total)} GiB used, ${gib(gpu.memory_promised_bytes)} promised`;
  return (
    <svg class="stack" width="100%" height={height + (axis ? 17 : 0)} role="img" aria-label={label}>
      <rect x="0" y="0" width="100%" height={height} rx="2" fill="var(--sunk)" />
      {own.map((s) => (
        <g key={s.id} class="opens" onClick={open(s.id)}>
          <title>{`${s.id} ${s.name} (${s.user}): ${gib(s.used)} GiB used, ${gib(s.promised)} promised`}</title>
          <rect x={pc(s.from / total)} y="0" width={pc(s.width / total)} height={height} fill={hueOf(s.user)} opacity="0.26" />
          <rect x={pc(s.from / total)} y="0" width={pc(Math.min(s.used, s.width) / total)} height={height} fill={hueOf(s.user)} />
          <line x1={pc((s.from + s.width) / total)} x2={pc((s.from + s.width) / total)} y1="0" y2={height} stroke="var(--surface)" stroke-width="2" />
        </g>
      ))}
      {foreign.map((f) => (
        <g key={f.key}>
          <title>{f.label}</title>
          <rect x={pc(f.from / total)} y="0" width={pc(f.width / total)} height={height} fill="url(#hatch-foreign)" />
          <line x1={pc(f.from / total)} x2={pc(f.from / total)} y1="0" y2={height} stroke="var(--surface)" stroke-width="2" />
        </g>
      ))}
      {axis ? <Axis total={total} y={height} /> : null}
    </svg>
  );
}

function Axis({ total, y }: { total: number; y: number }): JSX.Element {
  const most = gibNumber(total);
  const at = ticks(0, most, 4).filter((v) => v < most * 0.93);
  return (
    <>
      {at.map((v) => (
        <g key={v}>
          <line x1={pc(v / most)} x2={pc(v / most)} y1={y} y2={y + 3} class="axis" />
          <text x={pc(v / most)} y={y + 14} text-anchor={v === 0 ? "start" : "middle"}>
            {v}
          </text>
        </g>
      ))}
      <text x="100%" y={y + 14} text-anchor="end">
        {Number.isInteger(most) ? most : most.toFixed(1)} GiB
      </text>
    </>
  );
}

/** MIG instances where they lie on the board's memory slices; what no instance can reach is hatched. */
export function MigBar({ gpu }: { gpu: GpuView }): JSX.Element {
  const height = 28;
  const { slices, total } = migSlices(gpu);
  const x = (s: number): string => pc(s / total);
  return (
    <svg class="stack" width="100%" height={height + 17} role="img" aria-label={`MIG instances of GPU ${gpu.index}`}>
      <rect x="0" y="0" width="100%" height={height} rx="2" fill="var(--sunk)" />
      {slices.map((s) => (
        <g key={s.at} class={s.task ? "opens" : undefined} onClick={s.task ? open(s.task.id) : undefined}>
          <title>{s.label}</title>
          {s.task ? (
            <>
              <rect x={x(s.at)} y="0" width={x(s.width)} height={height} fill={hueOf(s.task.user)} opacity="0.26" />
              <rect x={x(s.at)} y="0" width={x(s.width * Math.min(1, s.filled))} height={height} fill={hueOf(s.task.user)} />
            </>
          ) : s.profile === null ? (
            <rect x={x(s.at)} y="1" width={x(s.width)} height={height - 2} fill="url(#hatch-none)" />
          ) : null}
          {s.at > 0 ? <line x1={x(s.at)} x2={x(s.at)} y1="0" y2={height} stroke="var(--surface)" stroke-width="4" /> : null}
          {Array.from({ length: Math.max(0, s.width - 1) }, (_, k) => (
            <line key={k} x1={x(s.at + k + 1)} x2={x(s.at + k + 1)} y1={height - 4} y2={height} stroke="var(--surface)" stroke-width="1.5" />
          ))}
          <text x={x(s.at + s.width / 2)} y={height + 14} text-anchor="middle" class={s.profile ? "strong" : undefined}>
            {s.profile ?? "–"}
          </text>
        </g>
      ))}
    </svg>
  );
}
