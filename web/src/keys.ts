// Keys. Everything that they do can also be pressed on the page.
import { signal } from "@preact/signals";
import { route, go } from "./route.ts";
import { toggleTheme } from "./theme.ts";

export const VIEWS = [
  ["fleet", "Fleet"],
  ["queue", "Queue"],
  ["timeline", "Timeline"],
  ["whatif", "What if"],
  ["savings", "Savings"],
] as const;

export const KEYS: readonly [string[], string][] = [
  [["1", "…", "5"], "Fleet, Queue, Timeline, What if, Savings"],
  [["/"], "find a task, a person, a GPU"],
  [["j", "k"], "next and previous in a list"],
  [["Enter"], "open it"],
  [["w"], "why does it wait"],
  [["c"], "cancel it, after a question"],
  [["h"], "hold it, or let it go on, after a question"],
  [["r"], "requeue it, after a question"],
  [["← →", "+ −"], "move and zoom the timeline"],
  [["t"], "dark or light"],
  [["?"], "these keys"],
  [["Esc"], "close, leave"],
];

export const helpOpen = signal(false);
export const findOpen = signal(false);

type Handler = (event: KeyboardEvent) => boolean | void;
const handlers = new Set<Handler>();

/** A view's own keys, while it is shown. */
export function onKey(handler: Handler): () => void {
  handlers.add(handler);
  return () => void handlers.delete(handler);
}

const typing = (target: EventTarget | null): boolean => target instanceof Element && target.matches("input, select, textarea");

/** Moves the focus among what a list marks as its rows. */
function step(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main [data-row]")];
  if (rows.length === 0) return;
  const here = document.activeElement?.closest("[data-row]") ?? null;
  const at = rows.indexOf(here as HTMLElement);
  const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function press(event: KeyboardEvent): boolean {
  const number = "12345".indexOf(event.key);
  if (event.key.length === 1 && number >= 0) {
    go(VIEWS[number]![0]);
    return true;
  }
  switch (event.key) {
    case "t":
      toggleTheme();
      return true;
    case "?":
      helpOpen.value = true;
      return true;
    case "/":
      findOpen.value = true;
      return true;
    case "j":
    case "k":
      step(event.key === "j" ? 1 : -1);
      return true;
    case "Escape":
      if (route.value.view === "task") go("queue");
      return true;
    default:
      return false;
  }
}

export function listenToKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target) || document.querySelector("dialog[open]")) return;
    for (const handler of handlers) {
      if (handler(event)) {
        event.preventDefault();
        return;
      }
    }
    if (press(event)) event.preventDefault();
  });
}
