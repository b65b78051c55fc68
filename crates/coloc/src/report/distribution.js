// How long tasks took and waited: distribution of completion times, waits by class.

// A task counts once it is done; one that failed never reaches the curve, so its run stays below 100 %.
function completionTimes(run) {
  const done = run.tasks.filter((task) => known(task.end_s) && task.attempts.length && task.attempts[task.attempts.length - 1].outcome === "completed");
  return Float64Array.from(done, (task) => task.end_s - task.submit_s).sort();
}

function jctChart() {
  const host = el("div", null);
  const all = page.runs.map((run) => ({ run, times: completionTimes(run) }));
  const least = all.reduce((low, { times }) => (times.length ? Math.min(low, times[0]) : low), Infinity);
  const most = all.reduce((high, { times }) => (times.length ? Math.max(high, times[times.length - 1]) : high), 0);
  if (!(most > 0)) return { host: el("p", { class: "empty" }, "No task completed, so there are no completion times."), draw() {} };
  const from = Math.max(least, most / 1e6, 0.01) * 0.8;
  const until = most * 1.2;
  const draw = (width) => {
    const box = { left: 50, right: width - 12, top: 10, bottom: 300 };
    const x = logarithmic(from, until, box.left, box.right);
    const y = linear(0, 1, box.bottom, box.top);
    const svg = chart(width, box.bottom + 38, "Share of tasks completed within a time, by policy", "jct");
    yAxis(svg, box, y, [0, 0.25, 0.5, 0.75, 1], format.percent);
    xAxis(svg, box, x, logTimeTicks(from, until), "time from submission to completion, logarithmic");
    for (const { run, times } of all) {
      if (run.hidden || !times.length) continue;
      svg.append(svgEl("path", { class: "line " + run.look, d: cumulative(times, run.tasks.length, x, y, box), "data-run": run.name }));
    }
    readOff(svg, box, from, until, all);
    host.replaceChildren(svg);
  };
  return { host, draw };
}
// Points that would fall on the pixel of the last one are left out.
function cumulative(times, total, x, y, box) {
  let path = `M${box.left} ${box.bottom}`;
  let lastX = -1;
  times.forEach((time, index) => {
    const px = round1(x(time));
    if (px - lastX < 0.5 && index + 1 < times.length) return;
    path += `H${px}V${round1(y((index + 1) / total))}`;
    lastX = px;
  });
  return path + `H${box.right}`;
}
function readOff(svg, box, from, until, all) {
  const line = svgEl("line", { class: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" });
  svg.append(line);
  attach(svg, {
    onpointermove(event) {
      const px = event.clientX - svg.getBoundingClientRect().left;
      if (px < box.left || px > box.right) return;
      const t = from * (until / from) ** ((px - box.left) / (box.right - box.left));
      for (const end of ["x1", "x2"]) line.setAttribute(end, px);
      line.setAttribute("visibility", "visible");
      const within = (times) => { let low = 0; let high = times.length; while (low < high) { const middle = (low + high) >> 1; if (times[middle] <= t) low = middle + 1; else high = middle; } return low; };
      tooltip.show(event.clientX, event.clientY, `done within ${format.duration(t)}`, all.filter(({ run }) => !run.hidden).map(({ run, times }) => [run.name, format.percent(run.tasks.length ? within(times) / run.tasks.length : undefined), run.look]));
    },
    onpointerleave() { line.setAttribute("visibility", "hidden"); tooltip.hide(); },
  }, []);
}

// ---- Waits: a group a class, a bar a policy, a tick at the 95th percentile.
function waitsOf(run, classIndex) {
  const tasks = run.tasks.filter((task) => task.class === classIndex);
  const waits = Float64Array.from(tasks.filter((task) => task.attempts.length), firstWait).sort();
  const mean = waits.length ? waits.reduce((sum, wait) => sum + wait, 0) / waits.length : undefined;
  return { tasks: tasks.length, never: tasks.length - waits.length, mean, tail: waits.length ? waits[Math.ceil(waits.length * 0.95) - 1] : undefined };
}
function waitChart() {
  const host = el("div", null);
  const groups = page.classes.map((name, index) => ({ name, index, rows: page.runs.map((run) => ({ run, ...waitsOf(run, index) })) })).filter((group) => group.rows.some((row) => row.tasks));
  const most = Math.max(0, ...groups.flatMap((group) => group.rows.map((row) => row.tail || row.mean || 0)));
  const draw = (width) => {
    const names = Math.min(width * 0.36, 14 + 6.4 * Math.max(...page.runs.map((run) => run.name.length)));
    const box = { left: names, right: width - 84, top: 6, bottom: 6 };
    const rowHeight = page.runs.length > 5 ? 17 : 22;
    box.bottom += groups.reduce((sum, group) => sum + 24 + group.rows.length * rowHeight, 0);
    const x = linear(0, most || 1, box.left, box.right);
    const svg = chart(width, box.bottom + 38, "Wait before the first start, by class and policy", "waits");
    xAxis(svg, box, x, most > 0 ? timeTicks(0, most, Math.max(2, (box.right - box.left) / 80)) : [{ at: 0, text: "0" }], "wait before the first start");
    let y = box.top;
    for (const group of groups) {
      svg.append(svgEl("text", { class: "value", x: 0, y: y + 16 }, `${group.name}, ${plural(group.rows[0].tasks, "task")}`));
      svg.append(svgEl("text", { class: "hint", x: box.right + 82, y: y + 16, "text-anchor": "end" }, "mean"));
      y += 24;
      for (const row of group.rows) {
        svg.append(waitRow(row, group, x, box, y, rowHeight));
        y += rowHeight;
      }
    }
    host.replaceChildren(svg);
  };
  return { host, draw };
}
function waitRow(row, group, x, box, y, rowHeight) {
  const middle = y + rowHeight / 2;
  const line = svgEl("g", { class: classLook(group.index) },
    svgEl("rect", { x: 0, y, width: box.right + 82, height: rowHeight, fill: "transparent" }),
    svgEl("text", { class: "tick", x: box.left - 8, y: middle + 4, "text-anchor": "end" }, shorten(row.run.name, box.left - 10, 6.2)));
  if (known(row.mean)) line.append(bar(box.left, y + 2, x(row.mean) - box.left, rowHeight - 5));
  if (known(row.tail)) line.append(svgEl("path", { class: "whisker", d: `M${round1(x(row.mean))} ${middle - 0.5}H${round1(x(row.tail))}m0 -4v8` }));
  line.append(svgEl("text", { class: "value", x: box.right + 82, y: middle + 3.5, "text-anchor": "end" }, known(row.mean) ? format.duration(row.mean) : row.tasks ? "never started" : "no task"));
  const rows = [["mean wait", format.duration(row.mean)], ["95 % wait at most", format.duration(row.tail)], ["tasks", format.count(row.tasks)]];
  if (row.never) rows.push(["never started", format.count(row.never)]);
  return explained(line, `${row.run.name}, ${group.name}`, rows);
}

function distributions() {
  const jct = jctChart();
  const waits = waitChart();
  document.getElementById("main").append(section("How long tasks took", null, el("div", { class: "pair" },
    el("div", { class: "card" }, el("div", { class: "card-head" }, el("h3", null, "Completion time"), el("p", null, "share of all submitted tasks; higher and further left is better")), runKey(repaints), jct.host),
    el("div", { class: "card" }, el("div", { class: "card-head" }, el("h3", null, "Wait by class"), el("p", null, "bar: mean; tick: 95 % of tasks wait no longer")), waits.host))));
  repaints.push(responsive(jct.host, jct.draw));
  responsive(waits.host, waits.draw);
}
