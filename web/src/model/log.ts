// Output of tasks as text. Escapes stay text; a carriage return begins a line anew, as on a terminal.

/** What is kept of a log in the page, in characters. */
export const KEPT_LOG = 256 * 1024;

/** Adds what came and drops the oldest lines beyond what is kept. */
export function appendLog(before: string, more: string): string {
  const all = before + more;
  if (all.length <= KEPT_LOG) return all;
  const cut = all.indexOf("\n", all.length - KEPT_LOG);
  return all.slice(cut < 0 ? all.length - KEPT_LOG : cut + 1);
}

// Colours and moves of a terminal, which say nothing here. They are taken out, not obeyed.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** One line for reading: progress bars that overwrite themselves show their last state. */
export function readableLine(line: string): string {
  const bare = line.replace(/\r+$/, "").replace(ESCAPES, "");
  const shown = bare.includes("\r") ? bare.slice(bare.lastIndexOf("\r") + 1) : bare;
  return shown.replace(CONTROLS, "·");
}

export const logLines = (text: string): string[] => {
  const lines = text.split("\n").map(readableLine);
  if (lines.at(-1) === "") lines.pop();
  return lines;
};

export const isWarning = (line: string): boolean => /\b(warn(ing)?|error|traceback|exception|out of memory)\b/i.test(line);
