// SM activity, memory and power over time: the runs over each other, or every GPU by itself.

const METRICS = [
  { key: "sm", name: "SM activity", short: "SMACT", text: format.percent, top: () => 1, ticks: [0, 0.25, 0.5, 0.75, 1] },
  { key: "memory_mib", name: "Memory in use", short: "memory", text: format.mib, limit: "memory_mib", limitName: "capacity" },
  { key: "power_w", name: "Power", short: "power", text: format.watts, limit: "limit_w", limitName: "limit" },
];

function meanOf(gpus, key) {
  const values = gpus.map((gpu) => gpu[key]).filter((value) => known(value) && value > 0);
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : 0;
}
// Round steps in the unit that is printed, so that an axis in GiB has whole GiB.
function metricTicks(metric, top) {
  if (metric.ticks) return metric.ticks;
  const unit = metric.key === "memory_mib" && top >= 2048 ? 1024 : 1;
  return niceTicks(top / unit, 4).map((tick) => tick * unit);
}
const peakOf = (runs, key) => runs.reduce((peak, run) => [run.mean, ...run.series].reduce((most, series) => (series[key] || []).reduce((a, b) => Math.max(a, b || 0), most), peak), 0);

// All runs over each other: the mean of the fleet.
function meanChart(metric, context) {
  const host = el("div", null);
  const capacity = metric.limit ? meanOf(context.gpus, metric.limit) : 0;
  const top = metric.top ? metric.top() : Math.max(capacity * 1.04, peakOf(context.runs.map((run) => ({ mean: run.mean, series: [] })), metric.key) * 1.05) || 1;
  const draw = (width) => {
    const box = { left: gutter(width), right: width - 12, top: 16, bottom: 136 };
    const x = linear(timeView.from, timeView.until, box.left, box.right);
    const y = linear(0, top, box.bottom, box.top);
    const shown = context.runs.filter((run) => !run.hidden);
    const svg = chart(width, box.bottom + 22, `${metric.name}, mean of all GPUs, over time, for ${shown.map((run) => run.name).join(", ")}`, "mean-" + metric.key);
    yAxis(svg, box, y, metricTicks(metric, top), metric.text);
    xAxis(svg, box, x, timeTicks(timeView.from, timeView.until, (box.right - box.left) / 90));
    if (capacity) limitLine(svg, box, y(capacity), `${metric.limitName} ${metric.text(capacity)}`);
    for (const run of shown) {
      const d = stepPath(run.mean.t_s, run.mean[metric.key], x, y, timeView.from, timeView.until, run.end);
      if (!d) continue;
      svg.append(svgEl("path", { class: "line " + run.look, d, "data-run": run.name }));
      const last = run.mean[metric.key][run.mean.t_s.length - 1];
      if (run.end <= timeView.until && run.end >= timeView.from && known(last)) svg.append(svgEl("circle", { class: "end " + run.look, cx: x(run.end), cy: y(last), r: 3.5 }));
    }
    crosshair(svg, box, (t) => ({
      title: `${metric.short} at ${format.duration(t)}`,
      rows: shown.map((run) => [run.name, t > run.end ? "done" : metric.text(valueAt(run.mean.t_s, run.mean[metric.key], t)), run.look]),
    }));
    host.replaceChildren(svg);
  };
  return { host, draw };
}

// Every GPU of one run, a thin row each, filled to its own capacity.
function gpuChart(metric, run, context) {
  const host = el("div", null);
  const { gpus, drawn } = context;
  const rowHeight = drawn <= 4 ? 34 : drawn <= 8 ? 26 : 18;
  const peak = metric.top ? 1 : peakOf([run], metric.key);
  const full = (gpu) => (metric.top ? 1 : gpu[metric.limit] > 0 ? gpu[metric.limit] : peak || 1);
  const draw = (width) => {
    const box = { left: gutter(width), right: width - 12, top: 2, bottom: 2 + drawn * (rowHeight + 4) - 4 };
    const x = linear(timeView.from, timeView.until, box.left, box.right);
    const svg = chart(width, box.bottom + 22, `${metric.name} of every GPU over time under ${run.name}`, "gpus-" + metric.key);
    for (let row = 0; row < drawn; row++) {
      const top = box.top + row * (rowHeight + 4);
      svg.append(svgEl("rect", { class: "lane", x: box.left, y: top, width: box.right - box.left, height: rowHeight }));
      svg.append(svgEl("text", { class: "tick", x: box.left - 8, y: top + rowHeight / 2 + 4, "text-anchor": "end" }, shorten(gpus[row].name, box.left - 10, 6.2)));
    }
    xAxis(svg, box, x, timeTicks(timeView.from, timeView.until, (box.right - box.left) / 90));
    for (let row = 0; row < drawn; row++) {
      const top = box.top + row * (rowHeight + 4);
      const series = run.series[row];
      if (!series) continue;
      const y = linear(0, full(gpus[row]), top + rowHeight, top);
      const d = stepPath(series.t_s, series[metric.key], x, y, timeView.from, timeView.until, run.end);
      if (d) svg.append(svgEl("path", { class: "area " + run.look, d: areaUnder(d, top + rowHeight) }), svgEl("path", { class: "area-line " + run.look, d, "data-gpu": row }));
      if (metric.limit) svg.append(svgEl("line", { class: "limit", x1: box.left, x2: box.right, y1: top, y2: top }));
    }
    crosshair(svg, box, (t, py) => {
      const row = Math.max(0, Math.min(drawn - 1, Math.floor((py - box.top) / (rowHeight + 4))));
      const series = run.series[row];
      if (!series) return null;
      const rows = METRICS.map((each) => [each.short, t > run.end ? "done" : each.text(valueAt(series.t_s, series[each.key], t))]);
      return { title: `${gpus[row].name}, ${run.name}, at ${format.duration(t)}`, rows };
    });
    host.replaceChildren(svg);
  };
  return { host, draw };
}
// A step line ends with a horizontal stroke; dropping to the base from there closes the area.
const areaUnder = (d, base) => { const start = /^M([\d.-]+) /.exec(d); return `${d}V${base}H${start[1]}Z`; };

function crosshair(svg, box, tell) {
  const line = svgEl("line", { class: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" });
  svg.append(line);
  attach(svg, {
    onpointermove(event) {
      const area = svg.getBoundingClientRect();
      const px = event.clientX - area.left;
      if (px < box.left || px > box.right) { line.setAttribute("visibility", "hidden"); tooltip.hide(); return; }
      const t = timeView.from + ((px - box.left) / (box.right - box.left)) * (timeView.until - timeView.from);
      const said = tell(t, event.clientY - area.top);
      if (!said) return;
      for (const end of ["x1", "x2"]) line.setAttribute(end, px);
      line.setAttribute("visibility", "visible");
      tooltip.show(event.clientX, event.clientY, said.title, said.rows);
    },
    onpointerleave() { line.setAttribute("visibility", "hidden"); tooltip.hide(); },
  }, []);
}
