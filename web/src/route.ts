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

export function go(path: string): void {
  location.hash = `#/${path}`;
}

export function followAddress(): void {
  addEventListener("hashchange", () => {
    route.value = parseRoute(location.hash);
    scrollTo(0, 0);
  });
}
