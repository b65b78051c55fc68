// What the reader chose, kept while the page is open.
import { signal } from "@preact/signals";
import type { Filter, SortKey } from "../model/queue.ts";

export const queueFilter = signal<Filter>({ word: "all" });
export const queueSort = signal<{ key: SortKey; down: boolean } | null>(null);
export const density = signal<"cards" | "lines" | null>(null);
export const prices = signal({ kwh: 0.31, gpuHour: 1.1 });
