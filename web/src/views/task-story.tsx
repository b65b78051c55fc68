import type { JSX } from "preact";
import type { TaskDetail } from "../api/wire.ts";
import { clock, clockSeconds, gib, span, times } from "../model/format.ts";
import { storyOf } from "../model/story.ts";
import { Swatch } from "../parts/common.tsx";
import { isEnded, isRunning } from "../store/apply.ts";
import * as store from "../store/store.ts";

/** The longest list of GPUs that a decision shows; the rest are counted. */
const MOST_GPUS = 8;

/** What was decided, when and why: the chosen GPU first and dark, the rejected below with their rule and amount. */
export function Story({ detail }: { detail: TaskDetail }): JSX.Element {
  const entries = storyOf(detail);
  const end = store.expected.value.get(detail.id)?.expected_end_s;
  const progress = detail.progress;
  return (
    <section class="card pad">
      <div class="section-head">
        <h2>Story</h2>
        <span class="muted small right">
          {(detail.decisions ?? []).length} {(detail.decisions ?? []).length === 1 ? "decision" : "decisions"}
        </span>
      </div>
      <ol class="story">
        {entries.map((e, k) => (
          <li key={k} class={e.trouble ? "trouble" : undefined}>
            <time dateTime={new Date(e.at * 1000).toISOString()}>{clockSeconds(e.at)}</time>
            <b>{e.head}</b> {e.text}
            {e.gpus.length > 0 ? (
              <table>
                <tbody>
                  {e.gpus.slice(0, MOST_GPUS).map((g) => (
                    <tr key={g.gpu} class={e.chosen.includes(g.gpu) ? "chosen" : undefined}>
                      <td>GPU {g.gpu}</td>
                      <td>{g.text}</td>
                    </tr>
                  ))}
                  {e.gpus.length > MOST_GPUS ? (
                    <tr>
                      <td />
                      <td>and {e.gpus.length - MOST_GPUS} more</td>
                    </tr>
                  ) : null}
                </tbody>
              </table>
            ) : null}
          </li>
        ))}
        {isRunning(detail) ? (
          <li class="current">
            <time>{clockSeconds(store.now.value)}</time>
            <b>Runs.</b> {progress?.total ? `${Math.round((100 * progress.done) / progress.total)} % done` : ""}
            {end != null ? (
              <>
                {progress?.total ? ", ends" : "Ends"} about <span class="predicted">{clock(end, store.now.value)}</span>.
              </>
            ) : null}
          </li>
        ) : null}
      </ol>
      {(detail.estimate_flags ?? []).length > 0 ? (
        <p class="note">
          <b>The estimate’s doubts.</b> {(detail.estimate_flags ?? []).map((f) => f.detail).join(" ")}
        </p>
      ) : null}
    </section>
  );
}

export function Neighbours({ detail }: { detail: TaskDetail }): JSX.Element | null {
  const list = detail.neighbours ?? [];
  if (list.length === 0) return null;
  // After the end of a task it is known which tasks were beside it, and no longer what they cost each other.
  const ended = isEnded(detail);
  return (
    <section class="card pad" data-neighbours={list.length}>
      <div class="section-head">
        <h2>Neighbours</h2>
        <span class="muted small">{ended ? "while it ran" : "predicted"}</span>
      </div>
      <table class="table flush tasks-table">
        <thead>
          <tr>
            <th scope="col">Task</th>
            <th scope="col" class="end wide-only">
              GiB
            </th>
            <th scope="col" class="end">
              {ended ? "from" : "slows this"}
            </th>
            <th scope="col" class="end">
              {ended ? "for" : "slowed by this"}
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map((n) => (
            <tr key={`${n.id}@${n.gpu}@${n.since_s}`}>
              <td>
                <span class="name">
                  <Swatch user={n.user} />
                  <a href={`#/task/${n.id}`} data-row>
                    <b>
                      {n.id} {n.name}
                    </b>
                  </a>
                  {ended ? <span class="muted small">GPU {n.gpu}</span> : null}
                </span>
              </td>
              <td class="end wide-only">{gib(n.used_bytes)}</td>
              <td class="end">{ended ? clock(n.since_s, store.now.value) : <span class="predicted">{times(n.slows_this)}</span>}</td>
              <td class="end">{ended ? span((n.until_s ?? n.since_s) - n.since_s) : <span class="predicted">{times(n.slowed_by_this)}</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
