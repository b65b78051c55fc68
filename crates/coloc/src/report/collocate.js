// The page of `coloc collocate`: what sharing one GPU does to throughput, time, memory and energy,
// from the model and beside what was published.

const experiments = page.experiments || [];
const SHARES = { exclusive: "run-0", mps: "run-1", mig: "run-2", streams: "run-3", lanes: "run-4" };
const shareLook = (share) => SHARES[share] || "run-5";
const shareRank = (share) => { const rank = ["exclusive", "streams", "mps", "mig", "lanes"].indexOf(share); return rank < 0 ? 9 : rank; };
const ideal = (each) => each.copies + (each.with ? 1 : 0);
const subject = (each) => each.workload + (each.with ? ` beside ${each.with}` : "");
const errorOf = (each) => (each.fits && known(each.published) && each.published > 0 && known(each.throughput) ? each.throughput / each.published - 1 : undefined);

// One group a workload or pair, in the order that they came.
function grouped() {
  const groups = new Map();
  for (const each of experiments) {
    const name = subject(each);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(each);
  }
  return [...groups].map(([name, members]) => ({ name, members }));
}

// ---- Bars by number of copies and way of sharing.
const MEASURES = [
  { name: "Throughput", chart: "throughput", lead: "against one at a time", key: "throughput", text: format.times, ideal: true, height: 280 },
  { name: "Slow-down", chart: "slowdown", lead: "time of a task over its time alone", key: "slowdown_mean", text: format.times, level: 1 },
  { name: "Memory in use", chart: "memory", lead: "of the GPU", key: "memory_mib", text: format.mib, limit: () => page.gpu && page.gpu.memory_mib, limitName: "capacity", unit: 1024 },
  { name: "SM activity", chart: "smact", lead: "share of multiprocessors active", key: "smact", text: format.percent, top: 1 },
  { name: "Energy", chart: "energy", lead: "against one at a time; below 1× saves energy", key: "energy_ratio", text: format.times, level: 1 },
];

function facts(each) {
  const lines = [["layout", each.layout || "whole GPU"]];
  if (!each.fits) return [...lines, ["memory", "does not fit"]];
  lines.push(["throughput", format.times(each.throughput)]);
  if (known(each.published)) lines.push(["published", format.times(each.published)], ["model against published", format.difference(errorOf(each))]);
  return [...lines, ["slow-down", format.times(each.slowdown_mean)], ["SM activity", format.percent(each.smact)], ["memory", format.mib(each.memory_mib)], ["power", format.watts(each.power_w)], ["energy", format.times(each.energy_ratio)]];
}
const diamond = (x, y, size) => svgEl("path", { class: "published", d: `M${round2(x)} ${round2(y - size)}l${size} ${size}l${-size} ${size}l${-size} ${-size}z` });
const round2 = (value) => Math.round(value * 100) / 100;

function barChart(measure, group) {
  const host = el("div", null);
  const counts = [...new Set(group.members.map((each) => each.copies))].sort((a, b) => a - b);
  const columns = counts.map((copies) => group.members.filter((each) => each.copies === copies).sort((a, b) => shareRank(a.share) - shareRank(b.share)));
  const fitting = group.members.filter((each) => each.fits && known(each[measure.key]));
  const limit = measure.limit ? measure.limit() : 0;
  const highest = Math.max(0, limit || 0, measure.level || 0, ...fitting.map((each) => each[measure.key]), ...(measure.ideal ? group.members.map((each) => each.published || 0) : []));
  // An ideal that is nearly reached is worth its room; one far above would flatten every bar.
  const near = measure.ideal ? Math.max(0, ...group.members.map(ideal).filter((perfect) => perfect <= highest * 1.4)) : 0;
  const top = measure.top || Math.max(highest * 1.12, near * 1.04) || 1;
  const draw = (width) => {
    const box = { left: 56, right: width - 6, top: 18, bottom: 18 + (measure.height || 170) };
    const y = linear(0, top, box.bottom, box.top);
    const svg = chart(width, box.bottom + 38, `${measure.name} ${measure.lead}, ${group.name}, by copies and way of sharing`, measure.chart);
    const unit = measure.unit && top >= measure.unit ? measure.unit : 1;
    yAxis(svg, box, y, niceTicks(top / unit, 5).map((tick) => tick * unit), (value) => (measure.text === format.times ? `${trim(value, 2)}×` : measure.text(value)));
    const slot = (box.right - box.left) / columns.length;
    columns.forEach((column, index) => drawColumn(svg, box, y, column, { left: box.left + slot * index, slot, measure, top }));
    if (limit) limitLine(svg, box, y(limit), `${measure.limitName} ${measure.text(limit)}`);
    if (measure.level) svg.append(svgEl("line", { class: "ideal", x1: box.left, x2: box.right, y1: y(measure.level), y2: y(measure.level) }));
    svg.append(svgEl("text", { class: "axis-title", x: box.right, y: box.bottom + 32, "text-anchor": "end" }, group.members[0].with ? "copies, and the task beside them" : "copies at once"));
    host.replaceChildren(svg);
  };
  return { host, draw };
}

function drawColumn(svg, box, y, column, { left, slot, measure, top }) {
  const room = Math.min(slot * 0.84, column.length * 56);
  const each = room / column.length;
  const start = left + (slot - room) / 2;
  const copies = column[0].copies;
  const label = column[0].with ? `${copies} + ${shorten(column[0].with, slot - 30, 6.2)}` : String(copies);
  svg.append(svgEl("text", { class: "tick", x: left + slot / 2, y: box.bottom + 15, "text-anchor": "middle" }, label));
  const seen = new Set();
  column.forEach((experiment, index) => {
    const look = shareLook(experiment.share);
    // A second arrangement of the same way of sharing is drawn paler.
    const again = seen.has(experiment.share);
    seen.add(experiment.share);
    const x = start + each * index + 1;
    const width = Math.max(each - 2, 1);
    const mark = svgEl("g", { class: look });
    if (!experiment.fits || !known(experiment[measure.key])) {
      // What it would need is known, and that it is more than there is explains why it does not fit.
      const height = measure.limit && known(experiment[measure.key]) ? box.bottom - y(Math.min(experiment[measure.key], top)) : 26;
      mark.append(svgEl("rect", { class: "no-fit", x, y: box.bottom - height, width, height }));
    } else {
      const value = Math.min(experiment[measure.key], top);
      mark.append(bar(x, y(value), width, box.bottom - y(value), again ? "second" : ""));
      const text = measure.text === format.times ? experiment[measure.key].toFixed(width < 27 ? 1 : 2) : measure.text(experiment[measure.key]);
      if (width >= text.length * 6.3 && !(measure.ideal && known(experiment.published))) mark.append(svgEl("text", { class: "tick", x: x + width / 2, y: y(value) - 4, "text-anchor": "middle" }, text));
    }
    if (measure.ideal && known(experiment.published)) mark.append(diamond(x + width / 2, y(Math.min(experiment.published, top)), 5.5));
    svg.append(explained(mark, `${experiment.share}, ${subject(experiment)}, ${copies}×`, facts(experiment), experiment.published_what));
  });
  if (column.every((each) => !each.fits) && room > 66 && !measure.limit) svg.append(svgEl("text", { class: "hint", x: start + room / 2, y: box.bottom - 32, "text-anchor": "middle" }, "does not fit"));
  if (measure.ideal) drawIdeal(svg, box, y, ideal(column[0]), top, start, room);
}
function drawIdeal(svg, box, y, perfect, top, start, room) {
  if (perfect <= top) svg.append(svgEl("line", { class: "ideal", x1: start - 3, x2: start + room + 3, y1: y(perfect), y2: y(perfect) }));
  else svg.append(svgEl("text", { class: "hint", x: start + room / 2, y: box.top - 6, "text-anchor": "middle" }, room > 60 ? `ideal ${perfect}× ↑` : `${perfect}× ↑`));
}

// ---- The model beside the published numbers: a row a point.
function publishedChart(points) {
  const host = el("div", null);
  const name = (each) => `${subject(each)}, ${each.copies}×, ${each.share}`;
  const most = Math.max(...points.map((each) => Math.max(each.published, each.fits && known(each.throughput) ? each.throughput : 0))) * 1.08;
  const draw = (width) => {
    const narrow = width < 640;
    const rowHeight = narrow ? 46 : 30;
    const names = narrow ? 6 : Math.min(width * 0.42, 18 + 6.7 * Math.max(...points.map((each) => name(each).length)));
    const box = { left: names, right: width - 70, top: 6, bottom: 6 + points.length * rowHeight };
    const x = linear(0, most, box.left, box.right);
    const svg = chart(width, box.bottom + 38, "Throughput of the model and as published", "published");
    xAxis(svg, box, x, niceTicks(most, 6).map((at) => ({ at, text: `${trim(at, 2)}×` })), "throughput against one at a time");
    points.forEach((each, index) => {
      const middle = box.top + rowHeight * index + (narrow ? 32 : rowHeight / 2);
      const row = svgEl("g", { class: shareLook(each.share) }, svgEl("rect", { x: 0, y: box.top + rowHeight * index, width, height: rowHeight, fill: "transparent" }));
      row.append(svgEl("text", { x: narrow ? 0 : box.left - 12, y: narrow ? middle - 14 : middle + 4, "text-anchor": narrow ? "start" : "end" }, shorten(name(each), narrow ? width : names, 6.4)));
      const error = errorOf(each);
      if (known(error)) row.append(svgEl("line", { class: "gap", x1: x(each.throughput), x2: x(each.published), y1: middle, y2: middle }), svgEl("circle", { class: "end", cx: x(each.throughput), cy: middle, r: 6.5 }));
      row.append(diamond(x(each.published), middle, 5.5));
      row.append(svgEl("text", { class: "value", x: width - 2, y: middle + 4, "text-anchor": "end" }, known(error) ? format.difference(error) : "no fit"));
      svg.append(explained(row, name(each), facts(each), each.published_what));
    });
    host.replaceChildren(svg);
  };
  return { host, draw };
}

// ---- Keys, table, page.
function shareKey(members, marks) {
  const shares = [...new Set(members.map((each) => each.share))].sort((a, b) => shareRank(a) - shareRank(b));
  const item = (mark, text) => el("li", null, el("i", { class: "mark " + mark }), text);
  return el("ul", { class: "key", "aria-label": "Colours and marks" }, shares.map((share) => item(shareLook(share), share)), marks.map(([mark, text]) => item(mark, text)));
}
function card(measure, group, waiting) {
  const drawing = barChart(measure, group);
  waiting.push(drawing);
  return el("div", { class: "card" }, el("div", { class: "card-head" }, el("h3", null, measure.name), el("p", null, measure.lead)), drawing.host);
}
function table() {
  const dash = (text) => el("td", { class: "text" }, text || "–");
  const figure = (each, key, text) => el("td", null, each.fits ? text(each[key]) : "–");
  const rows = experiments.map((each) => el("tr", { "data-experiment": true },
    el("th", { scope: "row", title: each.workload }, each.workload), dash(each.with), dash(each.share), dash(each.layout), el("td", null, format.count(each.copies)),
    each.fits ? el("td", null, format.times(each.throughput)) : el("td", { class: "alarm" }, "does not fit"),
    el("td", { title: each.published_what }, format.times(each.published)), el("td", null, format.difference(errorOf(each)) || "–"),
    figure(each, "slowdown_mean", format.times), figure(each, "smact", format.percent), el("td", null, format.mib(each.memory_mib)), figure(each, "power_w", format.watts), figure(each, "energy_ratio", format.times)));
  const heads = [["Workload"], ["Beside", true], ["Share", true], ["Layout", true], ["Copies"], ["Throughput, model"], ["Throughput, published"], ["Model against published"], ["Slow-down"], ["SM activity"], ["Memory"], ["Power"], ["Energy"]];
  return el("div", { class: "card" }, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All experiments" },
    el("table", null, el("thead", null, el("tr", null, heads.map(([text, left]) => el("th", { scope: "col", class: left ? "text" : null }, text)))), el("tbody", null, rows))));
}

function body() {
  const main = document.getElementById("main");
  const gpu = page.gpu || {};
  head(page.title, page.note, [["GPU", [gpu.model || gpu.name, known(gpu.memory_mib) && gpu.memory_mib > 0 ? brief(format.mib(gpu.memory_mib)) : ""].filter(Boolean).join(", ")], ["Experiments", String(experiments.length)]]);
  if (!experiments.length) { main.append(el("p", { class: "empty" }, "There is no experiment to show.")); return; }
  const waiting = [];
  const points = experiments.filter((each) => known(each.published));
  if (points.length) {
    const drawing = publishedChart(points);
    waiting.push(drawing);
    const sources = [...new Set(points.map((each) => each.published_what).filter(Boolean))];
    main.append(section("The model beside the published numbers", "How far the model is from what others measured on this kind of GPU. Points it was calibrated to are not evidence for it.",
      el("div", { class: "card" }, shareKey(points, [["diamond", "published"]]), drawing.host, sources.length ? el("p", { class: "small" }, `Sources: ${sources.join("; ")}.`) : null)));
  }
  for (const group of grouped()) {
    const marks = [["dash", "ideal, or one at a time"]];
    if (group.members.some((each) => known(each.published))) marks.push(["diamond", "published"]);
    if (group.members.some((each) => !each.fits)) marks.push(["unfit", "does not fit in memory"]);
    main.append(section(group.name, null, el("div", { class: "bar-row" }, shareKey(group.members, marks)), card(MEASURES[0], group, waiting), el("div", { class: "pair" }, MEASURES.slice(1).map((measure) => card(measure, group, waiting)))));
  }
  main.append(section("Every experiment", null, table()));
  waiting.forEach((drawing) => responsive(drawing.host, drawing.draw));
}
body();
