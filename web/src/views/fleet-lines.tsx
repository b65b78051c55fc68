import type { JSX } from "preact";
import type { GpuView } from "../api/wire.ts";
import { Stack } from "../parts/bars.tsx";
import { Spark } from "../parts/spark.tsx";
import { gib, percent, whole } from "../model/format.ts";
import * as store from "../store/store.ts";
import { verdictOf } from "./fleet.tsx";

const POINTS = 40;

/** A line of 27 px for each GPU. */
export function FleetLines({ gpus }: { gpus: readonly GpuView[] }): JSX.Element {
  const totals = new Set(gpus.map((g) => g.memory_total_bytes));
  const [only] = totals;
  return (
    <div class="card gpu-lines" role="table" aria-label={`${gpus.length} GPUs`}>
      <div role="rowgroup">
        <div class="heads" role="row">
          <span role="columnheader">GPU</span>
          <span class="wide-only" role="columnheader">
            Sharing
          </span>
          <span role="columnheader">{totals.size === 1 ? `Memory, 0 to ${gib(only).replace(".0", "")} GiB` : "Memory, each to its own size"}</span>
          <span class="end wide-only" role="columnheader">
            promised
          </span>
          <span class="wide-only" role="columnheader">
            SM activity
          </span>
          <span class="end wide-only" role="columnheader">
            now
          </span>
          <span class="end" role="columnheader">
            Power
          </span>
        </div>
      </div>
      <div role="rowgroup">
        {gpus.map((gpu) => (
          <Line key={gpu.index} gpu={gpu} />
        ))}
      </div>
    </div>
  );
}

function Line({ gpu }: { gpu: GpuView }): JSX.Element {
  const verdict = verdictOf(gpu);
  const sharing = gpu.residents.length === 0 ? "idle" : gpu.mig ? "MIG" : (gpu.sharing ?? "").toUpperCase() === "MPS" ? "MPS" : (gpu.sharing ?? "–");
  const limit = store.status.value?.limits?.smact ?? null;
  const hot = verdict.word === "hot";
  const lost = verdict.word === "lost";
  return (
    <div role="row" id={`gpu-${gpu.index}`} data-gpu={gpu.index} data-row tabIndex={0}>
      <b role="cell">{gpu.index}</b>
      <span class="muted wide-only" role="cell">
        {lost ? "–" : sharing}
      </span>
      {lost ? (
        <span class="lost" role="cell">
          ✕ Lost: {verdict.text}
        </span>
      ) : (
        <span role="cell">
          <Stack gpu={gpu} height={13} axis={false} />
        </span>
      )}
      <span class="end wide-only" role="cell">
        <b data-f="promised">{gib(gpu.memory_promised_bytes)}</b> <span class="muted">/ {gib(gpu.memory_total_bytes)} GiB</span>
      </span>
      <span class="wide-only" role="cell">
        {gpu.residents.length > 0 && gpu.smact != null ? <Spark values={store.traces.value.get(gpu.index)?.smact ?? []} points={POINTS} height={18} limit={limit} hot={hot} /> : null}
      </span>
      <span class={hot ? "end wide-only warn-text" : "end wide-only"} role="cell">
        <b data-f="smact">{percent(gpu.smact)}</b> <span class="muted">%</span>
      </span>
      <span class="end" role="cell">
        <span data-f="power">{whole(gpu.power_w)}</span> <span class="muted">W</span>
      </span>
    </div>
  );
}
