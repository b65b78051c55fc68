// Answers about one task, a span of time or the past, invented like the rest.
import { random } from "./data.mjs";

const GIB = 2 ** 30;

export function detail(world, t) {
  const others = world.gpus.find((g) => g.index === t.gpu_ids[0])?.residents.filter((r) => r.id !== t.id) ?? [];
  const begun = t.started_s;
  const two = t.attempts > 1;
  const refusal = { rule: "memory", have: 2 * GIB, limit: 2 * GIB, short: 0.6 * GIB, unit: "bytes", text: "0.6 GiB short" };
  const rejected = [0, 1, 3].map((gpu) => ({ gpu, fits: false, score: null, text: gpu === 1 ? "hot: SM activity 87 %" : "0.6 GiB short", refusals: [refusal] }));
  const attempts = [];
  if (two) attempts.push({ number: 1, gpus: t.gpu_ids, instance: null, started_s: begun - 900, ended_s: begun - 100, outcome: "out_of_memory", exit_code: 1, peak_bytes: t.bound_bytes, ooms: 1, promised_bytes: t.bound_bytes });
  if (begun) attempts.push({ number: t.attempts, gpus: t.gpu_ids, instance: null, started_s: begun, ended_s: t.ended_s, outcome: t.ended_s ? t.state : null, exit_code: t.exit_code, peak_bytes: t.peak_bytes, ooms: 0, promised_bytes: t.promised_bytes });
  const story = [{ at: t.submitted_s, what: "Submitted. Estimate by replay of its graph." }];
  if (two) story.push({ at: begun - 100, what: "Out of GPU memory: at its limit; neighbours were not touched." });
  return {
    schema: 1, ...t, command: ["python", "train.py", "--model", "distil-large-v3", "--name", "it's <b>bold</b>"], directory: "/home/ana/asr", gpu_kinds: [], log: "/tmp/x", log_removed: false, estimate_bound_bytes: t.bound_bytes,
    estimator: "replay", estimate_flags: [{ kind: "assumption", detail: "Sequence length not given, 256 taken." }], memory_basis: "estimated", limit_bytes: null, settled: true, memory_rule: null, host_mem_bytes: null, enforcement: null,
    story, attempts_list: attempts,
    decisions: [
      { at_s: t.submitted_s, attempt: null, kind: "waits", reason_code: "memory", chosen: [], gpus: rejected, left_out: 0 },
      ...(begun ? [{ at_s: begun, attempt: t.attempts, kind: "starts", chosen: t.gpu_ids, gpus: [...rejected.filter((g) => g.gpu !== t.gpu_ids[0]), { gpu: t.gpu_ids[0], fits: true, score: 1.06, text: "fits; slows all by 1.06", refusals: [] }], left_out: 0 }] : []),
    ],
    neighbours: others.map((o) => ({ id: o.id, name: o.name, user: o.user, gpu: t.gpu_ids[0], since_s: begun, until_s: null, used_bytes: o.used_bytes, slows_this: 1.06, slowed_by_this: 1.02 })),
    energy_j: 3.2e5, energy_kind: "emulated", smact_mean: 0.24,
  };
}

export function why(world, t) {
  const gpus = world.gpus.map((g) => {
    const free = g.memory_total_bytes - g.memory_promised_bytes;
    const short = Math.max(0, t.bound_bytes - free);
    const text = `${(free / GIB).toFixed(1)} GiB can be promised, ${(short / GIB).toFixed(1)} GiB short`;
    return { gpu: g.index, refusals: [text], rules: [{ rule: "memory", have: free, limit: free, short, unit: "bytes", text }] };
  });
  return { schema: 1, task: t, summary: t.reason ?? "", promised_bytes: t.promised_bytes, memory_basis: null, limit_bytes: null, settled: false, memory_rule: null, awaits: t.reason_code === "dependency" ? 12 : null, ahead: (t.position ?? 1) - 1, gpus };
}

export function series(world, of, from, to, points) {
  const step = Math.max(1, Math.ceil((to - from) / points));
  const n = Math.max(0, Math.floor((to - from) / step));
  const [kind, id] = [of.split(":")[0], Number(of.split(":")[1])];
  const r = random(id + 7);
  const noise = Array.from({ length: n }, () => (r() - 0.5) * 0.08);
  let x = 0;
  const walk = noise.map((v) => (x = 0.82 * x + v));
  const columns = {};
  if (kind === "gpu") {
    const g = world.gpus.find((v) => v.index === id);
    for (const key of ["smact", "smocc", "drama"]) columns[key] = walk.map((v) => Math.max(0, Math.min(1, g[key] + (g.residents.length ? v : 0))));
    columns.memory_bytes = walk.map(() => g.memory_used_bytes);
    columns.power_w = walk.map((v) => g.power_w + 50 * v);
  } else {
    const t = world.tasks.find((v) => v.id === id);
    const at = (k) => from + k * step;
    const own = (k) => t.started_s !== null && at(k) >= t.started_s && at(k) <= (t.ended_s ?? Infinity);
    const before = (k) => t.attempts > 1 && at(k) >= t.started_s - 900 && at(k) <= t.started_s - 100;
    const ramp = (k, begun, most) => Math.round(most * (1 - Math.exp(-(at(k) - begun) / 60)));
    columns.memory_bytes = walk.map((_, k) => (own(k) ? ramp(k, t.started_s, t.peak_bytes) : before(k) ? ramp(k, t.started_s - 900, t.bound_bytes) : null));
    columns.promised_bytes = walk.map((_, k) => (own(k) ? t.promised_bytes : before(k) ? t.bound_bytes : null));
    columns.sm_share = walk.map((v, k) => (own(k) || before(k) ? 0.24 + v : null));
  }
  return { of, step_s: step, start_s: from, columns, max: {} };
}

export function timeline(world, from, to, now, expected) {
  const by = new Map(expected.map((e) => [e.id, e]));
  const attempts = world.tasks.filter((t) => t.started_s !== null).flatMap((t) => {
    const base = { task: t.id, name: t.name, user: t.user, gpus: t.gpu_ids, instance: null };
    const last = { ...base, number: t.attempts, started_s: t.started_s, ended_s: t.ended_s, outcome: t.ended_s ? t.state : null, predicted_end_s: t.ended_s ? null : (by.get(t.id)?.expected_end_s ?? null), ooms: 0 };
    return t.attempts > 1 ? [{ ...base, number: 1, started_s: t.started_s - 900, ended_s: t.started_s - 100, outcome: "out_of_memory", predicted_end_s: null, ooms: 1 }, last] : [last];
  });
  const waiting = world.tasks.filter((t) => t.state === "pending").slice(0, 24).map((t, k) => ({ task: t.id, name: t.name, user: t.user, gpus: [k % world.gpus.length], expected_start_s: by.get(t.id)?.expected_start_s ?? null, expected_end_s: by.get(t.id)?.expected_end_s ?? null }));
  const foreign = world.gpus.flatMap((g) => g.foreign.map((f) => ({ gpu: g.index, user: f.user, pid: f.pid, from_s: now - 4000, to_s: null })));
  return { schema: 1, from_s: from, to_s: to, now_s: now, attempts, waiting, foreign, truncated: false };
}

const outcome = (policy, k, tasks) => ({ policy, makespan_s: 588_000 * k, jct_mean_s: 11_988 * k, jct_p50_s: 8000 * k, jct_p95_s: 39_240 * k, wait_mean_s: 1020 * k * k, oom_count: Math.round(3 * k - 3), smact_mean: 0.62 / k, energy_j: 97 * 3.6e6 * (0.8 + 0.2 * k), tasks: tasks.map((d, i) => ({ id: i, submit_s: 0, start_s: 60, end_s: d * k })) });

export function whatif(body) {
  const r = random(5);
  const tasks = Array.from({ length: 148 }, () => Math.exp(6 + 4 * r()));
  const rows = body.policies.map((p, k) => outcome(p, [2.38, 1.22, 0.9, 1.4, 1.1][k % 5], tasks));
  return { schema: 1, since_s: body.since_s, fleet: body.fleet ?? "4xA100-40GB", observed: outcome("observed", 1.027, tasks), model: outcome("best-effort / least-interference / mps", 1, tasks), agreement: 0.013, rows, assumptions: ["Memory is the most that was seen.", "Run times are those alone."] };
}

export function savings() {
  const r = random(12);
  const by_day = Array.from({ length: 30 }, (_, k) => {
    const exclusive = (k % 7 < 2 ? 34 : 76) + 16 * r();
    return { day: new Date(Date.now() - (29 - k) * 86_400_000).toISOString().slice(0, 10), exclusive_gpu_h: exclusive, shared_gpu_h: exclusive * (0.58 + 0.16 * r()) };
  });
  const saved = by_day.reduce((a, d) => a + d.exclusive_gpu_h - d.shared_gpu_h, 0);
  return {
    schema: 1, since_s: 0, tasks: 612, gpu_hours_saved: saved, jct_saved_mean_s: 8580, energy_saved_j: 84 * 3.6e6, by_day,
    by_user: [["ana", 141, 14, 172], ["ben", 128, 16, 149], ["chen", 96, 22, 171], ["dara", 173, 11, 140], ["emil", 74, 31, 188]].map(([user, tasks, w, x]) => ({ user, tasks, waited_s: w * 60 * tasks, would_have_waited_s: x * 60 * tasks, shared_gpu_h: tasks * 0.9, exclusive_gpu_h: tasks * 1.5, energy_j: tasks * 1.1e6 })),
    cost: { oom_repeated_s: 11_160, slowed_tasks: 37, known_tasks: 410, slowed_beyond: 1.1 }, assumptions: ["of a shared GPU, a task's part of the hours is its SM activity, and 0.5 for 3 tasks of which none was seen"],
  };
}
