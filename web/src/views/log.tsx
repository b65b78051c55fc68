import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Refused, request } from "../api/client.ts";
import { appendLog, isWarning, logLines } from "../model/log.ts";
import { bytesText } from "../model/format.ts";
import { Empty } from "../parts/common.tsx";
import { me, status } from "../store/store.ts";

const TAIL = 65_536;

/** Attempts that can be chosen; of very many, the last ones. */
const MOST_ATTEMPTS = 100;

function Attempts({ attempts, attempt, choose }: { attempts: number; attempt: number; choose: (n: number) => void }): JSX.Element {
  const first = Math.max(1, attempts - MOST_ATTEMPTS + 1);
  return (
    <label class="field small">
      of attempt
      <select value={attempt} data-attempt={attempt} onChange={(e) => choose(Number(e.currentTarget.value))}>
        {Array.from({ length: attempts - first + 1 }, (_, k) => attempts - k).map((n) => (
          <option key={n} value={n}>
            {n === attempts ? `${n}, the last` : n}
          </option>
        ))}
      </select>
    </label>
  );
}

type Output = { word: "loading" } | { word: "text"; follows: boolean } | { word: "refused"; code: string; why: string };

/** A task's output: its tail, and what is written while one looks. */
export function Log({ id, user, runs, attempts }: { id: number; user: string; runs: boolean; attempts: number }): JSX.Element {
  const text = useSignal("");
  const bytes = useSignal(0);
  const state = useSignal<Output>({ word: "loading" });
  const box = useRef<HTMLDivElement>(null);
  const pinned = useRef(true);
  /** An attempt that was chosen; the last one if none was. */
  const chosen = useSignal<number | null>(null);
  /** All attempts write to one file of the user's. */
  const together = useSignal(false);
  const attempt = chosen.value ?? attempts;
  const grows = runs && attempt === attempts;
  const mayRead = user === me.value || (status.value?.admin ?? false);
  useEffect(() => {
    // What the daemon would refuse is not asked for.
    if (!mayRead) {
      state.value = { word: "refused", code: "not_yours", why: "" };
      return undefined;
    }
    const controller = new AbortController();
    text.value = "";
    bytes.value = 0;
    const follow = async (): Promise<void> => {
      const response = await request(`/v1/tasks/${id}/log?offset=-${TAIL}${chosen.value === null ? "" : `&attempt=${attempt}`}${grows ? "&follow=true" : ""}`, { signal: controller.signal });
      together.value = response.headers.get("x-attempt") === "0";
      state.value = { word: "text", follows: grows };
      const reader = response.body!.getReader();
      const decoder = new TextDecoder();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        bytes.value += value.length;
        text.value = appendLog(text.value, decoder.decode(value, { stream: true }));
      }
      state.value = { word: "text", follows: false };
    };
    follow().catch((error: unknown) => {
      if (controller.signal.aborted) return;
      if (error instanceof Refused) state.value = { word: "refused", code: error.code, why: error.message };
      else state.value = { word: "text", follows: false };
    });
    return () => controller.abort();
  }, [id, grows, attempt, attempts, mayRead]);
  const lines = logLines(text.value);
  useLayoutEffect(() => {
    if (pinned.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text.value]);
  const output = state.value;
  return (
    <section class="card pad" data-log={id} data-shows={attempt}>
      <div class="section-head">
        <h2>Output</h2>
        {attempts > 1 && mayRead && !together.value ? <Attempts attempts={attempts} attempt={attempt} choose={(n) => (chosen.value = n === attempts ? null : n)} /> : null}
        <span class="right muted small">{output.word === "text" ? `${output.follows ? "follows, " : ""}${bytes.value >= TAIL ? "the last " : ""}${bytesText(bytes.value)}` : ""}</span>
      </div>
      {output.word === "refused" ? (
        output.code === "not_yours" ? (
          <Empty title={`The log is ${user}’s.`}>
            <span>Its owner and administrators may read it. You are signed in as {me.value}.</span>
          </Empty>
        ) : (
          <Empty title="There is no output to read.">
            <span>{output.why}</span>
          </Empty>
        )
      ) : lines.length === 0 && output.word === "text" ? (
        <Empty title="Nothing was written yet." />
      ) : (
        <div
          class="log"
          ref={box}
          tabIndex={0}
          role="log"
          aria-label={`Output of task ${id}`}
          onScroll={(e) => {
            const el = e.currentTarget;
            pinned.current = el.scrollHeight - el.scrollTop - el.clientHeight < 30;
          }}
        >
          {lines.map((l, k) => (
            <div key={k} class={isWarning(l) ? "warn-line" : undefined}>
              {l === "" ? " " : l}
            </div>
          ))}
        </div>
      )}
    </section>
  );
}
