// Which view is shown. The address's fragment is the only memory of it, so that links and the back button work.
import { signal } from "@preact/signals";

export type ViewName = "fleet" | "queue" | "timeline" | "task" | "whatif" | "savings" | "states";

export interface Route {
  view: ViewName;
  id: number | null;
}

const NAMES: readonly string[] = ["fleet", "queue", "timeline", "task", "whatif", "savings", "states"];

export function parseRoute(hash: string): Route {
  const [name = "", id = ""] = hash.replace(/^#\//, "").split("/");
  const view = (NAMES.includes(name) ? name : "fleet") as ViewName;
  const number = /^\d+$/.test(id) ? Number(id) : null;
  return view === "task" && number === null ? { view: "queue", id: null } : { view, id: number };
}

export const route = signal<Route>(parseRoute(typeof location === "undefined" ? "" : location.hash));

function readAddress(): void {
  const next = parseRoute(location.hash);
  if (next.view === route.value.view && next.id === route.value.id) return;
  route.value = next;
  scrollTo(0, 0);
}

/** Shows a view at once: the browser tells of a new address later, and a key pressed between would meet the old view. */
export function go(path: string): void {
  location.hash = `#/${path}`;
  readAddress();
}

export function followAddress(): void {
  addEventListener("hashchange", readAddress);
}
