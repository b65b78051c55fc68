import type { JSX } from "preact";
import { memo } from "preact/compat";
import type { GpuView, Resident } from "../api/wire.ts";
import { Bullet, MigBar, Stack } from "../parts/bars.tsx";
import { BoundMark, Empty, EstimateMark, Key, Swatch } from "../parts/common.tsx";
import { Figures } from "../parts/figures.tsx";
import { Spark } from "../parts/spark.tsx";
import { clock, fixed, gib, percent, span, times, whole } from "../model/format.ts";
import { bulletScale, foreignBytes, freeBytes, migSlices, residentUsed, sharingText } from "../model/memory.ts";
import { TRACE_POINTS } from "../store/apply.ts";
import { density } from "../store/choices.ts";
import * as store from "../store/store.ts";
import { FleetLines } from "./fleet-lines.tsx";

/** More GPUs than this are lines, unless cards are asked for. */
const MOST_CARDS = 8;

export const verdictClass = (word: string | undefined): string => (word === "hot" ? "verdict warn" : word === "lost" ? "verdict bad" : "verdict");

const VERDICTS: Record<string, string> = { open: "Open", hot: "Closed, hot", full: "Full", taken: "Taken", drained: "Drained", lost: "Lost" };

export function verdictOf(gpu: GpuView): { word: string; head: string; text: string } {
  const v = gpu.verdict;
  if (v) {
    // The head says what the text's first words say.
    const head = VERDICTS[v.word] ?? v.word;
    const text = v.text.replace(/^takes (tasks|nothing new): /, "");
    return { word: v.word, head, text };
  }
  if (gpu.lost) return { word: "lost", head: "Lost", text: (gpu.faults ?? []).join("; ") };
  if (gpu.drained) return { word: "drained", head: "Drained", text: gpu.drain_reason ?? "" };
  return { word: "open", head: "Open", text: `${gib(freeBytes(gpu))} GiB are left` };
}

function PeopleLegend(): JSX.Element {
  const shown = [...store.hues.value.keys()];
  const holds = new Set(store.gpus.value.flatMap((g) => g.residents.map((r) => r.user)));
  const rest = [...holds].some((user) => user && !store.hues.value.has(user));
  return (
    <>
      {shown.map((user) => (
        <span key={user}>
          <Swatch user={user} />
          {user}
          {user === store.me.value ? " (you)" : ""}
        </span>
      ))}
      {rest ? (
        <span>
          <Swatch user="" />
          others
        </span>
      ) : null}
    </>
  );
}

function Legend(): JSX.Element {
  return (
    <div class="legend">
      <PeopleLegend />
      <span>
        <Key fill="var(--muted)" />
        used
      </span>
      <span>
        <Key fill="var(--muted)" opacity={0.3} />
        promised
      </span>
      <span>
        <Key fill="url(#hatch-foreign)" />
        not ours
      </span>
      <span>
        <EstimateMark />
        estimate
      </span>
      <span>
        <BoundMark />
        its bound
      </span>
    </div>
  );
}

export function Fleet(): JSX.Element {
  const gpus = store.gpus.value;
  const mode = density.value ?? (gpus.length > MOST_CARDS ? "lines" : "cards");
  if (gpus.length === 0) {
    return (
      <>
        <div class="view-head">
          <h1>Fleet</h1>
        </div>
        <div class="card">
          <Empty title="There is no GPU on this machine.">
            <span>To try coloc without one:</span>
            <span class="mono">coloc daemon --emulate 4xA100-40GB</span>
          </Empty>
        </div>
      </>
    );
  }
  const scale = bulletScale(gpus.flatMap((g) => [...g.residents.flatMap((r) => [r.used_bytes ?? 0, r.promised_bytes, r.bound_bytes ?? 0]), ...(g.foreign ?? []).map((f) => f.bytes ?? 0)]));
  return (
    <>
      <Figures />
      <div class="view-head">
        <h1>Fleet</h1>
        <div class="segmented" role="group" aria-label="Density">
          <button type="button" aria-pressed={mode === "cards"} onClick={() => (density.value = "cards")}>
            Cards
          </button>
          <button type="button" aria-pressed={mode === "lines"} onClick={() => (density.value = "lines")}>
            Lines
          </button>
        </div>
        <span class="grow" />
        <Legend />
      </div>
      {mode === "cards" ? (
        <div class="fleet">
          {gpus.map((gpu) => (
            <GpuCard key={gpu.index} gpu={gpu} scale={scale} />
          ))}
        </div>
      ) : (
        <FleetLines gpus={gpus} />
      )}
    </>
  );
}

function GpuCard({ gpu, scale }: { gpu: GpuView; scale: number }): JSX.Element {
  const verdict = verdictOf(gpu);
  const mig = gpu.mig === true || gpu.sharing === "mig";
  const lost = verdict.word === "lost";
  return (
    <article class="card gpu" id={`gpu-${gpu.index}`} aria-label={`GPU ${gpu.index}`} data-gpu={gpu.index}>
      <header>
        <h2>GPU {gpu.index}</h2>
        <span class="muted small wide-only model" title={gpu.uuid}>
          {gpu.model}
        </span>
        <span class={lost ? "chip bad" : "chip"} data-f="sharing">
          {lost ? "✕ lost" : sharingText(gpu)}
        </span>
        {gpu.pool.map((pool) => (
          <span key={pool} class="chip outline wide-only" title="Its pool">
            {pool}
          </span>
        ))}
        {gpu.reserved_for.length > 0 ? <span class="chip outline">for {gpu.reserved_for.join(", ")}</span> : null}
        <span class="figures-right small">
          <span>
            <b data-f="power">{whole(gpu.power_w)}</b> <span class="muted">/ {whole(gpu.power_limit_w)} W</span>
          </span>
          <span>
            <b data-f="temperature">{whole(gpu.temperature_c)}</b> <span class="muted">°C</span>
          </span>
        </span>
      </header>
      <p class={verdictClass(verdict.word)} data-f="verdict">
        <b>{verdict.head}:</b> {verdict.text}
        {gpu.verdict?.until_s ? (
          <>
            {" "}
            (until about <span class="predicted">{clock(gpu.verdict.until_s, store.now.value)}</span>)
          </>
        ) : null}
      </p>
      {mig ? <MigBar gpu={gpu} /> : <Stack gpu={gpu} />}
      <Sums gpu={gpu} mig={mig} />
      <Residents gpu={gpu} scale={scale} />
      <Activity gpu={gpu} hot={verdict.word === "hot"} />
    </article>
  );
}

function Sums({ gpu, mig }: { gpu: GpuView; mig: boolean }): JSX.Element {
  const foreign = foreignBytes(gpu);
  return (
    <div class="sums">
      <span>
        <b data-f="used">{gib(residentUsed(gpu))}</b> used
      </span>
      <span>
        <b data-f="promised">{gib(gpu.memory_promised_bytes)}</b> promised
      </span>
      {foreign > 0 ? (
        <span>
          <b data-f="foreign">{gib(foreign)}</b> not ours
        </span>
      ) : null}
      <span class="free">
        {mig ? (
          <>
            <b data-f="unreachable">{gib(migSlices(gpu).unreachable)}</b> GiB out of reach
          </>
        ) : (
          <>
            <b data-f="free">{gib(freeBytes(gpu))}</b> GiB free
          </>
        )}
      </span>
    </div>
  );
}

function Residents({ gpu, scale }: { gpu: GpuView; scale: number }): JSX.Element {
  return (
    <div class="residents" role="table" aria-label={`Tasks on GPU ${gpu.index}`}>
      <div class="heads" role="row">
        <span role="columnheader">Task</span>
        <span class="scale" role="columnheader" aria-label="Memory">
          <span>0</span>
          <span>{gib(scale).replace(".0", "")} GiB</span>
        </span>
        <span class="end" role="columnheader">
          used / prom.
        </span>
        <span class="end wide-only" role="columnheader" title="How many times as long it takes as alone, predicted">
          slowed
        </span>
      </div>
      {gpu.residents.map((r) => (
        <ResidentRow key={r.id} r={r} scale={scale} />
      ))}
      {(gpu.foreign ?? []).map((f) => (
        <div key={`pid${f.pid}`} role="row">
          <span class="who muted" role="cell">
            <svg class="swatch" width="9" height="9" aria-hidden="true">
              <rect width="9" height="9" fill="url(#hatch-foreign)" />
            </svg>
            pid {f.pid} {f.name}
            {f.user ? ` of ${f.user}` : ""}
          </span>
          <span role="cell">
            <svg width="100%" height="22" role="img" aria-label={`${gib(f.bytes)} GiB, not started by coloc`}>
              <line x1="0" x2="100%" y1="11" y2="11" class="grid" />
              <rect y="8.5" width={`${Math.min(100, (100 * (f.bytes ?? 0)) / scale)}%`} height="5" fill="url(#hatch-foreign)" />
            </svg>
          </span>
          <span class="end small" role="cell">
            <b>{gib(f.bytes)}</b> <span class="muted">/ –</span>
          </span>
          <span class="end small muted wide-only" role="cell">
            –
          </span>
        </div>
      ))}
    </div>
  );
}

function ResidentRow({ r, scale }: { r: Resident; scale: number }): JSX.Element {
  const over = r.bound_bytes != null && (r.used_bytes ?? 0) > r.bound_bytes;
  const gang = r.gpus;
  return (
    <div role="row" data-resident={r.id}>
      <span class="who" role="cell">
        <Swatch user={r.user} />
        <span class="muted wide-only">{r.id}</span>
        <a href={`#/task/${r.id}`} data-row title={`${r.id} ${r.name} of ${r.user}`}>
          {r.name || `task ${r.id}`}
        </a>
        {gang > 1 ? (
          <span class="chip outline wide-only" title={`Runs on ${gang} GPUs at once`}>
            {gang} GPUs
          </span>
        ) : null}
        {(r.ooms ?? 0) > 0 ? (
          <span class="chip warn" title={`Ran out of memory ${r.ooms === 1 ? "once" : `${r.ooms} times`} and was brought back`}>
            ▲ {r.ooms}
          </span>
        ) : null}
        {!r.settled && r.estimate_bytes !== null ? (
          <span class="chip outline wide-only" title={`Started ${r.since_s ? `${span(store.now.value - r.since_s)} ago` : "just now"}: its memory is not settled`}>
            new
          </span>
        ) : null}
      </span>
      <span role="cell">
        <Bullet user={r.user} used={r.used_bytes} promised={r.promised_bytes} estimate={r.estimate_bytes} bound={r.bound_bytes} scale={scale} />
      </span>
      <span class="end small" role="cell">
        <b class={over ? "warn-text" : undefined} data-f="used">
          {gib(r.used_bytes)}
        </b>{" "}
        <span class="muted">
          / <span data-f="promised">{gib(r.promised_bytes)}</span>
        </span>
      </span>
      <span class="end small muted wide-only" role="cell">
        <span class={r.slowdown == null ? undefined : "predicted"} data-f="slowdown">
          {times(r.slowdown)}
        </span>
      </span>
    </div>
  );
}

const ACTIVITY = [
  ["smact", "SM activity", "SMACT"],
  ["smocc", "SM occupancy", "SMOCC"],
  ["drama", "DRAM activity", "DRAMA"],
] as const;

function Activity({ gpu, hot }: { gpu: GpuView; hot: boolean }): JSX.Element {
  const trace = store.traces.value.get(gpu.index);
  const limits = store.status.value?.limits;
  return (
    <div class="activity">
      {ACTIVITY.map(([key, name, short]) => {
        const limit = limits?.[key] ?? null;
        const value = gpu[key];
        const over = hot && limit !== null && value != null && value >= limit;
        return (
          <div key={key} class={over ? "over" : undefined}>
            <div class="label">
              <span title={`${name}${gpu.source ? `; ${gpu.source}` : ""}`}>
                <span class="wide-only">{name}</span>
                <span class="phone-only">{short}</span>
              </span>
              {limit === null ? (
                <span class="limit" />
              ) : (
                <span class="limit wide-only" title="Over this line a GPU counts as hot">
                  <svg width="11" height="2" aria-hidden="true">
                    <line x2="11" y1="1" y2="1" stroke="var(--muted)" stroke-dasharray="2 2.4" />
                  </svg>
                  {fixed(100 * limit, 0)}
                </span>
              )}
              <b data-f={key}>{value == null ? "not seen" : `${percent(value)} %`}</b>
            </div>
            {value == null ? (
              <svg width="100%" height="38" aria-hidden="true">
                <rect width="100%" height="38" fill="url(#hatch-none)" opacity="0.5" />
              </svg>
            ) : (
              <Spark values={trace?.[key] ?? []} points={TRACE_POINTS} limit={limit} hot={hot} />
            )}
          </div>
        );
      })}
    </div>
  );
}

export const StillGpuCard = memo(GpuCard);
