// Asking the daemon. One place adds the token, reads refusals and notices that a token has ended.
import type { Job } from "./wire.ts";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** The daemon did not answer at all. */
export class Unreachable extends Error {}

export interface Access {
  token(): string | null;
  /** Called when the daemon no longer takes the token. */
  ended(reason: string): void;
}

let access: Access = { token: () => null, ended: () => {} };

export const useAccess = (given: Access): void => {
  access = given;
};

async function refusal(response: Response): Promise<Refused> {
  let code = "";
  let message = `The daemon answered ${response.status}.`;
  try {
    const body: unknown = await response.json();
    if (body && typeof body === "object") {
      if ("error" in body && typeof body.error === "string") message = body.error;
      if ("code" in body && typeof body.code === "string") code = body.code;
    }
  } catch {
    // Not JSON: the status says enough.
  }
  return new Refused(response.status, code, message);
}

export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = access.token();
  if (token) headers.set("authorization", `Bearer ${token}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers, cache: "no-store", credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable("The daemon does not answer.");
  }
  if (response.ok) return response;
  const refused = await refusal(response);
  if (refused.status === 401 && token) access.ended(refused.message);
  throw refused;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, { signal: signal ?? null, headers: { accept: "application/json" } });
  return (await response.json()) as T;
}

export async function post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
  const response = await request(path, {
    method: "POST",
    signal: signal ?? null,
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  });
  return (await response.json()) as T;
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("left", "AbortError"));
    });
  });

/** Asks for something that takes the daemon a while: it answers with a job first. A job that was posted is asked for until it is done; what was asked for with GET, in the same words. */
export async function job<T>(path: string, body: unknown | null, signal: AbortSignal): Promise<T> {
  let response = await request(path, {
    method: body === null ? "GET" : "POST",
    signal,
    headers: body === null ? { accept: "application/json" } : { "content-type": "application/json", accept: "application/json" },
    ...(body === null ? {} : { body: JSON.stringify(body) }),
  });
  for (let tries = 0; response.status === 202; tries++) {
    const { job: id } = (await response.json()) as Job;
    await pause(Math.min(2000, 200 * 1.5 ** tries), signal);
    const next = body === null ? path : `${path}/${encodeURIComponent(id)}`;
    response = await request(next, { signal, headers: { accept: "application/json" } });
  }
  return (await response.json()) as T;
}
