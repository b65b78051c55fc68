import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { clock, gib, span } from "../model/format.ts";
import { type Group, type Row, idText, reasonText } from "../model/queue.ts";
import { Bullet } from "../parts/bars.tsx";
import { Swatch } from "../parts/common.tsx";
import { useWindow } from "../parts/virtual.ts";
import { isEnded, isRunning } from "../store/apply.ts";
import * as store from "../store/store.ts";
import { memoryScale } from "./queue.tsx";

const TITLES = { running: "Running", waiting: "Waiting", ended: "Ended" };
const CARD = 98;

/** Tasks on a phone: what waits comes first, a card each. */
export function TaskCards({ groups }: { groups: Group[] }): JSX.Element {
  const order = ["waiting", "running", "ended"];
  const sorted = [...groups].sort((a, b) => order.indexOf(a.word) - order.indexOf(b.word));
  return (
    <div class="task-cards">
      {sorted.map((group) => (
        <CardGroup key={group.word} group={group} />
      ))}
    </div>
  );
}

function CardGroup({ group }: { group: Group }): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  const { start, end } = useWindow(group.rows.length, CARD, list);
  return (
    <div class="task-cards" ref={list}>
      <h2>
        {TITLES[group.word]} <span class="muted">{group.tasks.toLocaleString("en")}</span>
      </h2>
      {start > 0 ? <svg height={start * CARD} width="1" aria-hidden="true" /> : null}
      {group.rows.slice(start, end).map((row) => (
        <Card key={row.task.id} row={row} />
      ))}
      {end < group.rows.length ? <svg height={(group.rows.length - end) * CARD} width="1" aria-hidden="true" /> : null}
    </div>
  );
}

function Card({ row }: { row: Row }): JSX.Element {
  const { task } = row;
  const now = store.now.value;
  const expected = store.expected.value.get(task.id);
  const runs = isRunning(task);
  const ended = isEnded(task);
  const held = task.reason_code === "held";
  const scale = memoryScale();
  return (
    <a class="card task-card" href={`#/task/${task.id}`} data-row data-task={task.id}>
      <span class="line">
        <Swatch user={task.user} />
        <b class="name">{task.name}</b>
        <span class="muted small">{task.user}</span>
        <span class="right small">
          {ended ? (
            task.state.replaceAll("_", " ")
          ) : held ? (
            "held"
          ) : runs ? (
            <>
              ends <b class="predicted">{clock(expected?.expected_end_s, now)}</b>
            </>
          ) : (
            <>
              starts <b class="predicted">{clock(expected?.expected_start_s, now)}</b>
            </>
          )}
        </span>
      </span>
      {runs ? null : <span class="reason">{ended ? task.reason : reasonText(task)}</span>}
      <span class="foot">
        <span>{runs ? `GPU ${task.gpu_ids.join(", ")}` : idText(row)}</span>
        <span class="bar">
          <Bullet
            user={task.user}
            used={runs || ended ? task.peak_bytes : 0}
            promised={runs ? task.promised_bytes : task.bound_bytes}
            estimate={task.estimate_bytes}
            bound={task.bound_bytes}
            scale={scale}
            tint={runs ? 0.26 : 0.14}
          />
        </span>
        <span>{runs || ended ? `${gib(task.peak_bytes)} GiB` : task.estimate_bytes ? `${gib(task.estimate_bytes)} GiB` : "no estimate"}</span>
        <span class="right">{ended ? clock(task.ended_s, now) : `${runs ? "runs" : "waits"} ${span(now - (runs ? (task.started_s ?? now) : task.submitted_s))}`}</span>
      </span>
    </a>
  );
}
