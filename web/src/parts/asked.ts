import { useEffect, useState } from "preact/hooks";

export type Asked<T> = { word: "loading" } | { word: "known"; value: T; stale: string | null } | { word: "failed"; error: Error };

/**
 * Asks when `keys` change. What was known stays while it is asked again, and stays if that fails: a view is dimmed, not emptied.
 */
export function useAsked<T>(ask: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[], subject: unknown): [Asked<T>, () => void] {
  const [state, setState] = useState<Asked<T>>({ word: "loading" });
  const [again, setAgain] = useState(0);
  useEffect(() => setState({ word: "loading" }), [subject]);
  useEffect(() => {
    const controller = new AbortController();
    ask(controller.signal).then(
      (value) => {
        if (!controller.signal.aborted) setState({ word: "known", value, stale: null });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        const failure = error instanceof Error ? error : new Error(String(error));
        setState((before) => (before.word === "known" ? { ...before, stale: failure.message } : { word: "failed", error: failure }));
      },
    );
    return () => controller.abort();
  }, [...keys, again]);
  return [state, () => setAgain((n) => n + 1)];
}
