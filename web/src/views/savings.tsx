import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import { job } from "../api/client.ts";
import type { Savings } from "../api/wire.ts";
import { date, energy, fixed, kwh, plural, span, whole } from "../model/format.ts";
import { roundUp } from "../model/scale.ts";
import { useAsked } from "../parts/asked.ts";
import { Key, Swatch } from "../parts/common.tsx";
import { Assumptions, LastSpan, Simulated } from "../parts/simulated.tsx";
import { useWidth } from "../parts/size.ts";
import { prices } from "../store/choices.ts";
import * as store from "../store/store.ts";

export function SavingsView(): JSX.Element {
  const length = useSignal(30 * 86_400);
  const since = useMemo(() => store.now.peek() - length.value, [length.value]);
  const [known, again] = useAsked((signal) => job<Savings>(`/v1/savings?since_s=${since}`, null, signal), [since], since);
  return (
    <>
      <div class="view-head">
        <h1>Savings</h1>
        <LastSpan value={length.value} set={(seconds) => (length.value = seconds)} />
        <span class="chip outline wide-only">predicted by the simulator on this daemon’s journal</span>
        <span class="grow" />
        <Price label="energy" unit="€ / kWh" value={prices.value.kwh} set={(kwh) => (prices.value = { ...prices.value, kwh })} />
        <Price label="a GPU" unit="€ / h" value={prices.value.gpuHour} set={(gpuHour) => (prices.value = { ...prices.value, gpuHour })} />
      </div>
      <Simulated known={known} failure="What was saved could not be worked out." retry={again} nothing="Savings compare what ran with a GPU for each task." isEmpty={(s) => s.by_user.length === 0}>
        {(s) => <Shown s={s} />}
      </Simulated>
    </>
  );
}

function Price({ label, unit, value, set }: { label: string; unit: string; value: number; set: (v: number) => void }): JSX.Element {
  return (
    <label class="field">
      {label}
      <input
        type="number"
        min="0"
        step="0.01"
        value={value}
        onInput={(e) => {
          const v = Number(e.currentTarget.value);
          if (Number.isFinite(v) && v >= 0) set(v);
        }}
      />
      {unit}
    </label>
  );
}

const sum = (values: number[]): number => values.reduce((a, v) => a + v, 0);

function Shown({ s }: { s: Savings }): JSX.Element {
  const shared = sum(s.by_day.map((d) => d.shared_gpu_h));
  const exclusive = sum(s.by_day.map((d) => d.exclusive_gpu_h));
  const tasks = sum(s.by_user.map((u) => u.tasks));
  const perTask = (pick: (u: Savings["by_user"][number]) => number): number => (tasks > 0 ? sum(s.by_user.map(pick)) / tasks : 0);
  const waited = perTask((u) => u.waited_s);
  const would = perTask((u) => u.would_have_waited_s);
  const hours = s.gpu_hours_saved ?? exclusive - shared;
  const [e, unit] = energy(s.energy_saved_j == null ? null : Math.abs(s.energy_saved_j));
  const less = (v: number | null | undefined): string => ((v ?? 0) < 0 ? "more" : "less");
  return (
    <>
      <div class="three">
        <section class="card pad" data-saved="gpu_hours">
          <h2>GPU hours</h2>
          <div class="large predicted">
            {hoursText(Math.abs(hours))}{" "}
            <small>
              h {hours < 0 ? "more" : "not needed"}
              {exclusive > 0 ? `, ${hours < 0 ? "+" : "−"}${fixed((100 * Math.abs(hours)) / exclusive, 0)} %` : ""}, {fixed(Math.abs(hours) * prices.value.gpuHour, 0)} €
            </small>
          </div>
          <Pair with_={shared} without={exclusive} unit="h" />
        </section>
        <section class="card pad" data-saved="energy">
          <h2>Energy</h2>
          <div class="large predicted">
            {e} <small>{s.energy_saved_j == null ? "is not known" : `${unit} ${less(s.energy_saved_j)} drawn, ${fixed(Math.abs(kwh(s.energy_saved_j) ?? 0) * prices.value.kwh, 2)} €`}</small>
          </div>
          <p class="muted small">The model’s power of each GPU, under both ways of running.</p>
        </section>
        <section class="card pad" data-saved="jct">
          <h2>Time to completion, mean of {plural(tasks, "task")}</h2>
          <div class="large predicted">
            {span(s.jct_saved_mean_s == null ? null : Math.abs(s.jct_saved_mean_s))} <small>{less(s.jct_saved_mean_s)} for each task</small>
          </div>
          <Pair with_={waited / 60} without={would / 60} unit="min of waiting" />
        </section>
      </div>
      <div class="columns level">
        <section class="card pad">
          <div class="section-head">
            <h2>GPU hours a day</h2>
            <span class="right legend">
              <span>
                <Key fill="var(--bar)" />
                with coloc
              </span>
              <span>
                <Key fill="var(--line-strong)" outline />
                one task a GPU
              </span>
            </span>
          </div>
          <Days days={s.by_day} />
        </section>
        <Cost s={s} />
      </div>
      <People s={s} />
    </>
  );
}

const hoursText = (h: number): string => (h >= 100 ? whole(h) : fixed(h, h >= 10 ? 1 : 2));

function Pair({ with_, without, unit }: { with_: number; without: number; unit: string }): JSX.Element {
  const most = Math.max(with_, without, 1e-9);
  const x = (v: number): string => `${((100 * v) / most).toFixed(2)}%`;
  return (
    <>
      <svg width="100%" height="40" aria-hidden="true">
        <rect x="0.5" y="2" width={x(0.997 * without)} height="13" fill="none" stroke="var(--line-strong)" />
        <rect y="22" width={x(with_)} height="13" fill="var(--bar)" />
      </svg>
      <div class="between small muted">
        <span>
          <b>{hoursText(with_)}</b> {unit} with coloc
        </span>
        <span>
          <b class="predicted">{hoursText(without)}</b> exclusively
        </span>
      </div>
    </>
  );
}

const dayStart = (day: string | number): number => (typeof day === "number" ? day : new Date(`${day}T00:00:00`).getTime() / 1000);

function Days({ days }: { days: Savings["by_day"] }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [left, right, top, bottom, height] = [40, 8, 10, 22, 232];
  const most = roundUp(Math.max(0.1, ...days.flatMap((d) => [d.exclusive_gpu_h, d.shared_gpu_h])));
  const x = (k: number): number => left + ((k + 0.5) / days.length) * (width - left - right);
  const y = (v: number): number => top + (1 - v / most) * (height - top - bottom);
  const bar = Math.min(48, ((width - left - right) / days.length) * 0.62);
  const every = Math.ceil(days.length / Math.max(1, Math.floor((width - left) / 110)));
  return (
    <div ref={box}>
      {width > 0 ? (
        <svg width={width} height={height} role="img" aria-label={`GPU hours a day: ${days.map((d) => `${date(dayStart(d.day))} ${hoursText(d.shared_gpu_h)}, exclusively ${hoursText(d.exclusive_gpu_h)}`).join("; ")}`}>
          {[0, most / 2, most].map((v) => (
            <g key={v}>
              <line x1={left} x2={width - right} y1={y(v)} y2={y(v)} class="grid" />
              <text x={left - 6} y={y(v) + 4} text-anchor="end">
                {Number(v.toPrecision(3))}
              </text>
            </g>
          ))}
          {days.map((d, k) => (
            <g key={d.day}>
              <title>{`${date(dayStart(d.day))}: ${hoursText(d.shared_gpu_h)} h, exclusively ${hoursText(d.exclusive_gpu_h)} h`}</title>
              <rect x={x(k) - bar / 2 + 0.5} y={y(d.exclusive_gpu_h) + 0.5} width={Math.max(1, bar - 1)} height={Math.max(0, y(0) - y(d.exclusive_gpu_h) - 1)} fill="none" stroke="var(--line-strong)" />
              <rect x={x(k) - bar / 2} y={y(d.shared_gpu_h)} width={bar} height={Math.max(0, y(0) - y(d.shared_gpu_h))} fill="var(--bar)" />
              {k % every === 0 ? (
                <text x={x(k)} y={height - 6} text-anchor={k === days.length - 1 && days.length > 1 ? "end" : "middle"}>
                  {date(dayStart(d.day))}
                </text>
              ) : null}
            </g>
          ))}
        </svg>
      ) : null}
    </div>
  );
}

function Cost({ s }: { s: Savings }): JSX.Element {
  return (
    <section class="card pad">
      <div class="section-head">
        <h2>What it cost</h2>
      </div>
      <table class="table flush">
        <tbody>
          <tr>
            <td>Tasks slowed by more than {fixed(100 * (s.cost.slowed_beyond - 1), 0)} %</td>
            <td class="end">
              <b>{whole(s.cost.slowed_tasks)}</b> <span class="muted">of {whole(s.cost.known_tasks)} of which that is known</span>
            </td>
          </tr>
          <tr>
            <td>Work done twice after running out of memory</td>
            <td class="end">
              <b>{span(s.cost.oom_repeated_s)}</b>
            </td>
          </tr>
        </tbody>
      </table>
      <Assumptions title="Against what?" list={["the same tasks, first come first served, a GPU each", ...s.assumptions]}>
        <a href="#/whatif" class="text-link">
          See for yourself
        </a>
      </Assumptions>
    </section>
  );
}

function People({ s }: { s: Savings }): JSX.Element {
  return (
    <section class="card people">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Person</th>
            <th scope="col" class="end">
              tasks
            </th>
            <th scope="col" class="end">
              mean wait
            </th>
            <th scope="col" class="end">
              exclusively
            </th>
            <th scope="col" class="end wide-only">
              GPU hours
            </th>
            <th scope="col" class="end wide-only">
              exclusively
            </th>
            <th scope="col" class="end wide-only">
              energy
            </th>
          </tr>
        </thead>
        <tbody>
          {s.by_user.map((u) => (
            <tr key={u.user} data-user={u.user}>
              <td>
                <span class="name">
                  <Swatch user={u.user} />
                  <b>{u.user}</b>
                </span>
              </td>
              <td class="end" data-f="tasks">
                {whole(u.tasks)}
              </td>
              <td class="end">{span(u.tasks ? u.waited_s / u.tasks : null)}</td>
              <td class="end">
                <span class="predicted">{span(u.tasks ? u.would_have_waited_s / u.tasks : null)}</span>
              </td>
              <td class="end wide-only" data-f="shared_gpu_h">
                {hoursText(u.shared_gpu_h)}
              </td>
              <td class="end wide-only" data-f="exclusive_gpu_h">
                <span class="predicted">{hoursText(u.exclusive_gpu_h)}</span>
              </td>
              <td class="end wide-only" data-f="energy_j">
                {energy(u.energy_j).join(" ")}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
