// Signing in. A one-time code comes in the address's fragment, or a token is pasted. The token lives in this tab alone.
import { signal } from "@preact/signals";
import { get, post, useAccess } from "../api/client.ts";
import type { StatusView } from "../api/wire.ts";
import * as live from "./live.ts";
import { forget } from "./store.ts";

const KEY = "coloc-token";

export type Session =
  | { word: "out"; why: string | null }
  | { word: "trying" }
  | { word: "in" };

export const session = signal<Session>({ word: "trying" });

let token: string | null = null;

function keep(value: string | null): void {
  token = value;
  try {
    if (value === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
  } catch {
    // Storage may be switched off: the token then lasts until the page is left.
  }
}

function kept(): string | null {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Takes the code out of the address before anything else can read it. */
function codeInAddress(): string | null {
  const match = /^#c=([^&]+)/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, "", `${location.pathname}${location.search}#/fleet`);
  return decodeURIComponent(match[1] ?? "");
}

export function signOut(why: string | null = null): void {
  live.stop();
  keep(null);
  forget();
  session.value = { word: "out", why };
}

function enter(): void {
  session.value = { word: "in" };
  live.start();
}

/** Tries a token that a person pasted. */
export async function signInWith(given: string): Promise<string | null> {
  keep(given.trim());
  session.value = { word: "trying" };
  try {
    await get<StatusView>("/v1/status");
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    signOut(why);
    return why;
  }
  enter();
  return null;
}

async function exchange(code: string): Promise<void> {
  try {
    const answer = await post<{ token: string }>("/v1/web/session", { code });
    keep(answer.token);
    enter();
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    signOut(`That link did not sign you in: ${said}`);
  }
}

export async function open(): Promise<void> {
  useAccess({
    token: () => token,
    ended: (reason) => signOut(reason),
  });
  const code = codeInAddress();
  if (code !== null) {
    await exchange(code);
    return;
  }
  const before = kept();
  if (before !== null) {
    token = before;
    enter();
    return;
  }
  // A daemon may let everybody read (`--web-anonymous`): then no token is needed.
  try {
    await get<StatusView>("/v1/status");
    enter();
  } catch {
    session.value = { word: "out", why: null };
  }
}
