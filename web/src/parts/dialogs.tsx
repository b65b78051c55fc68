import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { post } from "../api/client.ts";
import { KEYS, helpOpen } from "../keys.ts";
import { say } from "../store/store.ts";

function Dialog({ title, open, close, children }: { title: string; open: boolean; close: () => void; children: ComponentChildren }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const d = dialog.current;
    if (!d) return;
    if (open && !d.open) d.showModal();
    if (!open && d.open) d.close();
  }, [open]);
  return (
    <dialog ref={dialog} aria-label={title} onClose={close} onClick={(e) => e.target === dialog.current && close()}>
      {open ? (
        <>
          <h2>{title}</h2>
          {children}
        </>
      ) : null}
    </dialog>
  );
}

export function KeyHelp({ signOut }: { signOut: () => void }): JSX.Element {
  const close = (): void => void (helpOpen.value = false);
  return (
    <Dialog title="Keys" open={helpOpen.value} close={close}>
      <div class="key-list">
        {KEYS.map(([keys, what]) => [
          <span key={`${what}-k`}>
            {keys.map((k) => (k === "…" ? " … " : <kbd key={k}>{k}</kbd>))}
          </span>,
          <span key={what}>{what}</span>,
        ])}
      </div>
      <div class="choices">
        <button type="button" class="button" onClick={() => (close(), signOut())}>
          Sign out
        </button>
        <button type="button" class="button main" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

export type ChangeWord = "cancel" | "hold" | "release" | "requeue";

interface Asked {
  change: ChangeWord;
  ids: number[];
  name: string;
}

const asked = signal<Asked | null>(null);

/** Asks before anything is done to a task. */
export const ask = (change: ChangeWord, ids: number[], name: string): void => void (asked.value = { change, ids, name });

const WORDS: Record<ChangeWord, { title: string; does: string; button: string; done: string }> = {
  cancel: { title: "Cancel", does: "It is stopped if it runs, and does not come back.", button: "Cancel it", done: "cancelled" },
  hold: { title: "Hold", does: "It waits until it is released.", button: "Hold it", done: "held" },
  release: { title: "Release", does: "It goes on in the queue.", button: "Release it", done: "released" },
  requeue: { title: "Requeue", does: "It is stopped if it runs, and starts again from its beginning or its checkpoint.", button: "Requeue it", done: "requeued" },
};

async function change({ change, ids }: Asked): Promise<void> {
  try {
    const answer = await post<{ done: number[]; refused: { id: number; message: string }[] }>("/v1/tasks/change", { ids, change });
    const [refused] = answer.refused;
    if (refused) say(`Task ${refused.id}: ${refused.message}`, true);
    else say(ids.length === 1 ? `Task ${ids[0]} is ${WORDS[change].done}.` : `${ids.length} tasks are ${WORDS[change].done}.`);
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), true);
  }
}

export function Question(): JSX.Element {
  const q = asked.value;
  const close = (): void => void (asked.value = null);
  const words = q ? WORDS[q.change] : WORDS.cancel;
  const which = q ? (q.ids.length === 1 ? `task ${q.ids[0]}` : `${q.ids.length} tasks`) : "";
  return (
    <Dialog title={`${words.title} ${which}?`} open={q !== null} close={close}>
      <p>{q?.name}</p>
      <p>{words.does}</p>
      <div class="choices">
        <button type="button" class="button" onClick={close}>
          Leave it
        </button>
        <button
          type="button"
          class={q?.change === "cancel" ? "button danger" : "button main"}
          onClick={() => {
            if (q) void change(q);
            close();
          }}
        >
          {words.button}
        </button>
      </div>
    </Dialog>
  );
}
