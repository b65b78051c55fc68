// The Gantt chart of one run: a row a GPU, tasks that share a GPU side by side within its row.

// ---- One time window for every chart of the page, so that runs line up.
const timeView = {
  full: [0, 1], from: 0, until: 1, followers: [],
  start(until) { this.full = [0, until]; [this.from, this.until] = this.full; },
  show(from, until) {
    const span = Math.max(until - from, this.full[1] / 5000);
    this.from = Math.max(0, Math.min(from, this.full[1] - span));
    this.until = Math.min(this.full[1], this.from + span);
    this.followers.forEach((follow) => follow());
  },
  zoom(factor, around) {
    const at = around ?? (this.from + this.until) / 2;
    this.show(at - (at - this.from) * factor, at + (this.until - at) * factor);
  },
  reset() { this.show(...this.full); },
  whole() { return this.from <= this.full[0] && this.until >= this.full[1]; },
};
const gutter = (width) => (width < 560 ? 56 : 96);

// ---- Layout: bars of a GPU that overlap in time form a cluster and split the row's height.
function layOut(run, gpuCount) {
  const rows = Array.from({ length: gpuCount }, () => []);
  for (const task of run.tasks) {
    for (const attempt of task.attempts) {
      for (const gpu of attempt.gpus) {
        if (gpu < gpuCount) rows[gpu].push({ task, attempt, from: attempt.start_s, until: Math.max(attempt.end_s ?? run.end, attempt.start_s), lane: 0, lanes: 1 });
      }
    }
  }
  rows.forEach(assignLanes);
  return rows;
}
function assignLanes(bars) {
  bars.sort((a, b) => a.from - b.from || a.until - b.until);
  let cluster = [];
  let lanes = [];
  let clusterEnd = -Infinity;
  const close = () => { for (const bar of cluster) bar.lanes = lanes.length; };
  for (const bar of bars) {
    if (bar.from >= clusterEnd) { close(); cluster = []; lanes = []; clusterEnd = -Infinity; }
    let lane = lanes.findIndex((end) => end <= bar.from);
    if (lane < 0) lane = lanes.push(0) - 1;
    lanes[lane] = bar.until;
    bar.lane = lane;
    cluster.push(bar);
    clusterEnd = Math.max(clusterEnd, bar.until);
  }
  close();
}

// ---- Drawing. Bars of one look are one path: ten thousand tasks are a handful of elements.
const LABELS_A_RUN = 500;
function paths() {
  const parts = new Map();
  return {
    add(look, piece) { if (parts.has(look)) parts.get(look).push(piece); else parts.set(look, [piece]); },
    into(svg) { for (const [look, pieces] of parts) svg.append(svgEl("path", { class: look, d: pieces.join("") })); },
  };
}
const round1 = (value) => Math.round(value * 10) / 10;
const boxPath = (x, y, w, h) => `M${round1(x)} ${round1(y)}h${round1(w)}v${round1(h)}h${round1(-w)}z`;

function gantt(run, context) {
  const { gpus, drawn, classLook, baseline, everyGantt } = context;
  const rows = layOut(run, drawn);
  const host = el("div", null);
  const rowHeight = drawn <= 4 ? 42 : drawn <= 8 ? 31 : 22;
  const gap = drawn <= 8 ? 5 : 3;
  const box = { left: 0, right: 0, top: 20, bottom: 20 + drawn * (rowHeight + gap) - gap };
  let svg, overlay, x;
  let walking = null;

  const place = (bar, row) => {
    const height = rowHeight / bar.lanes;
    const left = Math.max(x(bar.from), box.left);
    return { x: left, y: box.top + row * (rowHeight + gap) + bar.lane * height, w: Math.min(x(bar.until), box.right) - left, h: height };
  };

  function draw(width) {
    box.left = gutter(width);
    box.right = width - 12;
    x = linear(timeView.from, timeView.until, box.left, box.right);
    svg = svgEl("svg", {
      class: "chart gantt", width, height: box.bottom + 24, viewBox: `0 0 ${width} ${box.bottom + 24}`, tabindex: 0, role: "group",
      "aria-roledescription": "Gantt chart", "data-chart": "gantt", "data-run": run.name, "data-rows": drawn,
      "aria-label": `${run.name}: ${plural(run.tasks.length, "task")} on ${plural(gpus.length, "GPU")}, done after ${format.duration(run.end)}. Arrow keys walk through the tasks, plus and minus zoom, zero shows all.`,
    });
    rows.forEach((_, row) => {
      const y = box.top + row * (rowHeight + gap);
      svg.append(svgEl("rect", { class: "lane", x: box.left, y, width: box.right - box.left, height: rowHeight, "data-gpu": row }));
      svg.append(svgEl("text", { class: "tick", x: box.left - 8, y: y + rowHeight / 2 + 4, "text-anchor": "end" }, shorten(gpus[row].name, box.left - 10, 6.2)));
    });
    xAxis(svg, box, x, timeTicks(timeView.from, timeView.until, (box.right - box.left) / 90));
    drawBars();
    drawFinish();
    overlay = svgEl("g", null);
    svg.append(overlay);
    listen();
    host.replaceChildren(svg);
  }

  function drawBars() {
    const fills = paths();
    const marks = paths();
    const names = [];
    const rightEdge = new Map();
    let seen = 0;
    let ooms = 0;
    rows.forEach((bars, row) => bars.forEach((bar) => {
      if (bar.until < timeView.from || bar.from > timeView.until) return;
      seen += 1;
      const at = place(bar, row);
      const { outcome } = bar.attempt;
      const look = classLook(bar.task.class);
      if (outcome === "out_of_memory") {
        ooms += 1;
        const end = Math.min(at.x + at.w, box.right);
        if (!crowded(rightEdge, `x${row}/${bar.lane}`, end - 3, end)) {
          const size = Math.min(4, at.h / 2 - 0.5);
          const middle = at.y + at.h / 2;
          marks.add("oom-mark", `M${round1(end - size)} ${round1(middle - size)}l${size * 2} ${size * 2}m0 ${-size * 2}l${-size * 2} ${size * 2}`);
        }
      }
      // Bars too thin to see apart become one: what is drawn is bounded by pixels, not by tasks.
      if (at.w < 1 && crowded(rightEdge, `${row}/${bar.lane}/${bar.lanes}/${look}/${outcome}`, at.x, at.x + 1)) return;
      const piece = boxPath(at.x, at.y, Math.max(at.w, 1), at.h);
      fills.add(`task ${look} ${outcome}${at.w < 4 || at.h < 5 ? " dense" : ""}`, piece);
      if (outcome === "out_of_memory" && at.w > 3) marks.add("oom-hatch", piece);
      if (at.w > 40 && at.h >= 10 && names.length < LABELS_A_RUN && outcome !== "out_of_memory") {
        const text = shorten(bar.task.name, at.w - 8, 5.9);
        if (text.length > 2) names.push(svgEl("text", { class: `task-name ${look}${outcome === "completed" ? "" : " pale"}`, x: at.x + 5, y: at.y + at.h / 2 + 3.6 }, text));
      }
    }));
    fills.into(svg);
    svg.append(...names);
    marks.into(svg);
    svg.setAttribute("data-bars", seen);
    svg.setAttribute("data-ooms", ooms);
    if (seen === 0) {
      const text = rows.some((bars) => bars.length) ? "No task ran in this span of time" : "No task was started";
      svg.append(svgEl("text", { class: "hint", x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2 + 4, "text-anchor": "middle" }, text));
    }
  }
  function crowded(edges, key, left, right) {
    if (left < (edges.get(key) ?? -Infinity)) return true;
    edges.set(key, right);
    return false;
  }

  // Where the run ended, and how much sooner or later than the first one.
  function drawFinish() {
    const bound = run.firstSubmit + run.summary.makespan_bound_s;
    if (known(bound) && bound > timeView.from && bound < timeView.until && bound < run.end * 0.999) {
      svg.append(svgEl("line", { class: "bound", x1: x(bound), x2: x(bound), y1: box.top - 4, y2: box.bottom }));
      if (x(run.end) - x(bound) > 150) svg.append(svgEl("text", { class: "bound-text", x: x(bound), y: box.top - 8, "text-anchor": "middle" }, "lower bound"));
    }
    if (run.end < timeView.from || run.end > timeView.until || run.tasks.length === 0) return;
    const at = x(run.end);
    if (box.right - at > 1) svg.append(svgEl("rect", { class: "after", x: at, y: box.top, width: box.right - at, height: box.bottom - box.top }));
    svg.append(svgEl("line", { class: "finish", x1: at, x2: at, y1: box.top - 6, y2: box.bottom }));
    const took = (each) => (known(each.summary.makespan_s) ? each.summary.makespan_s : each.end);
    // A run that gave up on tasks is not sooner, it is less.
    const less = run.summary.completed < baseline.summary.completed;
    const change = run === baseline || less || !(took(baseline) > 0) ? "" : `  ${format.difference(took(run) / took(baseline) - 1)}`;
    const room = box.right - at > 120;
    svg.append(svgEl("text", { class: "finish-text", x: room ? at + 6 : at - 6, y: box.top - 7, "text-anchor": room ? "start" : "end" }, format.duration(took(run)) + change));
  }

  // ---- Pointing, walking and zooming.
  function barAt(px, py) {
    const row = Math.floor((py - box.top) / (rowHeight + gap));
    let best = null;
    let bestDistance = 3;
    for (const bar of rows[row] || []) {
      const at = place(bar, row);
      if (py < at.y || py > at.y + at.h) continue;
      const distance = px < at.x ? at.x - px : px > at.x + at.w ? px - at.x - at.w : 0;
      if (distance < bestDistance) { best = { bar, row }; bestDistance = distance; }
      if (distance === 0) break;
    }
    return best;
  }
  function highlight(id, onlyClear) {
    overlay.replaceChildren();
    if (onlyClear) return;
    rows.forEach((bars, row) => bars.forEach((bar) => {
      if (bar.task.id !== id || bar.until < timeView.from || bar.from > timeView.until) return;
      const at = place(bar, row);
      overlay.append(svgEl("rect", { class: "chosen", x: at.x, y: at.y, width: Math.max(at.w, 2), height: at.h }));
    }));
  }
  function tell(found, clientX, clientY) {
    everyGantt.forEach((other) => other.highlight(found.bar.task.id));
    const { title, lines } = describe(found.bar, context);
    tooltip.show(clientX, clientY, title, lines);
    return `${title}, ${lines.map(([label, value]) => `${label} ${value}`).join(", ")}`;
  }
  function clear() {
    everyGantt.forEach((other) => other.highlight(null, true));
    tooltip.hide();
  }

  function listen() {
    let dragFrom = null;
    const inside = (event) => { const area = svg.getBoundingClientRect(); return [event.clientX - area.left, event.clientY - area.top]; };
    const back = (px) => timeView.from + ((px - box.left) / (box.right - box.left)) * (timeView.until - timeView.from);
    attach(svg, {
      onpointerdown(event) { if (event.pointerType === "mouse" && event.button === 0) { dragFrom = inside(event)[0]; svg.setPointerCapture(event.pointerId); } },
      onpointermove(event) {
        const [px, py] = inside(event);
        if (dragFrom !== null && Math.abs(px - dragFrom) > 4) {
          tooltip.hide();
          overlay.replaceChildren(svgEl("rect", { class: "selection", x: Math.min(px, dragFrom), y: box.top, width: Math.abs(px - dragFrom), height: box.bottom - box.top }));
          return;
        }
        const found = barAt(px, py);
        if (found) tell(found, event.clientX, event.clientY);
        else clear();
      },
      onpointerup(event) {
        const [px] = inside(event);
        const from = dragFrom;
        dragFrom = null;
        if (from !== null && Math.abs(px - from) > 4) timeView.show(back(Math.min(px, from)), back(Math.max(px, from)));
      },
      // A finger does not hover: a tap tells what pointing would.
      onclick(event) { const found = barAt(...inside(event)); if (found) tell(found, event.clientX, event.clientY); },
      onpointerleave(event) { if (event.pointerType === "mouse") clear(); },
      onblur: clear,
      ondblclick: () => timeView.reset(),
      onkeydown(event) {
        const zooms = { "+": 0.5, "=": 0.5, "-": 2 };
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (zooms[event.key]) { timeView.zoom(zooms[event.key], walking && walking.bar.from); host.firstChild.focus(); return; }
        if (event.key === "0") { timeView.reset(); host.firstChild.focus(); return; }
        const next = step(walking, event.key);
        if (!next) return;
        walking = next;
        event.preventDefault();
        const at = place(walking.bar, walking.row);
        const area = svg.getBoundingClientRect();
        announce(tell(walking, area.left + at.x, area.top + at.y + at.h));
      },
    }, []);
  }
  function step(now, key) {
    const along = { ArrowRight: 1, ArrowLeft: -1 }[key];
    const across = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (!along && !across) return null;
    const visible = (row) => rows[row].filter((bar) => bar.until >= timeView.from && bar.from <= timeView.until);
    if (!now) { const row = rows.findIndex((_, i) => visible(i).length); return row < 0 ? null : { row, bar: visible(row)[0] }; }
    if (along) { const bars = visible(now.row); return { row: now.row, bar: bars[Math.max(0, Math.min(bars.length - 1, bars.indexOf(now.bar) + along))] || now.bar }; }
    for (let row = now.row + across; row >= 0 && row < rows.length; row += across) {
      const nearest = visible(row).sort((a, b) => Math.abs(a.from - now.bar.from) - Math.abs(b.from - now.bar.from))[0];
      if (nearest) return { row, bar: nearest };
    }
    return now;
  }

  everyGantt.push({ highlight });
  return { host, draw };
}

const OUTCOMES = { completed: "completed", out_of_memory: "ran out of memory", failed: "failed", preempted: "preempted", running: "still running" };
function describe(bar, context) {
  const { task, attempt } = bar;
  const ran = bar.until - bar.from;
  const lines = [["class", context.className(task.class), context.classLook(task.class)], ["waited", format.duration(firstWait(task))], ["ran", format.duration(ran)]];
  if (attempt.outcome === "completed" && known(task.alone_s) && task.alone_s > 0) lines.push(["slow-down", format.times(ran / task.alone_s)]);
  if (known(task.end_s)) lines.push(["submitted to end", format.duration(task.end_s - task.submit_s)]);
  if (task.attempts.length > 1) lines.push(["attempt", `${task.attempts.indexOf(attempt) + 1} of ${task.attempts.length}`]);
  if (attempt.gpus.length > 1) lines.push(["GPUs", String(attempt.gpus.length)]);
  lines.push(["this attempt", OUTCOMES[attempt.outcome] || attempt.outcome]);
  return { title: `${task.name || "task"} #${task.id}`, lines };
}
const firstWait = (task) => (task.attempts.length ? task.attempts[0].start_s - task.submit_s : undefined);
