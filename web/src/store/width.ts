import { signal } from "@preact/signals";

/** The width below which the page is a phone's: one column, tasks as cards. The style sheets say the same. */
const PHONE = 720;

const query = typeof matchMedia === "undefined" ? null : matchMedia(`(max-width:${PHONE}px)`);

export const phone = signal(query?.matches ?? false);

query?.addEventListener("change", () => (phone.value = query.matches));
