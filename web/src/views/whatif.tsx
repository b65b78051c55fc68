import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { job } from "../api/client.ts";
import type { PolicyOutcome, WhatIf } from "../api/wire.ts";
import { change, duration, energy, percent, plural, whole } from "../model/format.ts";
import { type Figure, beliefs, best, completions, doneWithin } from "../model/whatif.ts";
import { useAsked } from "../parts/asked.ts";
import { Empty, Num } from "../parts/common.tsx";
import { Assumptions, LastSpan, Simulated } from "../parts/simulated.tsx";
import { useWidth } from "../parts/size.ts";
import * as store from "../store/store.ts";

/** What is compared at first: one task a GPU, a published system, and an order by attained service. */
const POLICIES = ["exclusive", "carma-v2:oracle", "las2d/least-interference/mps"];

export function WhatIfView(): JSX.Element {
  const span = useSignal(7 * 86_400);
  const user = useSignal("");
  const fleet = useSignal("");
  const policies = useSignal<string[]>(POLICIES);
  const adding = useSignal("");
  const since = useMemo(() => store.now.peek() - span.value, [span.value]);
  const body = { since_s: since, user: user.value || null, fleet: fleet.value || null, policies: policies.value };
  const [known, again] = useAsked((signal) => job<WhatIf>("/v1/whatif", body, signal), [JSON.stringify(body)], JSON.stringify(body));
  const users = [...new Set([...store.tasks.value.values()].map((t) => t.user))].sort();
  return (
    <>
      <div class="view-head">
        <h1>What if</h1>
        <LastSpan value={span.value} set={(seconds) => (span.value = seconds)} />
        <label class="field">
          of
          <select value={user.value} onChange={(e) => (user.value = e.currentTarget.value)}>
            <option value="">everybody</option>
            {users.map((u) => (
              <option key={u} value={u}>
                {u}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          on
          <input class="wide" placeholder="these GPUs" aria-label="Fleet, such as 5xA100-40GB" value={fleet.value} onChange={(e) => (fleet.value = e.currentTarget.value.trim())} />
        </label>
        <span class="grow" />
        <form
          class="field"
          onSubmit={(e) => {
            e.preventDefault();
            const name = adding.value.trim();
            if (name && !policies.value.includes(name)) policies.value = [...policies.value, name];
            adding.value = "";
          }}
        >
          <input class="wide" aria-label="Policy to add" placeholder="best-effort/magm/mps" value={adding.value} onInput={(e) => (adding.value = e.currentTarget.value)} />
          <button type="submit" class="button">
            Add a policy
          </button>
        </form>
      </div>
      <Simulated
        known={known}
        failure="That could not be simulated."
        retry={() => {
          policies.value = POLICIES;
          again();
        }}
        nothing="What if begins with what was seen."
        isEmpty={(w) => w.observed.tasks.length === 0}
      >
        {(w) => <Compared w={w} remove={(name) => (policies.value = policies.value.filter((p) => p !== name))} />}
      </Simulated>
    </>
  );
}

const nameOf = (row: PolicyOutcome): string => row.policy;

function Compared({ w, remove }: { w: WhatIf; remove: (policy: string) => void }): JSX.Element {
  // Without a model of what ran there is nothing but what was seen to compare with.
  const base = w.model ?? w.observed;
  const predicted = w.model ? [w.model, ...w.rows] : w.rows;
  const most = Math.max(1, ...[w.observed, ...predicted].map((r) => r.jct_mean_s ?? 0)) * 1.03;
  const tasks = w.observed.tasks.length;
  return (
    <>
      <div class="card wide-table below" tabIndex={0} role="region" aria-label="Policies compared">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">Policy</th>
              <th scope="colgroup" colSpan={3}>
                mean completion time
              </th>
              <th scope="colgroup" class="end" colSpan={2}>
                p95 completion
              </th>
              <th scope="colgroup" class="end" colSpan={2}>
                mean wait
              </th>
              <th scope="col" class="end">
                OOMs
              </th>
              <th scope="colgroup" class="end" colSpan={2}>
                SM activity
              </th>
              <th scope="colgroup" class="end" colSpan={2}>
                energy
              </th>
            </tr>
          </thead>
          <tbody>
            <OutcomeRow row={w.observed} kind="observed" base={base} all={predicted} most={most} note={plural(tasks, "task")} />
            {w.model ? <OutcomeRow row={w.model} kind="base" base={base} all={predicted} most={most} note={nameOf(w.model)} /> : null}
            {w.rows.map((row) => (
              <OutcomeRow key={row.policy} row={row} kind="other" base={base} all={predicted} most={most} note="" remove={remove} />
            ))}
          </tbody>
        </table>
      </div>
      <div class="two">
        <section class="card pad">
          <div class="section-head">
            <h2>Done within</h2>
            <span class="muted small">% of {plural(tasks, "task")}, predicted</span>
          </div>
          <DoneWithin rows={predicted} names={predicted.map((row) => (row === w.model ? "As it ran" : nameOf(row)))} />
        </section>
        <Believed w={w} />
      </div>
    </>
  );
}

interface RowProps {
  row: PolicyOutcome;
  kind: "observed" | "base" | "other";
  base: PolicyOutcome;
  all: PolicyOutcome[];
  most: number;
  note: string;
  remove?: (policy: string) => void;
}

function OutcomeRow({ row, kind, base, all, most, note, remove }: RowProps): JSX.Element {
  const compared = kind === "other";
  const emulated = store.status.value?.emulated ?? false;
  const cells = (figure: Figure, text: [string, string]): JSX.Element[] => {
    // More activity is neither better nor worse by itself.
    const wins = kind !== "observed" && figure !== "smact_mean" && row[figure] != null && row[figure] === best(all, figure);
    const shown = <Num value={text[0]} unit={text[1]} predicted={kind !== "observed"} />;
    return [
      <td key={figure} class="end" data-f={figure}>
        {wins ? <b>{shown}</b> : shown}
      </td>,
      <td key={`${figure}-d`} class="end delta">
        {compared ? change(row[figure], base[figure]) : ""}
      </td>,
    ];
  };
  const x = (v: number | null | undefined): string => `${((100 * (v ?? 0)) / most).toFixed(2)}%`;
  return (
    <tr class={kind} data-policy={kind === "other" ? row.policy : kind}>
      <td>
        <b>{kind === "observed" ? "Observed" : kind === "base" ? "As it ran" : nameOf(row)}</b>{" "}
        {kind === "observed" ? <span class="chip">{emulated ? "emulated" : "measured"}, as it was</span> : kind === "base" ? <span class="chip outline">compared with</span> : null}
        {compared && remove ? (
          <button type="button" class="chip outline" aria-label={`Leave out ${row.policy}`} onClick={() => remove(row.policy)}>
            ✕
          </button>
        ) : null}
        {note ? (
          <>
            <br />
            <span class="muted small">{note}</span>
          </>
        ) : null}
      </td>
      <td class="bar">
        <svg width="100%" height="14" aria-hidden="true">
          <rect y="3" width={x(row.jct_mean_s)} height="8" fill={kind === "base" ? "var(--text)" : "var(--line-strong)"} />
          <line x1={x(base.jct_mean_s)} x2={x(base.jct_mean_s)} y1="0" y2="14" stroke="var(--text)" stroke-width="1.25" />
        </svg>
      </td>
      {cells("jct_mean_s", duration(row.jct_mean_s))}
      {cells("jct_p95_s", duration(row.jct_p95_s))}
      {cells("wait_mean_s", duration(row.wait_mean_s))}
      <td class="end" data-f="oom_count">
        {whole(row.oom_count)}
      </td>
      {cells("smact_mean", [percent(row.smact_mean), "%"])}
      {cells("energy_j", energy(row.energy_j))}
    </tr>
  );
}

const STROKES: readonly [string, string, number][] = [
  ["var(--text)", "", 2],
  ["var(--muted)", "5 3", 1.5],
  ["var(--muted)", "1.5 3", 2],
  ["var(--link)", "", 1.75],
  ["var(--link)", "5 3", 1.5],
  ["var(--muted)", "8 3 2 3", 1.5],
];

function DoneWithin({ rows, names }: { rows: PolicyOutcome[]; names: string[] }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const all = rows.map(completions);
  const ends = all.flat().filter((s) => s > 0);
  if (ends.length === 0) return <Empty title="No task by task outcome was told." />;
  const from = Math.max(1, Math.min(...ends) / 1.5);
  const to = Math.max(from * 4, Math.max(...ends) * 1.2);
  const small = width < 560;
  const [left, right, top, bottom, height] = [36, small ? 12 : 124, 10, 34, 230];
  const x = (s: number): number => left + (Math.log(s / from) / Math.log(to / from)) * (width - left - right);
  const y = (p: number): number => top + (1 - p) * (height - top - bottom);
  const marks = [1, 10, 60, 300, 900, 3600, 4 * 3600, 16 * 3600, 64 * 3600].filter((s) => s >= from && s <= to);
  return (
    <div ref={box}>
      {width > 0 ? (
        <svg width={width} height={height} role="img" aria-label="Share of tasks done within a time, by policy; the table above has the means">
          {[0, 0.25, 0.5, 0.75, 1].map((p) => (
            <g key={p}>
              <line x1={left} x2={width - right} y1={y(p)} y2={y(p)} class="grid" />
              <text x={left - 6} y={y(p) + 4} text-anchor="end">
                {100 * p}
              </text>
            </g>
          ))}
          {marks.map((s) => (
            <g key={s}>
              <text x={x(s)} y={height - 18} text-anchor="middle">
                {s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : `${s / 3600} h`}
              </text>
              <line x1={x(s)} x2={x(s)} y1={y(0)} y2={y(0) + 4} class="axis" />
            </g>
          ))}
          {all.map((times, k) => {
            const [stroke, dash, w] = STROKES[k % STROKES.length]!;
            const points = doneWithin(times, from, to).map((d) => `${x(d.s).toFixed(1)},${y(d.share).toFixed(1)}`);
            return <polyline key={k} points={points.join(" ")} fill="none" stroke={stroke} stroke-width={w} stroke-dasharray={dash || undefined} />;
          })}
          {names.map((name, k) => {
            const [stroke, dash, w] = STROKES[k % STROKES.length]!;
            return (
              <g key={name} transform={`translate(${small ? left + 10 : width - right + 10},${small ? 16 + k * 16 : top + 26 + k * 20})`}>
                <line x2="18" y1="-4" y2="-4" stroke={stroke} stroke-width={w} stroke-dasharray={dash || undefined} />
                <text x="24" class="strong">
                  {name.length > 16 ? `${name.slice(0, 15)}…` : name}
                </text>
              </g>
            );
          })}
          <text x={left} y={height - 3}>
            from submission to end, logarithmic
          </text>
        </svg>
      ) : null}
    </div>
  );
}

function Believed({ w }: { w: WhatIf }): JSX.Element {
  const show = (v: number | null, kind: "time" | "energy"): [string, string] => (kind === "time" ? duration(v) : energy(v));
  return (
    <section class="card pad">
      <div class="section-head">
        <h2>Can it be believed?</h2>
        <span class="muted small">the model on the policy that really ran</span>
      </div>
      <table class="table flush">
        <thead>
          <tr>
            <th scope="col">
              <span class="hidden">Figure</span>
            </th>
            <th scope="col" class="end">
              as it was
            </th>
            <th scope="col" class="end">
              predicted
            </th>
            <th scope="col" class="end">
              off by
            </th>
          </tr>
        </thead>
        <tbody>
          {beliefs(w).map((b) => (
            <tr key={b.title}>
              <td>{b.title}</td>
              <td class="end">
                <Num value={show(b.observed, b.kind)[0]} unit={show(b.observed, b.kind)[1]} />
              </td>
              <td class="end">
                <Num value={show(b.predicted, b.kind)[0]} unit={show(b.predicted, b.kind)[1]} predicted />
              </td>
              <td class="end">
                <b class={b.doubtful ? "warn-text" : undefined}>{b.off}</b>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {w.assumptions.length > 0 ? <Assumptions title="Assumed." list={w.assumptions} /> : null}
    </section>
  );
}
