// The page of `coloc report`: GPU hours, waits, out-of-memory, energy and SM activity by user, day and GPU.

const MOST_BARS = 31;
const sides = [
  { key: "users", title: "By user", one: "user", rows: page.users || [] },
  { key: "days", title: "By day", one: "day", rows: page.days || [] },
  { key: "gpus", title: "By GPU", one: "GPU", rows: page.gpus || [] },
];
const hourDigits = (h) => (Math.abs(h) < 0.1 ? 4 : Math.abs(h) < 10 ? 2 : 1);
const hours = (h) => (known(h) ? `${trim(h, hourDigits(h))}\u00a0GPU\u00a0h` : "–");
const MEASURES = [
  { name: "GPU hours", chart: "hours", lead: "promised, and of that used", key: "gpu_hours_promised", inner: "gpu_hours_used", text: hours, height: 200 },
  { name: "Wait", chart: "wait", lead: "from submission to the first start, mean", key: "wait_mean_s", text: format.duration },
  { name: "Out of memory", chart: "ooms", lead: "attempts", key: "ooms", text: format.count },
  { name: "Energy", chart: "energy", lead: page.energy || "the tasks' shares", key: "energy_j", text: format.energy },
  { name: "SM activity", chart: "smact", lead: "the tasks' own, mean", key: "smact_mean", text: format.percent, top: 1 },
];
const named = (side, row) => (side.key === "gpus" && /^\d+$/.test(row.key) ? `GPU ${row.key}` : row.key);
const facts = (row) => [["tasks", format.count(row.tasks)], ["promised", hours(row.gpu_hours_promised)], ["used", hours(row.gpu_hours_used)], ["wait", format.duration(row.wait_mean_s)],
  ["out of memory", format.count(row.ooms)], ["energy", format.energy(row.energy_j)], ["SM activity", format.percent(row.smact_mean)]];

// Of many days the last are drawn, of many users and GPUs the first; the table has all of them.
const drawn = (side) => (side.key === "days" ? side.rows.slice(-MOST_BARS) : side.rows.slice(0, MOST_BARS));

function axisText(measure, value, top) {
  if (measure.key === "gpu_hours_promised") return trim(value, hourDigits(top));
  return brief(measure.text(value));
}

function bars(measure, side) {
  const host = el("div", null);
  const rows = drawn(side);
  const highest = Math.max(0, ...rows.map((row) => row[measure.key]).filter(known));
  const top = measure.top || highest * 1.12 || 1;
  const draw = (width) => {
    const box = { left: 62, right: width - 6, top: 16, bottom: 16 + (measure.height || 150) };
    const y = linear(0, top, box.bottom, box.top);
    const svg = chart(width, box.bottom + 30, `${measure.name}, ${measure.lead}, by ${side.one}`, `${measure.chart}-${side.key}`);
    const whole = (tick) => measure.key !== "ooms" || Number.isInteger(tick);
    yAxis(svg, box, y, niceTicks(top, 4).filter(whole), (value) => axisText(measure, value, top));
    const slot = (box.right - box.left) / rows.length;
    rows.forEach((row, index) => {
      const room = Math.min(slot * 0.8, 46);
      const x = box.left + slot * index + (slot - room) / 2;
      const value = row[measure.key];
      const mark = svgEl("g", { class: "run-1" });
      if (known(value)) {
        mark.append(bar(x, y(Math.min(value, top)), room, box.bottom - y(Math.min(value, top)), measure.inner ? "second" : ""));
        if (measure.inner && known(row[measure.inner])) mark.append(bar(x, y(Math.min(row[measure.inner], top)), room, box.bottom - y(Math.min(row[measure.inner], top))));
      }
      const every = Math.ceil(rows.length / Math.max(1, Math.floor((box.right - box.left) / 64)));
      if (index % every === 0) svg.append(svgEl("text", { class: "tick", x: x + room / 2, y: box.bottom + 15, "text-anchor": "middle" }, shorten(named(side, row), slot * every - 4, 6.4)));
      svg.append(explained(mark, named(side, row), facts(row)));
    });
    host.replaceChildren(svg);
  };
  return { host, draw };
}

// ---- GPU hours by day, each day divided by user.
function stacked() {
  const host = el("div", null);
  const { stack } = page;
  const days = stack.days.slice(-MOST_BARS);
  const skip = stack.days.length - days.length;
  const of = (user, index) => stack.users[user].hours[skip + index] || 0;
  const total = (index) => stack.users.reduce((sum, _, user) => sum + of(user, index), 0);
  const top = Math.max(0, ...days.map((_, index) => total(index))) * 1.1 || 1;
  const draw = (width) => {
    const box = { left: 62, right: width - 6, top: 16, bottom: 236 };
    const y = linear(0, top, box.bottom, box.top);
    const svg = chart(width, box.bottom + 30, "GPU hours promised by day and user", "hours-by-user-and-day");
    yAxis(svg, box, y, niceTicks(top, 5), (value) => trim(value, hourDigits(top)));
    const slot = (box.right - box.left) / days.length;
    days.forEach((day, index) => {
      const room = Math.min(slot * 0.8, 46);
      const x = box.left + slot * index + (slot - room) / 2;
      const mark = svgEl("g", null);
      let below = 0;
      const rows = [];
      stack.users.forEach(({ name }, user) => {
        const value = of(user, index);
        if (value <= 0) return;
        mark.append(svgEl("g", { class: `run-${user % 8}` }, bar(x, y(below + value), room, y(below) - y(below + value))));
        rows.push([name, hours(value), `run-${user % 8}`]);
        below += value;
      });
      const every = Math.ceil(days.length / Math.max(1, Math.floor((box.right - box.left) / 76)));
      if (index % every === 0) svg.append(svgEl("text", { class: "tick", x: x + room / 2, y: box.bottom + 15, "text-anchor": "middle" }, day));
      svg.append(explained(mark, day, [...rows, ["all", hours(below)]]));
    });
    host.replaceChildren(svg);
  };
  return { host, draw };
}

function table(side) {
  const heads = [side.one, "Tasks", "Promised", "Used", "Wait", "Out of memory", "Energy", "SM activity"];
  const line = (row, name) => el("tr", { "data-row": side.key }, el("th", { scope: "row", title: name }, name), facts(row).map(([, text]) => el("td", null, text)));
  return el("div", { class: "card" }, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": side.title },
    el("table", null, el("thead", null, el("tr", null, heads.map((text) => el("th", { scope: "col" }, text)))), el("tbody", null, side.rows.map((row) => line(row, named(side, row)))))));
}

function body() {
  const main = document.getElementById("main");
  const { total } = page;
  head(page.title, page.note, [["From", page.from], ["Until", page.until], ["Tasks", total && format.count(total.tasks)], ["GPU hours promised", total && trim(total.gpu_hours_promised, hourDigits(total.gpu_hours_promised))],
    ["GPU hours used", total && trim(total.gpu_hours_used, hourDigits(total.gpu_hours_used))], ["Energy", total && format.energy(total.energy_j)], ["SM activity", total && format.percent(total.smact_mean)]]);
  if (!sides[0].rows.length) { main.append(el("p", { class: "empty" }, "No task ran in that time.")); return; }
  const waiting = [];
  const card = (title, lead, drawing, above) => {
    waiting.push(drawing);
    return el("div", { class: "card" }, el("div", { class: "card-head" }, el("h3", null, title), el("p", null, lead)), above || null, drawing.host);
  };
  if (page.stack && page.stack.users.length) {
    const key = el("ul", { class: "key", "aria-label": "Colours" }, page.stack.users.map(({ name }, user) => el("li", null, el("i", { class: `mark run-${user % 8}` }), name)));
    main.append(section("GPU hours", "The part of each GPU that was promised, times hours.", card("By day and user", "promised", stacked(), key)));
  }
  for (const side of sides) {
    if (!side.rows.length) continue;
    const left = side.rows.length - drawn(side).length;
    const lead = left ? `${format.count(drawn(side).length)} of ${format.count(side.rows.length)} are drawn; the table has all.` : null;
    main.append(section(side.title, lead, card(MEASURES[0].name, MEASURES[0].lead, bars(MEASURES[0], side)),
      el("div", { class: "pair" }, MEASURES.slice(1).map((measure) => card(measure.name, measure.lead, bars(measure, side)))), table(side)));
  }
  waiting.forEach((drawing) => responsive(drawing.host, drawing.draw));
}
body();
