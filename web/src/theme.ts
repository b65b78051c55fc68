// Dark or light: what the address asks for, what was chosen here before, else what the system has.
import { signal } from "@preact/signals";

export type Theme = "light" | "dark";
const KEY = "coloc-theme";

export const theme = signal<Theme>("light");

function chosen(): Theme | null {
  const asked = new URLSearchParams(location.search).get("theme");
  if (asked === "dark" || asked === "light") return asked;
  try {
    const kept = localStorage.getItem(KEY);
    return kept === "dark" || kept === "light" ? kept : null;
  } catch {
    return null;
  }
}

export function setTheme(value: Theme, keep: boolean): void {
  theme.value = value;
  document.documentElement.dataset.theme = value;
  if (!keep) return;
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // The choice then lasts until the page is left.
  }
}

export function openTheme(): void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(chosen() ?? (dark.matches ? "dark" : "light"), false);
  dark.addEventListener("change", () => {
    if (chosen() === null) setTheme(dark.matches ? "dark" : "light", false);
  });
}

export const toggleTheme = (): void => setTheme(theme.value === "dark" ? "light" : "dark", true);
