/** Which rows of a long list are drawn: those in sight, and some on both sides. */
export interface Window {
  start: number;
  end: number;
}

/** Lists up to this long are drawn whole. */
export const WHOLE = 200;

export function visible(count: number, rowHeight: number, scrolled: number, viewport: number, spare = 20): Window {
  if (count <= WHOLE) return { start: 0, end: count };
  const first = Math.floor(scrolled / rowHeight) - spare;
  const last = Math.ceil((scrolled + viewport) / rowHeight) + spare;
  const start = Math.max(0, Math.min(count, first));
  return { start, end: Math.max(start, Math.min(count, last)) };
}
