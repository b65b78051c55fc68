// A task's story: the daemon's lines and its decisions, in the order in which they happened. Pure.
import type { Decision, DecisionGpu, TaskDetail } from "../api/wire.ts";
import { BARE, reasonText } from "./queue.ts";

export interface StoryEntry {
  at: number;
  head: string;
  text: string;
  trouble: boolean;
  gpus: DecisionGpu[];
  chosen: number[];
}

const TROUBLE = /out of (gpu )?memory|\boom\b|failed|lost|killed|fell off|stopped by|time limit/i;

/** The first sentence is the head; what follows is plain. */
function split(what: string): [string, string] {
  const said = what.charAt(0).toUpperCase() + what.slice(1);
  const match = /^(.{3,60}?[.:;])\s+(.*)$/s.exec(said);
  return match ? [match[1] ?? said, match[2] ?? ""] : [said, ""];
}

const list = (gpus: readonly number[]): string => (gpus.length === 1 ? `GPU ${gpus[0]}` : `GPUs ${gpus.join(", ")}`);

/** What a decision says: where an attempt starts, or what the task waits for. */
function decided(detail: TaskDetail, d: Decision): StoryEntry {
  const starts = d.kind === "starts";
  const head = starts ? `${d.attempt ? `Attempt ${d.attempt}` : "Starts"} on ${list(d.chosen)}.` : "Waits.";
  const gpus = [...d.gpus].sort((a, b) => Number(d.chosen.includes(b.gpu)) - Number(d.chosen.includes(a.gpu)) || Number(b.fits) - Number(a.fits) || (a.score ?? Infinity) - (b.score ?? Infinity) || a.gpu - b.gpu);
  const text = starts ? "" : `${reasonText({ ...detail, reason: BARE, reason_code: d.reason_code ?? null })}.`;
  return { at: d.at_s, head, text, trouble: false, gpus, chosen: d.chosen };
}

export function storyOf(detail: TaskDetail): StoryEntry[] {
  const lines = detail.story.map(({ at, what }) => {
    const [head, text] = split(what);
    return { at, head, text, trouble: TROUBLE.test(what), gpus: [], chosen: [] };
  });
  const decisions = (detail.decisions ?? []).map((d) => decided(detail, d));
  // Lines come first at the same moment: they say what the decision was made on.
  return [...lines.map((l, k) => ({ ...l, k })), ...decisions.map((d, k) => ({ ...d, k: 1e6 + k }))].sort((a, b) => a.at - b.at || a.k - b.k);
}

/** A command and a directory may hold bytes that are no UTF-8: then they come as `{hex}`. */
export function asText(raw: unknown): string {
  if (typeof raw === "string") return raw;
  if (raw && typeof raw === "object" && "hex" in raw && typeof raw.hex === "string") {
    const bytes = raw.hex.match(/../g) ?? [];
    return new TextDecoder().decode(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 16)));
  }
  return "";
}

/** A command as a shell would take it. */
export const commandText = (command: readonly unknown[]): string =>
  command
    .map(asText)
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
