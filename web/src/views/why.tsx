import type { JSX } from "preact";
import { get } from "../api/client.ts";
import type { WhyView } from "../api/wire.ts";
import { clock } from "../model/format.ts";
import { whatWouldHelp } from "../model/queue.ts";
import { useAsked } from "../parts/asked.ts";
import { Failure, Later, Skeleton } from "../parts/common.tsx";
import * as store from "../store/store.ts";

/** What each GPU says to a waiting task, and what would help. */
export function WhyBox({ id }: { id: number }): JSX.Element {
  const reason = store.tasks.value.get(id)?.reason;
  const [why, again] = useAsked((signal) => get<WhyView>(`/v1/tasks/${id}/why`, signal), [id, reason], id);
  if (why.word === "loading") {
    return (
      <Later>
        <Skeleton />
      </Later>
    );
  }
  if (why.word === "failed") return <Failure title="Why it waits is not known." why={why.error.message} retry={again} />;
  const now = store.now.value;
  const helps = whatWouldHelp(why.value, store.expected.value.get(id));
  return (
    <div class="why" data-why={id}>
      <div>
        <h2>What each GPU says</h2>
        <div class="gpu-says" tabIndex={0} role="region" aria-label="What each GPU says">
          <table>
            <tbody>
              {why.value.gpus.map((g) => (
                <tr key={g.gpu}>
                  <td class="keep">
                    <b>GPU {g.gpu}</b>
                  </td>
                  <td>{g.refusals.length > 0 ? g.refusals.join("; ") : "would take it"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {why.value.gpus.length === 0 ? <p>{why.value.summary}</p> : null}
      </div>
      <div>
        <h2>What would help</h2>
        <table>
          <tbody>
            {helps.map((h) => (
              <tr key={h.text}>
                <td class="keep">{h.when === null ? "" : <b class="predicted">{clock(h.when, now)}</b>}</td>
                <td>
                  {h.text}
                  {h.command ? (
                    <>
                      : <span class="mono">{h.command}</span>
                    </>
                  ) : null}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {helps.length === 0 ? <p class="muted">Nothing but waiting, as far as can be told: {why.value.summary}.</p> : null}
      </div>
    </div>
  );
}
