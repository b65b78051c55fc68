import { type RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Window, visible } from "../model/window.ts";

/** Follows the page's scrolling and says which rows of a list are to be drawn. */
export function useWindow(count: number, rowHeight: number, list: RefObject<HTMLElement | null>): Window {
  const [range, setRange] = useState<Window>(() => visible(count, rowHeight, 0, 1000));
  useEffect(() => {
    let frame = 0;
    const look = (): void => {
      frame = 0;
      const top = list.current ? -list.current.getBoundingClientRect().top : 0;
      const next = visible(count, rowHeight, Math.max(0, top), innerHeight);
      setRange((before) => (before.start === next.start && before.end === next.end ? before : next));
    };
    const soon = (): void => {
      if (!frame) frame = requestAnimationFrame(look);
    };
    look();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", soon);
    return () => {
      removeEventListener("scroll", soon);
      removeEventListener("resize", soon);
      cancelAnimationFrame(frame);
    };
  }, [count, rowHeight]);
  return { start: Math.min(range.start, count), end: Math.min(range.end, count) };
}
