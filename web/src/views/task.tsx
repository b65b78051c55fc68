import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused, get } from "../api/client.ts";
import type { Series, TaskDetail, TaskView } from "../api/wire.ts";
import { onKey } from "../keys.ts";
import { basis, clock, energy, gib, span, times } from "../model/format.ts";
import { reasonText } from "../model/queue.ts";
import { asText, commandText } from "../model/story.ts";
import { useAsked } from "../parts/asked.ts";
import { Failure, Later, Skeleton, Swatch } from "../parts/common.tsx";
import { type ChangeWord, ask } from "../parts/dialogs.tsx";
import { stateWords } from "../parts/icons.tsx";
import { isEnded, isRunning } from "../store/apply.ts";
import * as store from "../store/store.ts";
import { Log } from "./log.tsx";
import { changeKey } from "./queue.tsx";
import { chartSpan, TaskCharts } from "./task-charts.tsx";
import { Neighbours, Story } from "./task-story.tsx";
import { WhyBox } from "./why.tsx";

/** Counts events of one task, at most one a second: a story that grows is read again, not for every sample. */
function useTouches(id: number): number {
  const [n, setN] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const touched = store.touched.value;
  useEffect(() => {
    if (touched.task !== id && touched.task !== -1) return;
    timer.current ??= setTimeout(() => {
      timer.current = null;
      setN((k) => k + 1);
    }, 200);
  }, [touched]);
  useEffect(() => () => clearTimeout(timer.current ?? undefined), []);
  return n;
}

export function TaskPage({ id }: { id: number }): JSX.Element {
  const touches = useTouches(id);
  const [detail, again] = useAsked((signal) => get<TaskDetail>(`/v1/tasks/${id}`, signal), [id, touches], id);
  if (detail.word === "loading") {
    return (
      <Later>
        <div class="card">
          <Skeleton />
        </div>
      </Later>
    );
  }
  if (detail.word === "failed") {
    const none = detail.error instanceof Refused && detail.error.status === 404;
    return (
      <div class="card">
        <Failure title={none ? `There is no task ${id}.` : `Task ${id} could not be read.`} why={detail.error.message} retry={again} />
      </div>
    );
  }
  // What the stream tells is newer than the answer.
  const live = store.tasks.value.get(id);
  return <Known detail={live ? { ...detail.value, ...live } : detail.value} />;
}

function Known({ detail }: { detail: TaskDetail }): JSX.Element {
  useEffect(() => onKey((event) => changeKey(event.key, store.tasks.peek().get(detail.id) ?? detail)), [detail.id]);
  const waits = !isRunning(detail) && !isEnded(detail);
  const ran = (detail.attempts_list?.length ?? 0) > 0 || detail.started_s != null;
  return (
    <>
      <Head detail={detail} />
      <div class="card below">
        <div class="command mono" tabIndex={0} role="region" aria-label="Command">
          {commandText(detail.command)} <span class="muted">in {asText(detail.directory)}</span>
        </div>
        <Facts detail={detail} />
      </div>
      <div class="columns">
        <div class="pile">
          {waits ? (
            <section class="card pad">
              <div class="section-head">
                <h2>Why it waits</h2>
                <span class="muted small">{reasonText(detail)}</span>
              </div>
              <WhyBox id={detail.id} />
            </section>
          ) : null}
          {ran ? <Charts detail={detail} /> : null}
          {ran ? <Log id={detail.id} user={detail.user} runs={isRunning(detail)} attempts={detail.attempts} /> : null}
        </div>
        <div class="pile">
          <Story detail={detail} />
          <Neighbours detail={detail} />
        </div>
      </div>
    </>
  );
}

function Head({ detail }: { detail: TaskDetail }): JSX.Element {
  const { word, glyph } = stateWords(detail);
  const what = `${detail.id} ${detail.name} of ${detail.user}`;
  const held = detail.reason_code === "held" || detail.held_by != null;
  const act = store.mayAct.value && !isEnded(detail);
  const button = (change: ChangeWord, title: string, danger = false): JSX.Element => (
    <button type="button" class={danger ? "button danger" : "button"} onClick={() => ask(change, [detail.id], what)}>
      {title}
    </button>
  );
  return (
    <div class="view-head">
      <a href="#/queue" class="muted">
        Queue
      </a>
      <span class="muted">/</span>
      <h1 class="inline">
        {detail.id} <span data-f="name">{detail.name}</span>
      </h1>
      <span class="person-name">
        <Swatch user={detail.user} />
        {detail.user}
      </span>
      <span class={glyph === "failed" ? "chip bad" : "chip"} data-f="state">
        {glyph === "run" || glyph === "retry" ? "● " : glyph === "failed" ? "✕ " : glyph === "held" ? "‖ " : ""}
        {word}
      </span>
      {detail.ooms > 0 ? <span class="chip warn">▲ ran out of memory {detail.ooms === 1 ? "once" : `${detail.ooms} times`}</span> : null}
      <span class="grow" />
      {act ? (
        <>
          {isRunning(detail) ? null : held ? button("release", "Release…") : button("hold", "Hold…")}
          {isRunning(detail) ? button("requeue", "Requeue…") : null}
          {button("cancel", "Cancel…", true)}
        </>
      ) : null}
    </div>
  );
}

interface Fact {
  key: string;
  title: string;
  value: JSX.Element | string;
  under: string;
}

function ranFor(detail: TaskDetail, now: number): number | null {
  const attempts = detail.attempts_list ?? [];
  if (attempts.length > 0) return attempts.reduce((sum, a) => sum + (a.started_s === null ? 0 : (a.ended_s ?? detail.ended_s ?? now) - a.started_s), 0);
  return detail.started_s == null ? null : (detail.ended_s ?? now) - detail.started_s;
}

function whereFact(detail: TaskDetail): Fact {
  const gpus = detail.gpu_ids;
  const sharing = store.gpus.value.find((g) => g.index === gpus[0]);
  const beside = [...new Set(gpus.flatMap((i) => store.gpus.value.find((g) => g.index === i)?.residents ?? []).filter((r) => r.id !== detail.id).map((r) => r.id))];
  const instance = detail.attempts_list?.at(-1)?.instance;
  const value =
    gpus.length === 0 ? (
      `${detail.gpus} ${detail.gpus === 1 ? "GPU" : "GPUs"}`
    ) : (
      <>
        GPU {gpus.join(", ")} <small>{instance ?? (sharing?.mig ? "MIG" : sharing?.sharing === "mps" ? "MPS" : "")}</small>
      </>
    );
  return { key: "where", title: gpus.length === 0 ? "Wants" : isEnded(detail) ? "Where it was" : "Where", value, under: isEnded(detail) ? "" : beside.length > 0 ? `beside ${beside.join(", ")}` : gpus.length > 0 ? "alone there" : (detail.reason ?? "") };
}

function endFact(detail: TaskDetail, now: number): Fact {
  if (isEnded(detail)) {
    return { key: "end", title: "Ended", value: clock(detail.ended_s, now), under: detail.exit_code == null ? (detail.reason ?? "") : `exit code ${detail.exit_code}` };
  }
  const expected = store.expected.value.get(detail.id);
  const at = expected?.expected_end_s;
  const p = detail.progress;
  const done = p?.total ? `; ${Math.round((100 * p.done) / p.total)} % done` : "";
  const value =
    at == null ? (
      "unknown"
    ) : (
      <>
        <span class="predicted">{clock(at, now)}</span> <small>in {span(at - now)}</small>
      </>
    );
  return { key: "end", title: "Ends", value, under: `by ${basis(expected?.expected_basis)}${done}` };
}

function memoryFact(detail: TaskDetail): Fact {
  const runs = isRunning(detail);
  const used = runs ? (detail.used_bytes ?? null) : detail.peak_bytes || null;
  const value = (
    <>
      {gib(used)} <small>{runs ? `of ${gib(detail.promised_bytes)} GiB` : "GiB at its peak"}</small>
    </>
  );
  return { key: "memory", title: "GPU memory", value, under: detail.memory_rule ?? (detail.estimate_bytes ? `estimated ${gib(detail.estimate_bytes)}` : "no estimate") };
}

function facts(detail: TaskDetail): Fact[] {
  const now = store.now.value;
  const attempts = detail.attempts_list?.length ?? detail.attempts;
  const resident = store.gpus.value.flatMap((g) => g.residents).find((r) => r.id === detail.id);
  const [joules, unit] = energy(detail.energy_j);
  const rate = detail.progress?.rate;
  return [
    whereFact(detail),
    { key: "ran", title: attempts > 1 ? `Ran, ${attempts} attempts` : "Ran", value: span(ranFor(detail, now)), under: detail.preemptions > 0 ? `preempted ${detail.preemptions} times` : `submitted ${clock(detail.submitted_s, now)}` },
    endFact(detail, now),
    memoryFact(detail),
    { key: "slowed", title: "Slowed", value: resident?.slowdown == null ? "–" : <span class="predicted">{times(resident.slowdown)}</span>, under: rate ? `${rate.toFixed(2)} ${detail.progress?.unit ?? "steps"}/s` : "by what shares its GPU" },
    {
      key: "energy",
      title: "Energy",
      value: (
        <>
          {joules} <small>{unit}</small>
        </>
      ),
      under: detail.energy_kind ? `${detail.energy_kind}, its share` : "its share of the GPU",
    },
  ];
}

function Facts({ detail }: { detail: TaskDetail }): JSX.Element {
  return (
    <dl class="facts">
      {facts(detail).map((f) => (
        <div key={f.key} data-fact={f.key}>
          <dt>{f.title}</dt>
          <dd>{f.value}</dd>
          <dd class="under" title={f.under}>
            {f.under}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Charts({ detail }: { detail: TaskDetail }): JSX.Element | null {
  const now = store.now.value;
  const beat = isRunning(detail) ? Math.floor(now / 2) : 0;
  const gpu = detail.gpu_ids[0];
  const of = [`task:${detail.id}`, ...(gpu === undefined ? [] : [`gpu:${gpu}`])].join(",");
  const { from } = chartSpan(detail, now);
  const until = detail.ended_s ?? now;
  const [series, again] = useAsked((signal) => get<{ series: Series[] }>(`/v1/series?of=${of}&from_s=${from}&to_s=${until}&points=600`, signal), [detail.id, beat, detail.state], detail.id);
  if (series.word === "loading") return null;
  if (series.word === "failed") {
    return (
      <section class="card">
        <Failure title="No lines of its memory." why={series.error.message} retry={again} />
      </section>
    );
  }
  const own = series.value.series.find((s) => s.of === `task:${detail.id}`);
  if (!own) return null;
  return <TaskCharts detail={detail} own={own} gpu={series.value.series.find((s) => s.of === `gpu:${gpu}`)} view={store.gpus.value.find((g) => g.index === gpu)} />;
}

export type { TaskView };
