import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { signInWith } from "../store/session.ts";

/** Not signed in: how to get in, and nothing else. */
export function SignIn({ why }: { why: string | null }): JSX.Element {
  const token = useSignal("");
  return (
    <main class="sign-in" id="main">
      <div class="card">
        <h1>coloc</h1>
        {why ? (
          <p class="bad-text" role="alert">
            {why}
          </p>
        ) : null}
        <p>For a link that signs this browser in, type on the machine with the GPUs:</p>
        <code>coloc web</code>
        <p class="muted small">
          <span class="mono">coloc web --act</span> gives a link that may also cancel, hold and requeue your tasks. A link works once and for a minute.
        </p>
        <form
          onSubmit={(e) => {
            e.preventDefault();
            if (token.value.trim() !== "") void signInWith(token.value);
          }}
        >
          <label class="small" for="token">
            Or paste a token
          </label>
          <input id="token" type="password" autocomplete="off" spellcheck={false} placeholder="coloc_…" value={token.value} onInput={(e) => (token.value = e.currentTarget.value)} />
          <button type="submit" class="button main">
            Sign in
          </button>
        </form>
      </div>
    </main>
  );
}
