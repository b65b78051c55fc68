import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { findOpen } from "../keys.ts";
import { search } from "../model/search.ts";
import { go } from "../route.ts";
import * as store from "../store/store.ts";
import { queueFilter } from "../store/choices.ts";
import { Swatch } from "./common.tsx";

/** Finds a task, a person or a GPU in what the page knows. */
export function Find(): JSX.Element {
  const text = useSignal("");
  const at = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  // Before the next key is pressed, which belongs to the search.
  useLayoutEffect(() => {
    if (findOpen.value) input.current?.focus();
  }, [findOpen.value]);
  const found = text.value.trim() === "" ? [] : search(text.value, [...store.tasks.value.values()], store.gpus.value);
  const close = (): void => {
    text.value = "";
    at.value = 0;
    findOpen.value = false;
    input.current?.blur();
  };
  const choose = (k: number): void => {
    const hit = found[k];
    if (!hit) return;
    close();
    if (hit.kind === "task") go(`task/${hit.id}`);
    else if (hit.kind === "gpu") {
      go("fleet");
      setTimeout(() => document.getElementById(`gpu-${hit.id}`)?.scrollIntoView({ block: "start" }), 50);
    } else {
      queueFilter.value = { word: "user", user: hit.user };
      go("queue");
    }
  };
  const keys = (e: KeyboardEvent): void => {
    if (e.key === "Escape") close();
    else if (e.key === "ArrowDown") at.value = Math.min(found.length - 1, at.value + 1);
    else if (e.key === "ArrowUp") at.value = Math.max(0, at.value - 1);
    else if (e.key === "Enter") choose(at.value);
    else return;
    e.preventDefault();
  };
  return (
    <>
      <label class={findOpen.value ? "find open" : "find"}>
        <svg width="13" height="13" viewBox="0 0 13 13" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">
          <circle cx="5.5" cy="5.5" r="4" />
          <path d="M8.5 8.5L12 12" />
        </svg>
        <input
          ref={input}
          role="combobox"
          aria-label="Find a task, a person or a GPU"
          aria-expanded={found.length > 0}
          aria-controls="found"
          aria-activedescendant={found.length > 0 ? `found-${at.value}` : undefined}
          aria-autocomplete="list"
          autocomplete="off"
          placeholder="Task, person, GPU"
          value={text.value}
          onFocus={() => (findOpen.value = true)}
          onBlur={() => setTimeout(() => (findOpen.value = false), 150)}
          onInput={(e) => {
            text.value = e.currentTarget.value;
            at.value = 0;
          }}
          onKeyDown={keys}
        />
        <kbd class="wide-only">/</kbd>
      </label>
      {text.value.trim() !== "" && findOpen.value ? (
        <div class="found">
          {found.length === 0 ? <p>Nothing is called that.</p> : null}
          <div id="found" role="listbox" aria-label="Found">
            {found.map((hit, k) => (
              <div key={`${hit.kind}${hit.label}`} id={`found-${k}`} role="option" aria-selected={k === at.value} onMouseDown={(e) => (e.preventDefault(), choose(k))}>
                {hit.user ? <Swatch user={hit.user} /> : null}
                <span class="muted">{hit.kind === "task" ? hit.id : hit.kind === "gpu" ? "GPU" : "person"}</span>
                <b>{hit.label}</b>
                <span class="muted">{hit.note}</span>
              </div>
            ))}
          </div>
        </div>
      ) : null}
    </>
  );
}
