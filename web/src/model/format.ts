// Numbers as people read them. Unknown is a dash, never a zero.

export const NONE = "–";
const GIB = 2 ** 30;
const DAY = 86_400;

type Maybe = number | null | undefined;

const known = (v: Maybe): v is number => v !== null && v !== undefined && Number.isFinite(v);

export const gibNumber = (bytes: number): number => bytes / GIB;

/** Bytes in GiB with one decimal, without the unit. */
export const gib = (bytes: Maybe): string => (known(bytes) ? (bytes / GIB).toFixed(1) : NONE);

/** A ratio of 0 to 1 in whole per cent, without the unit. */
export const percent = (ratio: Maybe): string => (known(ratio) ? (100 * ratio).toFixed(0) : NONE);

/** How many times as long as alone. */
export const times = (factor: Maybe): string => (known(factor) ? `×${factor.toFixed(2)}` : NONE);

export const whole = (v: Maybe): string => (known(v) ? Math.round(v).toLocaleString("en") : NONE);

export const fixed = (v: Maybe, digits: number): string => (known(v) ? v.toFixed(digits) : NONE);

const two = (n: number): string => String(n).padStart(2, "0");

/** A span in seconds: `12 s`, `30 min`, `1 h 22`, `2 d 3 h`. */
export function span(seconds: Maybe): string {
  if (!known(seconds)) return NONE;
  const s = Math.max(0, seconds);
  if (s < 59.5) return `${Math.round(s)} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${two(minutes % 60)}`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** The same in figures and unit apart, for large print. */
export function spanParts(seconds: Maybe): [string, string] {
  const text = span(seconds);
  const last = text.lastIndexOf(" ");
  return /^\d+ (s|min)$/.test(text) ? [text.slice(0, last), text.slice(last + 1)] : [text, ""];
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** When the day of a moment began, by the local clock. */
export const midnight = (s: number): number => {
  const d = new Date(s * 1000);
  return new Date(d.getFullYear(), d.getMonth(), d.getDate()).getTime() / 1000;
};

/** Days between the days of two moments. A day of a clock change has not 24 hours, so it is rounded. */
const daysApart = (s: number, now: number): number => Math.round((midnight(s) - midnight(now)) / DAY);

/** The time of day, with the days between if it is not today. */
export function clock(s: Maybe, now: number): string {
  if (!known(s)) return NONE;
  const d = new Date(s * 1000);
  const time = `${two(d.getHours())}:${two(d.getMinutes())}`;
  const days = daysApart(s, now);
  if (days === 0) return time;
  if (days > 0 && days < 7) return `${time} +${days} d`;
  if (days < 0 && days > -7) return `${time} −${-days} d`;
  return date(s);
}

export function clockSeconds(s: Maybe): string {
  if (!known(s)) return NONE;
  const d = new Date(s * 1000);
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

export function date(s: Maybe): string {
  if (!known(s)) return NONE;
  const d = new Date(s * 1000);
  return `${d.getDate()} ${MONTHS[d.getMonth()]}`;
}

export const kwh = (joules: Maybe): number | null => (known(joules) ? joules / 3.6e6 : null);

/** Energy with a unit that leaves digits to read. */
export function energy(joules: Maybe): [string, string] {
  const k = kwh(joules);
  if (k === null) return [NONE, ""];
  if (k >= 100) return [whole(k), "kWh"];
  if (k >= 10) return [k.toFixed(1), "kWh"];
  if (k >= 0.1) return [k.toFixed(2), "kWh"];
  return [(k * 1000).toFixed(k >= 0.01 ? 0 : 1), "Wh"];
}

/** A time in hours or minutes, with its unit apart, for columns that mix both. */
export function duration(seconds: Maybe): [string, string] {
  if (!known(seconds)) return [NONE, ""];
  if (seconds < 120) return [seconds < 10 ? seconds.toFixed(1) : String(Math.round(seconds)), "s"];
  if (seconds < 7200) return [String(Math.round(seconds / 60)), "min"];
  return [(seconds / 3600).toFixed(seconds < 36_000 ? 2 : 1), "h"];
}

/** How much more or less than a base: `+23 %`, `−11 %`, `×2.4`, `±0 %`. */
export function change(value: Maybe, base: Maybe): string {
  if (!known(value) || !known(base) || base === 0) return "";
  const r = value / base - 1;
  if (Math.abs(r) < 0.005) return "±0 %";
  if (r >= 1) return `×${(r + 1).toFixed(r > 9 ? 0 : 1)}`;
  return `${r > 0 ? "+" : "−"}${Math.abs(r * 100).toFixed(0)} %`;
}

/** A signed deviation with one decimal. */
export function offBy(value: Maybe, truth: Maybe): string {
  if (!known(value) || !known(truth) || truth === 0) return NONE;
  const r = 100 * (value / truth - 1);
  return `${r < 0 ? "−" : "+"}${Math.abs(r).toFixed(1)} %`;
}

export function bytesText(bytes: Maybe): string {
  if (!known(bytes)) return NONE;
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 2 ** 20) return `${(bytes / 1024).toFixed(0)} KiB`;
  if (bytes < GIB) return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  return `${(bytes / GIB).toFixed(1)} GiB`;
}

export const plural = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** What an expectation rests on, in a word or two: `7 runs`, `limit`, `nothing`. The whole sentence is the title beside it. */
export function basis(text: string | null | undefined): string {
  if (!text) return NONE;
  const own = text.split(";")[0] ?? "";
  if (/unknown/.test(own)) return "nothing";
  if (/longer than any/.test(own)) return "overdue";
  if (/time limit/.test(own)) return "limit";
  const runs = /(\d+) earlier run/.exec(own);
  if (runs) return runs[1] === "1" ? "1 run" : `${runs[1]} runs`;
  return own;
}
