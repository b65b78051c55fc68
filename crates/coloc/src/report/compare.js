// The page of `coloc compare`: verdict, table, Gantt charts, curves, distributions.

// ---- What the rest of the page reads.
function prepare() {
  page.gpus = page.gpus || [];
  page.classes = page.classes && page.classes.length ? page.classes : ["other"];
  page.runs = page.runs || [];
  const ends = (task) => task.attempts.map((attempt) => attempt.end_s).concat(task.end_s).filter(known);
  page.runs.forEach((run, index) => {
    run.look = "run-" + (index % 8);
    run.name = run.name || `run ${index + 1}`;
    run.firstSubmit = run.tasks.reduce((first, task) => Math.min(first, task.submit_s), Infinity);
    run.end = run.tasks.reduce((last, task) => ends(task).reduce((a, b) => Math.max(a, b), last), 0);
    if (!(run.end > 0)) run.end = known(run.summary.makespan_s) ? run.summary.makespan_s : 0;
  });
  const first = page.runs.reduce((least, run) => Math.min(least, run.firstSubmit), Infinity);
  const last = page.runs.reduce((most, run) => Math.max(most, run.end), 0);
  if (Number.isFinite(first) && Math.abs(first) > 0.2 * Math.abs(last)) page.runs.forEach((run) => shift(run, first));
  timeView.start(page.runs.reduce((last, run) => Math.max(last, run.end), 0) || 1);
}
// A trace may count from an epoch of its own: a late first submission becomes time zero.
function shift(run, origin) {
  const moved = (time) => (known(time) ? time - origin : time);
  for (const task of run.tasks) {
    task.submit_s = moved(task.submit_s);
    task.end_s = moved(task.end_s);
    for (const attempt of task.attempts) { attempt.start_s = moved(attempt.start_s); attempt.end_s = moved(attempt.end_s); }
  }
  for (const series of [run.mean, ...run.series]) series.t_s = series.t_s.map(moved);
  run.firstSubmit = moved(run.firstSubmit);
  run.end = moved(run.end);
}
const KNOWN_CLASSES = ["light", "medium", "heavy", "other"];
const classSlug = page.classes && page.classes.map((name, index) => {
  const slug = String(name).toLowerCase();
  if (KNOWN_CLASSES.includes(slug)) return "class-" + slug;
  const spare = page.classes.filter((other, i) => i < index && !KNOWN_CLASSES.includes(String(other).toLowerCase())).length;
  return "class-" + (["fifth", "sixth"][spare] || "other");
});
const classLook = (index) => (classSlug && classSlug[index]) || "class-other";
const className = (index) => page.classes[index] || "other";

// ---- The table. A run that completed fewer tasks than another is not compared for speed: giving up
// early is no merit.
const bytes = (value) => format.mib(known(value) ? value / 1048576 : undefined);
const COLUMNS = [
  { name: "Makespan", key: "makespan_s", text: format.duration, better: -1 },
  { name: "Mean JCT", key: "jct_mean_s", text: format.duration, better: -1 },
  { name: "Median JCT", key: "jct_p50_s", text: format.duration, better: -1 },
  { name: "95 % JCT", key: "jct_p95_s", text: format.duration, better: -1 },
  { name: "Mean wait", key: "wait_mean_s", text: format.duration, better: -1 },
  { name: "Slow-down", key: "slowdown_mean", text: format.times, better: -1 },
  { name: "Energy", key: "energy_j", text: format.energy, better: -1 },
  { name: "SM activity", key: "smact_mean", text: format.percent, better: 1 },
  { name: "Memory a GPU", key: "memory_mean_bytes", text: bytes },
  { name: "Out of memory", key: "oom_count", text: (n) => (known(n) ? plural(n, "time") : "–"), better: -1, plain: true },
  { name: "Preempted", key: "preemptions", text: (n) => (known(n) ? plural(n, "time") : "–"), plain: true },
  { name: "Jain index", key: "jain_index", text: format.index, better: 1 },
  { name: "Makespan bound", key: "makespan_bound_s", text: format.duration, plain: true },
];
const mostCompleted = () => Math.max(0, ...page.runs.map((run) => run.summary.completed || 0));
const ranked = () => page.runs.filter((run) => (run.summary.completed || 0) > 0 && run.summary.completed === mostCompleted());

function bestRuns(column) {
  const values = ranked().map((run) => run.summary[column.key]).filter(known);
  if (!column.better || values.length < 2) return () => false;
  const best = column.better < 0 ? Math.min(...values) : Math.max(...values);
  const spread = Math.max(...values) - Math.min(...values);
  return (run) => spread > 1e-9 && ranked().includes(run) && run.summary[column.key] === best;
}
function table() {
  if (!page.runs.length) return el("p", { class: "empty" }, "There is no run to compare.");
  const first = page.runs[0];
  const best = COLUMNS.map(bestRuns);
  const done = (run) => {
    const { tasks, completed, failed } = run.summary;
    return el("td", null, `${format.count(completed)} of ${format.count(tasks)}`, failed > 0 ? el("small", { class: "alarm" }, `${format.count(failed)} failed`) : null);
  };
  const cell = (run, column, isBest) => {
    const value = run.summary[column.key];
    const change = run !== first && !column.plain && known(value) && first.summary[column.key] > 0 ? format.difference(value / first.summary[column.key] - 1) : null;
    return el("td", { class: isBest(run) ? "best" : null }, column.text(value), change ? el("small", null, change) : null, isBest(run) ? el("span", { class: "unseen" }, "best") : null);
  };
  const rows = page.runs.map((run) => el("tr", { "data-run": run.name }, el("th", { scope: "row", title: run.name }, run.name), done(run), COLUMNS.map((column, i) => cell(run, column, best[i]))));
  const unranked = page.runs.length - ranked().length;
  return el("div", { class: "card" },
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Comparison of policies" },
      el("table", { id: "comparison" }, el("thead", null, el("tr", null, el("th", { scope: "col" }, "Policy"), el("th", { scope: "col" }, "Completed"), COLUMNS.map((column) => el("th", { scope: "col" }, column.name)))), el("tbody", null, rows))),
    el("p", { class: "small" }, `★ best of its column. Percentages are against ${first.name}. JCT is the time from submission to completion.`,
      unranked > 0 ? ` ${plural(unranked, "policy", "policies")} completed fewer tasks than the best and ${unranked === 1 ? "is" : "are"} not ranked.` : ""));
}

function verdict() {
  const first = page.runs[0];
  if (!first) return null;
  const total = first.summary.tasks || first.tasks.length;
  if (!total) return "The trace holds no tasks, so there is nothing to compare.";
  if (mostCompleted() === 0) return `None of the ${plural(total, "task")} completed under any policy.`;
  const winner = ranked().reduce((best, run) => (run.summary.makespan_s < best.summary.makespan_s ? run : best));
  const { summary } = winner;
  const done = `${format.count(summary.completed)} of ${plural(total, "task")} in ${format.duration(summary.makespan_s)}`;
  if (page.runs.length === 1) return `${winner.name} completes ${done}.`;
  if (ranked().length === 1) return `Only ${winner.name} completes ${done}.`;
  if (winner === first) return `No policy here is faster than ${first.name}, which completes ${done}.`;
  const part = (key, less, more) => {
    const change = summary[key] / first.summary[key] - 1;
    return known(change) && Math.abs(change) >= 0.005 ? `${format.percent(Math.abs(change))} ${change < 0 ? less : more}` : null;
  };
  const parts = [part("makespan_s", "sooner", "later"), part("energy_j", "less energy", "more energy")].filter(Boolean);
  const short = first.summary.completed < summary.completed ? `, where ${first.name} completes only ${format.count(first.summary.completed)}` : parts.length ? `, ${parts.join(" and with ")} than under ${first.name}` : "";
  return `${winner.name} completes ${done}${short}.`;
}

// ---- Time: Gantt charts, then curves, one axis for all.
function classKey() {
  const inUse = page.classes.map((name, index) => el("li", null, el("i", { class: "mark " + classLook(index) }), name));
  return el("ul", { class: "key", "aria-label": "Colours and marks" }, inUse, el("li", null, el("i", { class: "mark oom" }), "ran out of memory"), el("li", null, el("i", { class: "mark partial" }), "preempted, failed or running"));
}
function zoomBar() {
  const button = (text, label, act) => el("button", { type: "button", "aria-label": label, onclick: act }, text);
  const all = button("Show all", "Show the whole time", () => timeView.reset());
  const follow = () => { all.disabled = timeView.whole(); };
  timeView.followers.push(follow);
  follow();
  return el("div", { class: "bar-row no-print" }, button("+", "Zoom in", () => timeView.zoom(0.5)), button("−", "Zoom out", () => timeView.zoom(2)), all,
    el("span", { class: "small hint-mouse" }, "Drag over a chart to look closer; double-click to see all. Pointing at a task marks it under every policy."));
}
function schedule(context) {
  const charts = page.runs.map((run) => {
    const drawing = gantt(run, context);
    const { summary } = run;
    const facts = [plural(summary.completed, "task") + " completed", summary.failed > 0 ? `${format.count(summary.failed)} failed` : null, summary.oom_count > 0 ? `${format.count(summary.oom_count)} × out of memory` : null, known(summary.smact_mean) ? `SM activity ${format.percent(summary.smact_mean)}` : null];
    const card = el("div", { class: "card" }, el("div", { class: "card-head" }, el("h3", null, run.name), el("p", null, facts.filter(Boolean).join(" · "))), drawing.host);
    return { card, drawing };
  });
  const lead = "A row is a GPU. A task alone on a GPU fills its row; tasks that share one split it. Every policy has the same time axis.";
  document.getElementById("main").append(section("Who ran where", lead, largeFleetNote(), el("div", { class: "bar-row" }, classKey()), zoomBar(), charts.map((each) => each.card)));
  charts.forEach(({ drawing }) => timeView.followers.push(responsive(drawing.host, drawing.draw)));
}
const largeFleetNote = () => (page.gpus_drawn < page.gpus.length ? el("p", { class: "small" }, el("strong", null, `The first ${page.gpus_drawn} of ${page.gpus.length} GPUs are drawn one by one.`), " Mean curves and all figures count every GPU.") : null);

function runKey(repaint) {
  const swatch = (run) => svgEl("svg", { class: "swatch " + run.look, "aria-hidden": "true" }, svgEl("line", { x1: 0, x2: 26, y1: 5, y2: 5 }));
  const button = (run) => el("button", { type: "button", "aria-pressed": "true", title: "Show or hide", onclick() { run.hidden = !run.hidden; keys.forEach((sync) => sync()); repaint.forEach((paint) => paint()); } }, swatch(run), run.name);
  const buttons = page.runs.map(button);
  keys.push(() => buttons.forEach((each, i) => each.setAttribute("aria-pressed", String(!page.runs[i].hidden))));
  return el("div", { class: "bar-row runs" }, buttons);
}
const keys = [];
const repaints = [];

function curves(context) {
  const body = el("div", null);
  let paints = [];
  let shown = [];
  const fillIn = (each) => {
    shown = [];
    const cards = METRICS.map((metric) => {
      const parts = each ? page.runs.map((run) => ({ run, drawing: gpuChart(metric, run, context) })) : [{ drawing: meanChart(metric, context) }];
      shown.push(...parts);
      const scale = each && metric.limit ? `full height is the ${metric.limitName} of a GPU` : each ? "full height is 100 %" : page.gpus.length === 1 ? page.gpus[0].name : `mean of ${plural(page.gpus.length, "GPU")}`;
      return el("div", { class: "card" }, el("div", { class: "card-head" }, el("h3", null, metric.name), el("p", null, scale)), parts.map((part) => { part.node = el("div", { hidden: Boolean(part.run && part.run.hidden) }, part.run ? el("p", { class: "small" }, part.run.name) : null, part.drawing.host); return part.node; }));
    });
    body.replaceChildren(...cards);
    paints = shown.map(({ drawing }) => responsive(drawing.host, drawing.draw));
  };
  const choice = (id, text, each, checked) => [el("input", { type: "radio", name: "curves", id, checked, onchange: () => fillIn(each) }), el("label", { for: id }, text)];
  const toggle = el("fieldset", { class: "switch no-print" }, el("legend", { class: "unseen" }, "Curves of"), choice("curves-mean", "Mean", false, true), choice("curves-each", page.gpus_drawn < page.gpus.length ? `First ${page.gpus_drawn} GPUs` : "Each GPU", true, false));
  const repaint = () => {
    shown.forEach(({ run, node }) => { node.hidden = Boolean(run && run.hidden); });
    paints.forEach((paint) => paint());
  };
  repaints.push(repaint);
  document.getElementById("main").append(section("How busy the GPUs were", "SM activity, memory and power over the same time axis. A dot is the end of a run.", el("div", { class: "bar-row" }, page.gpus.length > 1 ? toggle : null, runKey(repaints)), body));
  fillIn(false);
  timeView.followers.push(repaint);
}

prepare();
const context = { gpus: page.gpus, drawn: page.gpus_drawn || 0, runs: page.runs, classLook, className, baseline: page.runs[0], everyGantt: [] };
const models = [...new Set(page.gpus.map((gpu) => gpu.model))];
head(page.title, page.note, [["Trace", page.trace], ["Fleet", page.fleet], ["GPUs", `${page.gpus.length}${models.length ? " (" + models.slice(0, 4).join(", ") + (models.length > 4 ? ", …" : "") + ")" : ""}`], ["Policies", String(page.runs.length)]]);
const said = verdict();
if (said) document.getElementById("main").append(el("p", { class: "verdict" }, said));
document.getElementById("main").append(section("The figures", null, table()));
if (page.runs.length && context.drawn) {
  schedule(context);
  curves(context);
}
if (page.runs.some((run) => run.tasks.length)) distributions();
