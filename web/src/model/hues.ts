// Colour is a person: the reader is blue, the four others who hold most have a hue each, the rest are slate.

export type Hue = "you" | "u1" | "u2" | "u3" | "u4" | "others";
const OTHERS: Hue[] = ["u1", "u2", "u3", "u4"];

/**
 * Gives hues by what each person holds. A person who has a hue keeps it while among the first six, so that colours do not
 * jump when two people hold about the same.
 */
export function assignHues(before: ReadonlyMap<string, Hue>, me: string, held: ReadonlyMap<string, number>): Map<string, Hue> {
  const ranked = [...held].filter(([user]) => user !== me).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([user]) => user);
  const hues = new Map<string, Hue>(me ? [[me, "you"]] : []);
  for (const user of ranked.slice(0, 6)) {
    const had = before.get(user);
    if (had && had !== "you" && had !== "others" && ![...hues.values()].includes(had)) hues.set(user, had);
  }
  // Those beyond the four lose theirs only to a person who holds more and has none.
  for (const user of ranked.slice(0, 4)) {
    if (hues.has(user)) continue;
    const free = OTHERS.find((hue) => ![...hues.values()].includes(hue)) ?? takeFromLast(hues, ranked);
    if (free) hues.set(user, free);
  }
  return hues;
}

function takeFromLast(hues: Map<string, Hue>, ranked: string[]): Hue | undefined {
  const last = ranked.slice(4).reverse().find((user) => hues.has(user));
  if (last === undefined) return undefined;
  const hue = hues.get(last);
  hues.delete(last);
  return hue;
}

export const sameHues = (a: ReadonlyMap<string, Hue>, b: ReadonlyMap<string, Hue>): boolean =>
  a.size === b.size && [...a].every(([user, hue]) => b.get(user) === hue);
