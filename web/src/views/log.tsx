import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Refused, request } from "../api/client.ts";
import { appendLog, isWarning, logLines } from "../model/log.ts";
import { bytesText } from "../model/format.ts";
import { Empty } from "../parts/common.tsx";
import { me, status } from "../store/store.ts";

const TAIL = 65_536;

type Output = { word: "loading" } | { word: "text"; follows: boolean } | { word: "refused"; code: string; why: string };

/** A task's output: its tail, and what is written while one looks. */
export function Log({ id, user, runs, attempts }: { id: number; user: string; runs: boolean; attempts: number }): JSX.Element {
  const text = useSignal("");
  const bytes = useSignal(0);
  const state = useSignal<Output>({ word: "loading" });
  const box = useRef<HTMLDivElement>(null);
  const pinned = useRef(true);
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
      const response = await request(`/v1/tasks/${id}/log?offset=-${TAIL}${runs ? "&follow=true" : ""}`, { signal: controller.signal });
      state.value = { word: "text", follows: runs };
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
  }, [id, runs, attempts, mayRead]);
  const lines = logLines(text.value);
  useLayoutEffect(() => {
    if (pinned.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text.value]);
  const output = state.value;
  return (
    <section class="card pad" data-log={id}>
      <div class="section-head">
        <h2>Output</h2>
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
