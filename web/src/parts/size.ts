import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** The width of an element in whole pixels; 0 until it is known. */
export function useWidth(of: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!of.current) return;
    const observer = new ResizeObserver(([entry]) => {
      if (entry) setWidth(Math.floor(entry.contentRect.width));
    });
    observer.observe(of.current);
    return () => observer.disconnect();
  }, []);
  return width;
}
