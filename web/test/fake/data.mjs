// Invented data that keep the daemon's contract, from a seed. For looking at the page and for its budgets, not for its truth.
const GIB = 2 ** 30;

export function random(seed) {
  let s = (seed * 2654435761) >>> 0;
  return () => {
    s = (Math.imul(s ^ (s >>> 15), 2246822519) + 0x9e3779b9) >>> 0;
    return s / 4294967296;
  };
}

const USERS = ["ana", "ben", "chen", "dara", "emil", "fay", "gil"];
const NAMES = ["resnet50-imagenet", "bert-base-sst2", "unet-cells", "sweep lr=3e-4", "vit-l16-finetune", "gpt2-small-owt", "dlrm-criteo", "wgan-lsun", "distil-whisper", "swin-t-coco", "lstm-ptb", "mnist-ablation"];
const REASONS = [
  ["memory", "GPU 0 is 0.7 GiB short until 431 ends"],
  ["sm", "Would bring SM demand on GPU 0 to 1.47, over 1.40"],
  ["exclusive", "Wants a GPU to itself; all have tasks"],
  ["dependency", "Waits for task 12 to end"],
  ["hot", "GPU 1 is hot; the others are full"],
];

function task(id, now, r) {
  const estimate = (2 + 10 * r()) * GIB;
  return {
    id, name: NAMES[Math.floor(r() * NAMES.length)], user: USERS[Math.floor(r() * r() * USERS.length)], state: "pending", reason: null, reason_code: null,
    gpus: 1, gpu_ids: [], array_id: null, array_index: null, submitted_s: now - 3600 - 7200 * r(), started_s: null, first_started_s: null, ended_s: null, priority: 0,
    time_limit_s: 7200, gpu_mem_bytes: null, estimate_bytes: Math.round(estimate), bound_bytes: Math.round(estimate * 1.12), promised_bytes: Math.round(estimate * 1.12),
    used_bytes: null, peak_bytes: 0, attempts: 0, ooms: 0, preemptions: 0, exit_code: null, held_by: null, position: null, progress: null,
  };
}

function resident(t, gpus) {
  return {
    id: t.id, name: t.name, user: t.user, promised_bytes: t.promised_bytes, leader_pid: 1000 + t.id, used_bytes: t.used_bytes, estimate_bytes: t.estimate_bytes, bound_bytes: t.bound_bytes,
    since_s: t.started_s, attempt: t.attempts, instance: null, settled: t.id % 5 !== 0, sm_share: 0.2, slowdown: 1 + (t.id % 20) / 100, ooms: t.ooms, gpus,
  };
}

function gpuView(index, residents, r, mig) {
  const promised = residents.reduce((a, t) => a + t.promised_bytes, 0);
  const used = residents.reduce((a, t) => a + t.used_bytes, 0);
  const hot = index % 7 === 1;
  const foreign = index % 9 === 1 ? [{ pid: 88121 + index, user: "guest", bytes: Math.round(3.2 * GIB), name: "jupyter" }] : [];
  const smact = residents.length === 0 ? 0 : hot ? 0.88 : Math.min(0.79, 0.2 + 0.17 * residents.length + 0.1 * r());
  return {
    index, uuid: `GPU-${index}`, model: "A100-SXM4-40GB", memory_total_bytes: 40 * GIB, memory_used_bytes: used, memory_promised_bytes: promised, smact, smocc: smact * 0.55, drama: smact * 0.5, gract: smact,
    tasks: residents.map((t) => t.id), residents: residents.map((t) => resident(t, 1)), pool: [], reserved_for: [], reserved_until_s: null, reserve_reason: null, reserved_by: null, lost: index === 43, drained: false, drain_reason: null, drained_s: null, drained_by: null, faults: [],
    source: "emulated dcgm", power_w: 56 + 310 * smact, power_limit_w: 400, temperature_c: 35 + 40 * smact, energy_j: 5e6, clock_mhz: 1410, sharing: mig ? "mig" : "mps", mig,
    instances: mig ? residents.slice(0, 3).map((t, k) => ({ profile: ["3g.20gb", "2g.10gb", "1g.5gb"][k], start_slice: [0, 4, 6][k], slices: [4, 2, 1][k], memory_bytes: [20, 10, 5][k] * GIB, task: t.id })) : [],
    foreign, verdict: index === 43 ? { word: "lost", text: "fell off the bus (XID 79)", until_s: null } : hot ? { word: "hot", text: "SM activity has been over 80 % for 12 min", until_s: null } : { word: "open", text: `${((40 * GIB - promised) / GIB).toFixed(1)} GiB and 0.05 of SM demand (1.35 of 1.40) are left`, until_s: null },
    sm_demand: 1.35, sm_demand_limit: 1.4,
  };
}

/** A fleet with running, waiting and ended tasks. */
export function world({ gpus = 4, tasks = 60, seed = 1, now = Date.now() / 1000 } = {}) {
  const r = random(seed);
  const all = [];
  const fleet = [];
  let id = 401;
  for (let g = 0; g < gpus; g++) {
    const mig = g % 4 === 3;
    const here = [];
    let room = 38 * GIB;
    for (let k = 0; k < (mig ? 3 : Math.floor(2 + 3 * r())); k++) {
      const t = task(id++, now, r);
      if (mig) Object.assign(t, { estimate_bytes: [14, 4, 2][k] * GIB, bound_bytes: [16, 4.6, 2.6][k] * GIB, promised_bytes: [20, 10, 5][k] * GIB });
      if (t.promised_bytes > room) continue;
      room -= t.promised_bytes;
      const used = Math.round(t.promised_bytes * (mig ? 0.5 : 0.8 + 0.19 * r()));
      const begun = now - 200 - 5000 * r();
      Object.assign(t, { state: "running", gpu_ids: [g], started_s: begun, first_started_s: begun, attempts: 1, used_bytes: used, peak_bytes: used, progress: { done: 400 + k, total: 1000, unit: "steps", rate: 0.76, eta_s: 700 } });
      if (id % 11 === 0) Object.assign(t, { attempts: 2, ooms: 1, bound_bytes: Math.round(used * 0.85), estimate_bytes: Math.round(used * 0.75) });
      here.push(t);
      all.push(t);
    }
    fleet.push(gpuView(g, here, r, mig));
  }
  const ended = Math.min(20, Math.floor(tasks / 4));
  for (let k = 0; all.length < tasks - ended; k++) {
    const t = task(id++, now, r);
    const [code, reason] = REASONS[k % REASONS.length];
    Object.assign(t, { reason, reason_code: code, position: k + 1 });
    if (k % 7 === 6) Object.assign(t, { reason: "Held by ana; release lets it go on", reason_code: "held", held_by: "ana", position: null });
    if (k >= 8 && k < 16) Object.assign(t, { name: "sweep", user: "dara", array_id: 900, array_index: k - 8, reason: "1 of its array is at work, as asked for (%1)", reason_code: "array_limit" });
    all.push(t);
  }
  for (let k = 0; k < ended; k++) {
    const t = task(id++, now, r);
    const end = now - 60 - 3000 * r();
    Object.assign(t, { state: k % 5 === 0 ? "failed" : "completed", reason: k % 5 === 0 ? "exit code 1" : null, gpu_ids: [k % gpus], started_s: end - 900, first_started_s: end - 900, ended_s: end, attempts: 1, exit_code: k % 5 === 0 ? 1 : 0, peak_bytes: Math.round(t.estimate_bytes * 0.9) });
    all.push(t);
  }
  return { gpus: fleet, tasks: all, now };
}

export function status(world, user = "ana", scope = "act") {
  const counts = {};
  for (const t of world.tasks) counts[t.state] = (counts[t.state] ?? 0) + 1;
  return {
    schema: 1, version: "0.1.0", tasks: world.tasks.length, lessons: 0, disk_full: false, draining: false, pid: 1, containment: "session", processes: "", trouble: null, host: "gpu1", emulated: true, time_scale: 1,
    now_s: Date.now() / 1000, started_s: world.now - 86400, user, admin: false, scope, policy: { preset: null, queue: "best-effort", place: "least-interference", share: "mps", estimator: "replay" }, counts,
    ooms_today: 2, recovered_today: 2, estimate: { error_median: 0.048, within_bound: 0.98, rows: 61 }, energy_today_j: 3.4e7, epoch: "fake", seq: 0, limits: { smact: 0.8, smocc: 0.45, drama: 0.4 }, faults: [],
  };
}

export function expected(world) {
  let at = world.now + 600;
  return world.tasks.filter((t) => t.ended_s === null).map((t) => {
    const start = t.started_s ?? (t.reason_code === "held" ? null : (at += 300));
    const end = start === null ? null : t.started_s === null ? start + 3600 : world.now + 1200 + (t.id % 50) * 120;
    return { id: t.id, expected_start_s: start, expected_end_s: end, expected_basis: t.id % 4 === 0 ? "run time is the time limit, the most it can be" : `run time is the median of ${1 + (t.id % 9)} earlier runs` };
  });
}

export function sample(world, beat) {
  const wave = (k) => 0.06 * Math.sin(beat / 5 + k);
  const clamp = (v) => Math.max(0, Math.min(1, v));
  return {
    at_s: Date.now() / 1000,
    gpus: world.gpus.map((g, k) => ({
      index: g.index, memory_used_bytes: g.memory_used_bytes, memory_promised_bytes: g.memory_promised_bytes, smact: clamp(g.smact + (g.residents.length ? wave(k) : 0)), smocc: clamp(g.smocc + (g.residents.length ? wave(k + 1) : 0)), drama: clamp(g.drama + (g.residents.length ? wave(k + 2) : 0)),
      power_w: g.power_w + 10 * wave(k), temperature_c: g.temperature_c, verdict: g.verdict,
      residents: g.residents.map((t) => ({ id: t.id, used_bytes: Math.round(t.used_bytes * (1 + wave(t.id) / 10)), promised_bytes: t.promised_bytes, sm_share: clamp(0.2 + wave(t.id)), slowdown: t.slowdown })),
      foreign_bytes: g.foreign.reduce((a, f) => a + f.bytes, 0),
    })),
  };
}
