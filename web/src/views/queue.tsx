import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { TaskView } from "../api/wire.ts";
import { onKey } from "../keys.ts";
import { basis, clock, gib, plural, span, times } from "../model/format.ts";
import { type Filter, type Group, type Row, type SortKey, counts, groups, idText, reasonText } from "../model/queue.ts";
import { WHOLE } from "../model/window.ts";
import { Bullet } from "../parts/bars.tsx";
import { BoundMark, Empty, EstimateMark, Swatch } from "../parts/common.tsx";
import { ask } from "../parts/dialogs.tsx";
import { StateGlyph } from "../parts/icons.tsx";
import { useWindow } from "../parts/virtual.ts";
import { go } from "../route.ts";
import { isEnded, isRunning } from "../store/apply.ts";
import { queueFilter, queueSort } from "../store/choices.ts";
import * as store from "../store/store.ts";
import { phone } from "../store/width.ts";
import { TaskCards } from "./queue-cards.tsx";
import { WhyBox } from "./why.tsx";

const ROW = 34;

/** Everything is shown on the size of the largest GPU, so that rows can be compared. */
export const memoryScale = (): number => Math.max(2 ** 30, ...store.gpus.value.map((g) => g.memory_total_bytes));

export const slowdownOf = (task: TaskView): number | null => {
  const factors = store.gpus.value.flatMap((g) => g.residents.filter((r) => r.id === task.id).map((r) => r.slowdown)).filter((f): f is number => f != null);
  return factors.length > 0 ? Math.max(...factors) : null;
};

const instanceOf = (task: TaskView): string | null => store.gpus.value.flatMap((g) => g.residents).find((r) => r.id === task.id)?.instance ?? null;

function Filters({ now }: { now: number }): JSX.Element {
  const n = counts(store.tasks.value.values(), store.me.value, now);
  const words: [Filter["word"], string, number][] = [
    ["all", "All", n.all],
    ["yours", "Yours", n.yours],
    ["running", "Running", n.running],
    ["waiting", "Waiting", n.waiting],
    ["ended", "Ended today", n.ended],
  ];
  const filter = queueFilter.value;
  return (
    <div class="segmented" role="group" aria-label="Which tasks">
      {words.map(([word, title, count]) => (
        <button key={word} type="button" data-filter={word} aria-pressed={filter.word === word} onClick={() => (queueFilter.value = { word } as Filter)}>
          {title} {count.toLocaleString("en")}
        </button>
      ))}
      {filter.word === "user" ? (
        <button type="button" aria-pressed="true" onClick={() => (queueFilter.value = { word: "all" })}>
          {filter.user} ✕
        </button>
      ) : null}
    </div>
  );
}

export function Queue(): JSX.Element {
  const opened = useSignal<number | null>(null);
  const unfolded = useSignal<ReadonlySet<number>>(new Set());
  // Rows are made anew when tasks change, not every second: ages are read from the clock where they are drawn.
  const made = useComputed<Group[]>(() =>
    groups(store.tasks.value.values(), store.expected.value, {
      filter: queueFilter.value,
      sort: queueSort.value,
      me: store.me.value,
      now: store.now.peek(),
      unfolded: unfolded.value,
    }),
  );
  useQueueKeys(opened);
  const list = made.value;
  return (
    <>
      <div class="view-head">
        <h1>Queue</h1>
        <Filters now={store.now.peek()} />
        <span class="grow" />
        <span class="legend wide-only">
          <span class="predicted">predicted</span>
          <span>
            <EstimateMark />
            estimate
          </span>
          <span>
            <BoundMark />
            its bound
          </span>
        </span>
      </div>
      {store.unforeseen.value ? <p class="hint below">No expected times: {store.unforeseen.value}</p> : null}
      {list.length === 0 ? <NoTasks /> : phone.value ? <TaskCards groups={list} /> : <Table list={list} opened={opened} unfold={(id) => (unfolded.value = new Set([...unfolded.value, id]))} />}
    </>
  );
}

function NoTasks(): JSX.Element {
  return (
    <div class="card">
      {queueFilter.value.word === "ended" ? (
        <Empty title="No task has ended today." />
      ) : queueFilter.value.word === "all" || queueFilter.value.word === "waiting" ? (
        <Empty title="No task waits.">
          <span>Submit a first task:</span>
          <span class="mono">coloc submit -- python train.py</span>
        </Empty>
      ) : (
        <Empty title="No such task." />
      )}
    </div>
  );
}

/** Keys for the row that has the focus. */
function useQueueKeys(opened: { value: number | null }): void {
  useEffect(
    () =>
      onKey((event) => {
        const row = document.activeElement?.closest<HTMLElement>("[data-row][data-task]");
        const task = row ? store.tasks.value.get(Number(row.dataset.task)) : undefined;
        if (!task) return false;
        if (event.key === "Enter" && document.activeElement === row) go(`task/${task.id}`);
        else if (event.key === "w" && !isEnded(task) && !isRunning(task)) opened.value = opened.value === task.id ? null : task.id;
        else return changeKey(event.key, task);
        return true;
      }),
    [],
  );
}

/** `c`, `h` and `r` ask, and ask only those who may. */
export function changeKey(key: string, task: TaskView): boolean {
  if (!"chr".includes(key) || key.length !== 1 || isEnded(task)) return false;
  if (!store.mayAct.value) {
    store.say("This link may only look. `coloc web --act` gives one that may act.", true);
    return true;
  }
  const held = task.reason_code === "held" || task.held_by != null;
  if (key === "h" && isRunning(task)) return false;
  ask(key === "c" ? "cancel" : key === "r" ? "requeue" : held ? "release" : "hold", [task.id], `${task.id} ${task.name} of ${task.user}`);
  return true;
}

interface Line {
  group: Group | null;
  row: Row | null;
}

function Heads(): JSX.Element {
  const sort = queueSort.value;
  const by = (key: SortKey, title: string, end = false): JSX.Element => (
    <th scope="col" class={end ? "end" : undefined} aria-sort={sort?.key === key ? (sort.down ? "descending" : "ascending") : undefined}>
      <button type="button" onClick={() => (queueSort.value = sort?.key !== key ? { key, down: false } : sort.down ? null : { key, down: true })}>
        {title}
        {sort?.key === key ? (sort.down ? " ↓" : " ↑") : ""}
      </button>
    </th>
  );
  return (
    <thead>
      <tr>
        {by("id", "ID")}
        {by("name", "Task")}
        <th scope="col">
          <span class="hidden">State</span>
        </th>
        <th scope="col">Where it is, or why it waits</th>
        {by("for", "For", true)}
        <th scope="col">
          <span class="between">
            <span>GPU memory</span>
            <span>{gib(memoryScale()).replace(".0", "")} GiB</span>
          </span>
        </th>
        <th scope="col" class="end">
          estimate
        </th>
        <th scope="col" class="end">
          peak
        </th>
        {by("starts", "Starts", true)}
        {by("ends", "Ends", true)}
        <th scope="col">known by</th>
      </tr>
    </thead>
  );
}

const WIDTHS = [82, 238, 30, null, 76, 136, 62, 54, 70, 86, 74];

function Table({ list, opened, unfold }: { list: Group[]; opened: { value: number | null }; unfold: (array: number) => void }): JSX.Element {
  const lines: Line[] = list.flatMap((group) => [{ group, row: null }, ...group.rows.map((row) => ({ group: null, row }))]);
  const body = useRef<HTMLTableSectionElement>(null);
  const { start, end } = useWindow(lines.length, ROW, body);
  const scale = memoryScale();
  return (
    <div class="card">
      <table class="table queue-table" aria-rowcount={lines.length > WHOLE ? lines.length + 1 : undefined} aria-label="Tasks">
        <colgroup>
          {WIDTHS.map((w, k) => (
            <col key={k} width={w ?? undefined} />
          ))}
        </colgroup>
        <Heads />
        <tbody ref={body}>
          {start > 0 ? <Spacer height={start * ROW} /> : null}
          {lines.slice(start, end).map((line) =>
            line.group ? (
              <GroupHead key={line.group.word} group={line.group} />
            ) : (
              <TaskRows key={line.row!.task.id} row={line.row!} opened={opened} scale={scale} unfold={unfold} />
            ),
          )}
          {end < lines.length ? <Spacer height={(lines.length - end) * ROW} /> : null}
        </tbody>
      </table>
    </div>
  );
}

const Spacer = ({ height }: { height: number }): JSX.Element => (
  <tr class="spacer" aria-hidden="true">
    <td colSpan={11} height={height} />
  </tr>
);

function GroupHead({ group }: { group: Group }): JSX.Element {
  const words = { running: "Running", waiting: "Waiting", ended: "Ended" };
  return (
    <tr class="group">
      <td colSpan={11}>
        {words[group.word]}{" "}
        <small>
          {group.tasks.toLocaleString("en")}
          {group.word === "waiting" && !queueSort.value ? ", in the order in which they are asked" : `, of ${plural(group.people, "person", "people")}`}
        </small>
      </td>
    </tr>
  );
}

function TaskRows({ row, opened, scale, unfold }: { row: Row; opened: { value: number | null }; scale: number; unfold: (array: number) => void }): JSX.Element {
  const { task } = row;
  const isOpen = opened.value === task.id;
  const waits = !isRunning(task) && !isEnded(task);
  const now = store.now.value;
  const expected = store.expected.value.get(task.id);
  const over = task.bound_bytes != null && task.peak_bytes > task.bound_bytes;
  const press = (e: MouseEvent): void => {
    if ((e.target as Element).closest("a, button")) return;
    if (waits) opened.value = isOpen ? null : task.id;
    else go(`task/${task.id}`);
  };
  return (
    <>
      <tr class="row" data-row data-task={task.id} tabIndex={0} aria-selected={isOpen ? "true" : undefined} onClick={press}>
        <td class="muted keep" data-f="id">
          {idText(row)}
        </td>
        <td class="clip">
          <span class="name">
            <Swatch user={task.user} />
            <a href={`#/task/${task.id}`} tabIndex={-1} title={task.name}>
              <b data-f="name">{task.name}</b>
            </a>
            {row.more.length > 0 ? (
              <button type="button" class="chip outline" title="Show each task of the array" onClick={() => unfold(task.array_id ?? 0)}>
                {row.more.length + 1}
              </button>
            ) : null}
            <span class="muted" data-f="user">
              {task.user}
            </span>
          </span>
        </td>
        <td data-state={task.state}>
          <StateGlyph task={task} />
        </td>
        <Where task={task} />
        <td class="end" data-f="for">
          {span(isEnded(task) ? ((task.ended_s ?? now) - (task.started_s ?? task.ended_s ?? now)) : now - (isRunning(task) ? (task.started_s ?? now) : task.submitted_s))}
        </td>
        <td>
          {waits ? (
            task.estimate_bytes != null || task.promised_bytes != null ? (
              <Bullet user={task.user} used={0} promised={task.bound_bytes ?? task.promised_bytes} estimate={task.estimate_bytes} bound={task.bound_bytes} scale={scale} tint={0.14} />
            ) : null
          ) : (
            <Bullet user={task.user} used={task.peak_bytes} promised={task.promised_bytes} estimate={task.estimate_bytes} bound={task.bound_bytes} scale={scale} word="at its peak" />
          )}
        </td>
        <td class="end" data-f="estimate">
          {gib(task.estimate_bytes)}
        </td>
        <td class={waits ? "end muted" : "end"} data-f="peak">
          {waits && task.peak_bytes === 0 ? "–" : over ? <b class="warn-text">{gib(task.peak_bytes)}</b> : gib(task.peak_bytes)}
        </td>
        <td class="end" data-f="starts">
          {task.started_s != null && !waits ? <span class="muted">{clock(task.started_s, now)}</span> : expected?.expected_start_s != null ? <span class="predicted">{clock(expected.expected_start_s, now)}</span> : "–"}
        </td>
        <td class="end" data-f="ends">
          {task.ended_s != null && isEnded(task) ? clock(task.ended_s, now) : expected?.expected_end_s != null ? <span class="predicted">{clock(expected.expected_end_s, now)}</span> : <span class="muted">{waits && !expected?.expected_start_s ? "–" : "unknown"}</span>}
        </td>
        <td class="muted small clip" title={expected?.expected_basis}>
          {isEnded(task) ? (task.exit_code == null ? "–" : `exit ${task.exit_code}`) : basis(expected?.expected_basis)}
        </td>
      </tr>
      {isOpen && waits ? (
        <tr class="opened">
          <td colSpan={11}>
            <WhyBox id={task.id} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

/** Where a running task is, why a waiting one waits, how an ended one ended. */
function Where({ task }: { task: TaskView }): JSX.Element {
  if (isRunning(task)) {
    const instance = instanceOf(task);
    const slowdown = slowdownOf(task);
    return (
      <td class="clip" data-f="where">
        GPU {task.gpu_ids.join(", ")}
        {instance ? `, ${instance}` : ""}
        {slowdown === null ? null : (
          <span class="muted">
            , slowed <span class="predicted">{times(slowdown)}</span>
          </span>
        )}
        {task.ooms > 0 ? <span class="warn-text">; out of memory, attempt {task.attempts}</span> : null}
      </td>
    );
  }
  const text = isEnded(task) ? (task.reason ?? task.state.replaceAll("_", " ")) : reasonText(task);
  return (
    <td class="clip" data-f="where" title={text}>
      {text}
    </td>
  );
}
