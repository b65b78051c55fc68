// One line of figures above the fleet.
import type { JSX } from "preact";
import { energy, fixed, gibNumber, percent, span, whole } from "../model/format.ts";
import { foreignBytes } from "../model/memory.ts";
import * as store from "../store/store.ts";

const sum = (values: (number | null | undefined)[]): number | null => (values.every((v) => v == null) ? null : values.reduce<number>((a, v) => a + (v ?? 0), 0));

/** Estimates that are too high are above zero. */
const signed = (v: number): string => `${v < 0 ? "−" : "+"}${fixed(Math.abs(v), 1)}`;

interface Figure {
  key: string;
  title: string;
  value: string;
  unit: string;
  under: string;
}

function figures(): Figure[] {
  const gpus = store.gpus.value;
  const status = store.status.value;
  const now = store.now.value;
  const running = store.running.value.length;
  const waiting = store.waiting.value;
  const busy = gpus.filter((g) => g.residents.length > 0).length;
  const longest = waiting.length > 0 ? Math.max(...waiting.map((t) => now - t.submitted_s)) : null;
  const used = gpus.reduce((a, g) => a + Math.max(g.memory_used_bytes, foreignBytes(g)), 0);
  const total = gpus.reduce((a, g) => a + g.memory_total_bytes, 0);
  const promised = gpus.reduce((a, g) => a + g.memory_promised_bytes, 0);
  const seen = gpus.map((g) => g.smact).filter((v): v is number => v != null);
  const activity = seen.length > 0 ? seen.reduce((a, v) => a + v, 0) / seen.length : null;
  const power = sum(gpus.map((g) => g.power_w));
  const limit = sum(gpus.map((g) => g.power_limit_w));
  const [today, unit] = energy(status?.energy_today_j);
  const estimate = status?.estimate;
  const ooms = status?.ooms_today;
  const recovered = status?.recovered_today;
  return [
    { key: "running", title: "Running", value: whole(running), unit: "", under: `on ${busy} of ${gpus.length} GPUs` },
    { key: "waiting", title: "Waiting", value: whole(waiting.length), unit: "", under: longest === null ? "no task waits" : `longest ${span(longest)}` },
    { key: "memory", title: "Memory used", value: whole(gibNumber(used)), unit: `of ${whole(gibNumber(total))} GiB`, under: `${whole(gibNumber(promised))} GiB promised` },
    { key: "activity", title: "SM activity", value: percent(activity), unit: activity === null ? "" : "%", under: seen.length > 0 ? `mean of ${seen.length}` : "not seen" },
    { key: "power", title: "Power", value: power === null ? "–" : fixed(power / 1000, 2), unit: limit === null ? "kW" : `of ${fixed(limit / 1000, 2)} kW`, under: status?.energy_today_j == null ? "" : `${today} ${unit} since midnight` },
    { key: "ooms", title: "Out of memory today", value: whole(ooms), unit: "", under: ooms == null || recovered == null ? "" : `${recovered} recovered` },
    { key: "estimate", title: "Estimate error", value: estimate?.error_median == null ? "–" : signed(100 * estimate.error_median), unit: estimate?.error_median == null ? "" : "%", under: withinBound(estimate) },
  ];
}

function withinBound(estimate: { within_bound?: number | null; rows?: number | null } | null | undefined): string {
  if (!estimate?.rows) return "no estimate to compare yet";
  if (estimate.within_bound == null) return `of ${estimate.rows} tasks`;
  return `${Math.round(estimate.within_bound * estimate.rows)} of ${estimate.rows} within bound`;
}

export function Figures(): JSX.Element {
  return (
    <section class="figures" aria-label="In figures" tabIndex={0}>
      <dl>
        {figures().map((f) => (
          <div key={f.key} class="figure" data-figure={f.key}>
            <dt>{f.title}</dt>
            <dd>
              {f.value} <small>{f.unit}</small>
            </dd>
            <dd class="under" title={f.under}>
              {f.under}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
