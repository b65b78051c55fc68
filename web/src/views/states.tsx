// Empty, loading and broken: designed too. Reached by `#/states`, not from the navigation.
import type { ComponentChildren, JSX } from "preact";
import type { GpuView } from "../api/wire.ts";
import { Stack } from "../parts/bars.tsx";
import { Empty, Skeleton } from "../parts/common.tsx";

const GIB = 2 ** 30;
const SHOWN = {
  index: 0,
  uuid: "",
  model: "A100-SXM4-40GB",
  memory_total_bytes: 40 * GIB,
  memory_used_bytes: 29 * GIB,
  memory_promised_bytes: 32 * GIB,
  residents: [
    { id: 1, name: "a", user: "ana", promised_bytes: 12 * GIB, used_bytes: 11 * GIB },
    { id: 2, name: "b", user: "ben", promised_bytes: 10 * GIB, used_bytes: 9 * GIB },
    { id: 3, name: "c", user: "chen", promised_bytes: 10 * GIB, used_bytes: 9 * GIB },
  ],
} as unknown as GpuView;

const State = ({ caption, children }: { caption: string; children: ComponentChildren }): JSX.Element => (
  <section class="card">
    <div class="caption">{caption}</div>
    {children}
  </section>
);

export function States(): JSX.Element {
  return (
    <>
      <div class="view-head">
        <h1>States</h1>
        <p class="muted">for developers: not in the navigation</p>
      </div>
      <div class="states">
        <State caption="Queue, nothing waits">
          <Empty title="No task waits.">
            <span>Submit a first task:</span>
            <span class="mono">coloc submit -- python train.py</span>
          </Empty>
        </State>
        <State caption="Fleet, loading (after 200 ms, never before)">
          <Skeleton />
        </State>
        <State caption="Daemon gone: what was known stays, dimmed">
          <div class="banner">
            <span aria-hidden="true">▲</span>
            <span>
              <b>Not connected</b> since 14:29:10; shown is what was known then. Tasks go on. Next try in 4 s.
            </span>
          </div>
          <div class="pad stale-view" aria-hidden="true">
            <Stack gpu={SHOWN} />
          </div>
        </State>
        <State caption="No GPU">
          <Empty title="There is no GPU on this machine.">
            <span>To try coloc without one:</span>
            <span class="mono">coloc daemon --emulate 4xA100-40GB</span>
          </Empty>
        </State>
        <State caption="A GPU that is lost">
          <div class="pad gpu">
            <header>
              <h2>GPU 2</h2>
              <span class="chip bad">✕ lost since 13:58</span>
            </header>
            <p class="verdict">It fell off the bus (XID 79). Its 3 tasks start again elsewhere; nothing is started here until it is back.</p>
            <svg width="100%" height="28" aria-hidden="true">
              <rect width="100%" height="28" fill="url(#hatch-none)" />
            </svg>
          </div>
        </State>
        <State caption="The output of another user’s task">
          <Empty title="The log is chen’s.">
            <span>Its owner and administrators may read it. You are signed in as ana.</span>
          </Empty>
        </State>
        <State caption="A source that sees no SMs">
          <div class="pad">
            <div class="activity single">
              <div>
                <div class="label">
                  <span>SM activity</span>
                  <b>not seen</b>
                </div>
                <svg width="100%" height="38" aria-hidden="true">
                  <rect width="100%" height="38" fill="url(#hatch-none)" opacity="0.5" />
                </svg>
              </div>
            </div>
            <p class="small muted">Only utilization is seen (NVML): 97 %. A GPU in use counts as fully busy.</p>
          </div>
        </State>
        <State caption="Not signed in">
          <Empty title="You are not signed in.">
            <span>For a link that signs this browser in, type on the machine with the GPUs:</span>
            <span class="mono">coloc web</span>
          </Empty>
        </State>
        <State caption="Too much to foresee">
          <Empty title="No expected times.">
            <span>More than 20,000 tasks have not ended: a forecast does not look that far ahead.</span>
          </Empty>
        </State>
        <State caption="The disk is full">
          <div class="banner bad">
            <span aria-hidden="true">✕</span>
            <span>The journal’s disk is full: nothing new is taken or started until there is room.</span>
          </div>
          <Empty title="Running tasks go on." />
        </State>
        <State caption="Something could not be read">
          <div class="empty">
            <b>The timeline could not be read.</b>
            <span>Of lists with ended tasks three are answered at a time: ask again.</span>
            <span class="button">Try again</span>
          </div>
        </State>
        <State caption="A link that may only look">
          <Empty title="This link may only look.">
            <span>For one that may cancel, hold and requeue:</span>
            <span class="mono">coloc web --act</span>
          </Empty>
        </State>
      </div>
    </>
  );
}
