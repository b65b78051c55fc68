// What every chart here is made of: elements, units, scales, axes, step lines, tooltip, redraw.

// ---- Elements. Text is only ever set as text, so names from a trace cannot become markup.
const SVG = "http://www.w3.org/2000/svg";

function attach(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const el = (tag, attributes, ...children) => attach(document.createElement(tag), attributes, children);
const svgEl = (tag, attributes, ...children) => attach(document.createElementNS(SVG, tag), attributes, children);

function section(title, lead, ...children) {
  const id = "s-" + title.toLowerCase().replace(/[^a-z]+/g, "-");
  return el("section", { "aria-labelledby": id }, el("h2", { id }, title), lead ? el("p", { class: "lead" }, lead) : null, ...children);
}

// ---- Units. A missing value is a dash, never a zero.
const known = (value) => typeof value === "number" && Number.isFinite(value);
const trim = (value, digits) => value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: 0 });
// Three significant digits are what a model's prediction can carry.
const digitsFor = (value) => (Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2);
const spoken = (unit, value) => {
  const digits = Number.isInteger(value) && Math.abs(value) < 1000 && unit === "s" ? 0 : digitsFor(value);
  return `${value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits })}\u00a0${unit}`;
};
// For axes and limits, where 40 GiB is not 40.0 GiB.
const brief = (text) => text.replace(/\.0+(?=\D|$)/, "");
const format = {
  duration(s) {
    if (!known(s)) return "–";
    const size = Math.abs(s);
    if (size < 120) return spoken("s", s);
    if (size < 2 * 3600) return spoken("min", s / 60);
    return size < 100 * 3600 ? spoken("h", s / 3600) : spoken("d", s / 86400);
  },
  energy: (j) => (!known(j) ? "–" : Math.abs(j) >= 3.6e9 ? spoken("MWh", j / 3.6e9) : Math.abs(j) >= 3.6e5 ? spoken("kWh", j / 3.6e6) : Math.abs(j) >= 1e4 ? spoken("kJ", j / 1e3) : spoken("J", j)),
  mib: (mib) => (!known(mib) ? "–" : mib >= 1024 ? spoken("GiB", mib / 1024) : `${trim(mib, 0)}\u00a0MiB`),
  percent: (share) => (!known(share) ? "–" : `${trim(share * 100, Math.abs(share) < 0.0995 ? 1 : 0)}\u00a0%`),
  watts: (w) => (known(w) ? `${trim(w, 0)}\u00a0W` : "–"),
  times: (x) => (known(x) ? `${x.toFixed(2)}×` : "–"),
  count: (n) => (known(n) ? trim(n, 0) : "–"),
  index: (x) => (known(x) ? x.toFixed(3) : "–"),
  // A signed difference, with a true minus.
  difference(share) {
    if (!known(share)) return "";
    const text = trim(Math.abs(share * 100), Math.abs(share) < 0.0995 ? 1 : 0);
    return text === "0" ? "±0\u00a0%" : `${share < 0 ? "−" : "+"}${text}\u00a0%`;
  },
};
const plural = (n, one, many) => `${format.count(n)}\u00a0${n === 1 ? one : many || one + "s"}`;
function shorten(text, width, perCharacter) {
  const room = Math.floor(width / perCharacter);
  return text.length <= room ? text : room < 3 ? "" : text.slice(0, room - 1) + "…";
}

// ---- Scales and ticks.
const linear = (d0, d1, r0, r1) => (value) => r0 + ((value - d0) / (d1 - d0 || 1)) * (r1 - r0);
function logarithmic(d0, d1, r0, r1) {
  const of = linear(Math.log(d0), Math.log(d1), r0, r1);
  return (value) => of(Math.log(Math.max(value, d0)));
}
function niceTicks(max, count) {
  if (!(max > 0)) return [0, 1];
  const raw = max / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw - 1e-12);
  return Array.from({ length: Math.floor(max / step + 1e-9) + 1 }, (_, i) => i * step);
}
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];
function timeTicks(from, until, count) {
  const span = until - from || 1;
  const step = TIME_STEPS.find((s) => span / s <= count) || 864000 * Math.ceil(span / count / 864000);
  const ticks = [];
  for (let t = Math.ceil(from / step - 1e-9) * step; t <= until + 1e-6; t += step) ticks.push(t);
  return ticks.map((t) => ({ at: t, text: clock(t, step) }));
}
function clock(t, step) {
  const two = (n) => String(n).padStart(2, "0");
  if (t === 0) return "0";
  if (step % 86400 === 0) return `${t / 86400} d`;
  if (step % 3600 === 0) return `${t / 3600} h`;
  if (step % 60 === 0) return t < 3600 ? `${t / 60} min` : `${Math.floor(t / 3600)}:${two(Math.round((t % 3600) / 60))} h`;
  return t < 60 ? `${t} s` : `${Math.floor(t / 60)}:${two(Math.round(t % 60))} min`;
}
const LOG_TIMES = [[1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [21600, "6 h"], [86400, "1 d"], [604800, "1 week"], [6048000, "10 weeks"]];
const FINE_LOG_TIMES = [[1, "1 s"], [5, "5 s"], [15, "15 s"], [30, "30 s"], [60, "1 min"], [120, "2 min"], [300, "5 min"], [900, "15 min"], [1800, "30 min"], [3600, "1 h"], [7200, "2 h"], [14400, "4 h"], [28800, "8 h"], [57600, "16 h"], [86400, "1 d"], [172800, "2 d"], [345600, "4 d"], [604800, "1 week"], [1209600, "2 weeks"]];
function logTimeTicks(from, until) {
  const within = ([at]) => at >= from * 0.999 && at <= until * 1.001;
  const fine = FINE_LOG_TIMES.filter(within);
  return (fine.length <= 7 ? fine : LOG_TIMES.filter(within)).map(([at, text]) => ({ at, text }));
}

// ---- Axes. `box` is {left, right, top, bottom} of the plot inside its SVG.
function xAxis(svg, box, scale, ticks, title) {
  for (const { at, text } of ticks) {
    const x = scale(at);
    const anchor = x > box.right - 14 ? "end" : x < box.left + 8 ? "start" : "middle";
    svg.append(svgEl("line", { class: "grid", x1: x, x2: x, y1: box.top, y2: box.bottom }));
    svg.append(svgEl("text", { class: "tick", x, y: box.bottom + 15, "text-anchor": anchor }, text));
  }
  if (title) svg.append(svgEl("text", { class: "axis-title", x: box.right, y: box.bottom + 31, "text-anchor": "end" }, title));
}
function yAxis(svg, box, scale, ticks, text) {
  for (const at of ticks) {
    const y = scale(at);
    svg.append(svgEl("line", { class: at === 0 ? "base" : "grid", x1: box.left, x2: box.right, y1: y, y2: y }));
    svg.append(svgEl("text", { class: "tick", x: box.left - 8, y: y + 4, "text-anchor": "end" }, at === 0 ? "0" : brief(text(at))));
  }
}
// A line that nothing may cross: capacity, power limit, ideal.
function limitLine(svg, box, y, text) {
  svg.append(svgEl("line", { class: "limit", x1: box.left, x2: box.right, y1: y, y2: y }));
  svg.append(svgEl("text", { class: "limit-text", x: box.right, y: y - 4, "text-anchor": "end" }, brief(text)));
}

// ---- Step functions, drawn with at most four points a pixel column however many there are.
function stepPath(times, values, x, y, from, until, end) {
  let path = "";
  let column = null;
  const flush = () => {
    if (!column) return;
    const px = column.px;
    path += path ? `H${px}` : `M${px} ${column.first}`;
    if (column.low !== column.high) path += `V${column.low}V${column.high}`;
    path += `V${column.last}`;
  };
  for (let i = 0; i < times.length; i++) {
    const next = i + 1 < times.length ? times[i + 1] : end;
    if (next < from && i + 1 < times.length) continue;
    if (times[i] > until) break;
    if (!known(values[i])) continue;
    const px = Math.round(x(Math.max(times[i], from)) * 2) / 2;
    const py = Math.round(y(values[i]) * 10) / 10;
    if (column && px === column.px) {
      column.low = Math.min(column.low, py);
      column.high = Math.max(column.high, py);
      column.last = py;
    } else {
      flush();
      column = { px, first: py, low: py, high: py, last: py };
    }
  }
  flush();
  return path ? path + `H${Math.round(x(Math.min(Math.max(end, from), until)) * 2) / 2}` : "";
}
// The value that holds at a time.
function valueAt(times, values, t) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1;
    else high = middle;
  }
  return low > 0 ? values[low - 1] : undefined;
}

// ---- Tooltip: a title and rows of [label, value, mark class].
const tooltip = {
  node: document.getElementById("tooltip"),
  show(clientX, clientY, title, rows, note) {
    const line = ([label, value, mark]) => [
      el("dt", null, mark ? el("i", { class: "mark " + mark }) : null, label), el("dd", null, value)];
    this.node.replaceChildren(el("strong", null, title), el("dl", null, rows.map(line).flat()), note ? el("em", null, note) : "");
    this.node.hidden = false;
    const { width, height } = this.node.getBoundingClientRect();
    const left = clientX + 16 + width > innerWidth ? clientX - width - 12 : clientX + 16;
    const top = clientY + 16 + height > innerHeight ? clientY - height - 12 : clientY + 16;
    this.node.style.left = Math.max(6, Math.min(left, innerWidth - width - 6)) + "px";
    this.node.style.top = Math.max(6, top) + "px";
  },
  hide() { this.node.hidden = true; },
};
addEventListener("scroll", () => tooltip.hide(), { passive: true });
addEventListener("keydown", (event) => { if (event.key === "Escape") tooltip.hide(); });
const announce = (text) => { document.getElementById("announce").textContent = text; };
// A mark with a tooltip that also opens on keyboard focus.
function explained(node, title, rows, note) {
  const text = [title, ...rows.map(([label, value]) => `${label} ${value}`), note].filter(Boolean).join(", ");
  const open = (x, y) => tooltip.show(x, y, title, rows, note);
  attach(node, {
    tabindex: 0, role: "img", "aria-label": text,
    onpointermove: (event) => open(event.clientX, event.clientY),
    onpointerleave: () => tooltip.hide(),
    onfocus: () => { const box = node.getBoundingClientRect(); open(box.right, box.top); },
    onblur: () => tooltip.hide(),
  }, []);
  return node;
}

// ---- Redraw: a chart is a function of its width.
function responsive(host, draw) {
  let drawn = 0;
  const paint = () => {
    const width = Math.floor(host.clientWidth);
    if (width <= 0) return;
    drawn = width;
    draw(width);
  };
  new ResizeObserver(() => { if (Math.floor(host.clientWidth) !== drawn) requestAnimationFrame(paint); }).observe(host);
  paint();
  return paint;
}
function chart(width, height, label, name) {
  return svgEl("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, "data-chart": name });
}
// Bars from a base line, all told alike; the caller has set the scales.
function bar(x, y, width, height, style) {
  return svgEl("rect", { class: "bar " + (style || ""), x, y, width: Math.max(width, 0.5), height: Math.max(height, 0.5), rx: Math.min(2, width / 4) });
}

// ---- The head of a page.
function head(title, note, facts) {
  document.getElementById("head").append(
    note ? el("p", { class: "note" }, note) : "", el("h1", null, title || "coloc"),
    el("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([name, value]) => el("div", null, el("dt", null, name), el("dd", null, value)))));
}

// Paper is white, whatever the screen is.
addEventListener("beforeprint", () => document.documentElement.setAttribute("data-print", ""));
addEventListener("afterprint", () => document.documentElement.removeAttribute("data-print"));
