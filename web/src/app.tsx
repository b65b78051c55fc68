import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { VIEWS, findOpen, helpOpen } from "./keys.ts";
import { Patterns, Later, Skeleton, Swatch } from "./parts/common.tsx";
import { Question, KeyHelp } from "./parts/dialogs.tsx";
import { Find } from "./parts/find.tsx";
import { ViewIcon } from "./parts/icons.tsx";
import { type ViewName, route } from "./route.ts";
import { clock, clockSeconds } from "./model/format.ts";
import { tryNow } from "./store/live.ts";
import { session, signOut } from "./store/session.ts";
import * as store from "./store/store.ts";
import { toggleTheme } from "./theme.ts";
import { Fleet } from "./views/fleet.tsx";
import { Queue } from "./views/queue.tsx";
import { SavingsView } from "./views/savings.tsx";
import { SignIn } from "./views/signin.tsx";
import { States } from "./views/states.tsx";
import { TaskPage } from "./views/task.tsx";
import { TimelineView } from "./views/timeline.tsx";
import { WhatIfView } from "./views/whatif.tsx";

const TITLES: Record<ViewName, string> = { fleet: "Fleet", queue: "Queue", timeline: "Timeline", task: "Task", whatif: "What if", savings: "Savings", states: "States" };

function Logo(): JSX.Element {
  const rects: [number, number, number, string][] = [
    [2, 3, 10, "you"],
    [13, 3, 5, "u1"],
    [2, 8, 5, "u2"],
    [8, 8, 10, "u3"],
    [2, 13, 7, "u4"],
    [10, 13, 8, "line-strong"],
  ];
  return (
    <svg width="20" height="20" viewBox="0 0 20 20" aria-hidden="true">
      {rects.map(([x, y, w, c]) => (
        <rect key={c} x={x} y={y} width={w} height="4" rx="1" fill={`var(--${c})`} />
      ))}
    </svg>
  );
}

function LinkState(): JSX.Element {
  const link = store.link.value;
  const text = link.word === "live" ? "live" : link.word === "stale" ? "not connected" : "loading";
  return (
    <span class={link.word === "stale" ? "live off" : "live"} data-link={link.word} title="Events arrive as they happen, figures every second">
      <i />
      <span>{text}</span>
    </span>
  );
}

/** The machine, and how it schedules: pages of two daemons are told apart by it. */
function Host(): JSX.Element {
  const status = store.status.value;
  const policy = status?.policy;
  const parts = policy ? `${policy.queue} / ${policy.place} / ${policy.share}` : "";
  return (
    <span class="host wide-only" title={status ? `coloc ${status.version ?? ""}: ${parts}` : undefined}>
      {status?.host ?? ""}
      {policy ? <small>{policy.preset ?? policy.share}</small> : null}
    </span>
  );
}

function Header(): JSX.Element {
  const { view } = route.value;
  const count = store.running.value.length + store.waiting.value.length;
  return (
    <header class="top">
      <a class="brand" href="#/fleet" aria-label="coloc">
        <Logo />
        coloc
      </a>
      <nav class="views" aria-label="Views">
        {VIEWS.map(([name, title]) => (
          <a key={name} href={`#/${name}`} aria-current={view === name || (view === "task" && name === "queue") ? "page" : undefined}>
            <ViewIcon name={name} />
            <span>{title}</span>
            {name === "queue" && count > 0 ? <span class="count">{count.toLocaleString("en")}</span> : null}
          </a>
        ))}
      </nav>
      <span class="grow" />
      <Find />
      <LinkState />
      <Host />
      <button type="button" class="icon phone-only" aria-label="Find" onClick={() => (findOpen.value = true)}>
        <svg width="15" height="15" viewBox="0 0 13 13" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">
          <circle cx="5.5" cy="5.5" r="4" />
          <path d="M8.5 8.5L12 12" />
        </svg>
      </button>
      {store.me.value ? (
        <span class="person" title={`Signed in as ${store.me.value}${store.mayAct.value ? "" : ", to look only"}`}>
          <Swatch user={store.me.value} />
          {store.me.value}
        </span>
      ) : null}
      <button type="button" class="icon" aria-label="Keys and signing out" title="Keys (?)" onClick={() => (helpOpen.value = true)}>
        ?
      </button>
      <button type="button" class="icon" aria-label="Dark or light" title="Dark or light (t)" onClick={toggleTheme}>
        <svg width="15" height="15" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.5" />
          <path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" fill="currentColor" />
        </svg>
      </button>
    </header>
  );
}

/** Says since when nothing is heard and when it is tried again. What was known stays, dimmed. */
function StaleBanner(): JSX.Element | null {
  const link = store.link.value;
  const at = store.now.value;
  if (link.word !== "stale") return null;
  const left = Math.max(0, Math.ceil((link.retryAtMs / 1000 + store.skew.value - at)));
  const known = store.status.value !== null;
  return (
    <div class="banner" role="alert" data-banner="stale">
      <span aria-hidden="true">▲</span>
      <span>
        <b>Not connected</b> since {clockSeconds(link.sinceS)}
        {known ? "; shown is what was known then. Tasks go on." : `. ${link.why}`} {left > 0 ? `Next try in ${left} s.` : "Trying…"}
      </span>
      <span class="grow" />
      <button type="button" class="button" onClick={tryNow}>
        Try now
      </button>
    </div>
  );
}

function Faults(): JSX.Element | null {
  const status = store.status.value;
  if (!status) return null;
  const texts = (status.faults ?? []).map((f) => (typeof f === "string" ? f : (f.text ?? f.word ?? "")));
  if (status.draining && !texts.some((t) => /drain/i.test(t))) texts.push("The daemon is draining: nothing new is started.");
  return (
    <>
      {texts.map((text) => (
        <div key={text} class="banner bad" role="status">
          <span aria-hidden="true">✕</span>
          <span>{text}</span>
        </div>
      ))}
    </>
  );
}

function Truth(): JSX.Element | null {
  const status = store.status.value;
  if (!status) return null;
  const scale = status.time_scale ?? 1;
  return (
    <aside class="truth" aria-label="What the figures are">
      <span class="chip outline">{status.emulated ? "emulated" : "measured"}</span>
      <span>
        {status.emulated ? "These GPUs are made of software: no figure here was measured. " : "Figures are read from the GPUs. "}
        {scale !== 1 ? `Tasks run ${scale} times as fast as in life. ` : ""}
        <span class="wide-only">Dotted underlines are predictions.</span>
      </span>
    </aside>
  );
}

function View(): JSX.Element {
  const { view, id } = route.value;
  if (view === "states") return <States />;
  if (store.status.value === null) {
    return store.link.value.word === "stale" ? (
      <div class="card">
        <div class="empty">
          <b>The daemon does not answer.</b>
          <span>It is tried again until it does.</span>
        </div>
      </div>
    ) : (
      <Later>
        <div class="card">
          <Skeleton />
        </div>
      </Later>
    );
  }
  switch (view) {
    case "queue":
      return <Queue />;
    case "timeline":
      return <TimelineView />;
    case "task":
      return <TaskPage key={id} id={id ?? 0} />;
    case "whatif":
      return <WhatIfView />;
    case "savings":
      return <SavingsView />;
    default:
      return <Fleet />;
  }
}

export function App(): JSX.Element {
  const { view, id } = route.value;
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    document.title = `coloc · ${view === "task" ? `Task ${id}` : TITLES[view]}`;
    // A screen reader is told of the new view; the first one is read anyway.
    if (!first.current) main.current?.focus({ preventScroll: true });
    first.current = false;
  }, [view, id]);
  if (session.value.word === "out") return <SignIn why={session.value.why} />;
  if (session.value.word === "trying") return <div class="sign-in" aria-busy="true" />;
  const stale = store.link.value.word === "stale" && view !== "states";
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => (e.preventDefault(), main.current?.focus())}>
        Skip to the view
      </a>
      <Header />
      <StaleBanner />
      <Faults />
      <Truth />
      <Patterns />
      <main id="main" ref={main} tabIndex={-1} class={stale ? "stale-view" : undefined}>
        <View />
      </main>
      <KeyHelp signOut={() => signOut()} />
      <Question />
      <div aria-live="polite">
        {store.notice.value ? (
          <div class={store.notice.value.bad ? "toast bad" : "toast"} role={store.notice.value.bad ? "alert" : "status"}>
            {store.notice.value.text}
          </div>
        ) : null}
      </div>
      <span class="hidden" data-now={clock(store.now.value, store.now.value)} />
    </>
  );
}
