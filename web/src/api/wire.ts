// What the daemon says. Fields that a view can do without are optional: an older daemon leaves them out.

export type TaskState = string;

export interface Progress {
  done: number;
  total?: number | null;
  unit?: string | null;
  rate?: number | null;
  eta_s?: number | null;
}

export interface TaskView {
  id: number;
  name: string;
  user: string;
  state: TaskState;
  reason?: string | null;
  reason_code?: string | null;
  gpus: number;
  gpu_ids: number[];
  array_id?: number | null;
  array_index?: number | null;
  submitted_s: number;
  started_s?: number | null;
  first_started_s?: number | null;
  ended_s?: number | null;
  priority: number;
  time_limit_s?: number | null;
  gpu_mem_bytes?: number | null;
  estimate_bytes?: number | null;
  bound_bytes?: number | null;
  promised_bytes?: number | null;
  used_bytes?: number | null;
  peak_bytes: number;
  attempts: number;
  ooms: number;
  preemptions: number;
  exit_code?: number | null;
  held_by?: string | null;
  position?: number | null;
  progress?: Progress | null;
}

export interface Verdict {
  word: string;
  text: string;
  until_s?: number | null;
}

export interface Instance {
  profile: string;
  start_slice: number;
  slices: number;
  memory_bytes: number;
  task?: number | null;
}

export interface Foreign {
  pid: number;
  user?: string | null;
  bytes?: number | null;
  name?: string | null;
}

export interface Resident {
  id: number;
  name: string;
  user: string;
  promised_bytes: number;
  used_bytes?: number | null;
  estimate_bytes?: number | null;
  bound_bytes?: number | null;
  since_s?: number | null;
  attempt?: number | null;
  instance?: string | null;
  settled?: boolean;
  sm_share?: number | null;
  slowdown?: number | null;
  ooms?: number;
  gpus?: number[];
}

export interface GpuView {
  index: number;
  uuid: string;
  model: string;
  memory_total_bytes: number;
  memory_used_bytes: number;
  memory_promised_bytes: number;
  smact?: number | null;
  smocc?: number | null;
  drama?: number | null;
  gract?: number | null;
  source?: string | null;
  power_w?: number | null;
  power_limit_w?: number | null;
  temperature_c?: number | null;
  energy_j?: number | null;
  clock_mhz?: number | null;
  sharing?: string | null;
  mig?: boolean;
  instances?: Instance[];
  foreign?: Foreign[];
  foreign_bytes?: number | null;
  verdict?: Verdict | null;
  sm_demand?: number | null;
  sm_demand_limit?: number | null;
  residents: Resident[];
  lost?: boolean;
  drained?: boolean;
  drain_reason?: string | null;
  faults?: string[];
  pool?: string | null;
  reserved_for?: string | null;
}

export interface Policy {
  preset?: string | null;
  queue?: string | null;
  place?: string | null;
  share?: string | null;
  estimator?: string | null;
}

export interface StatusView {
  version: string;
  host?: string;
  emulated?: boolean;
  time_scale?: number | null;
  now_s?: number;
  started_s?: number;
  user?: string;
  admin?: boolean;
  scope?: string;
  policy?: Policy | null;
  counts?: Record<string, number>;
  ooms_today?: number | null;
  recovered_today?: number | null;
  estimate?: { error_median?: number | null; within_bound?: number | null; rows?: number | null } | null;
  energy_today_j?: number | null;
  epoch?: string | number;
  seq?: number;
  limits?: { smact?: number | null; smocc?: number | null; drama?: number | null } | null;
  faults?: (string | { word?: string; text?: string })[];
  draining?: boolean;
}

export interface RuleRefusal {
  rule: string;
  have?: number | null;
  limit?: number | null;
  short?: number | null;
  unit?: string | null;
  text: string;
}

export interface GpuWhy {
  gpu: number;
  refusals: string[];
  rules?: RuleRefusal[];
}

export interface WhyView {
  task: TaskView;
  summary: string;
  ahead: number;
  awaits?: number | null;
  memory_rule?: string | null;
  gpus: GpuWhy[];
}

export interface Expected {
  id: number;
  expected_start_s?: number | null;
  expected_end_s?: number | null;
  expected_basis: string;
}

export interface Attempt {
  number: number;
  gpus: number[];
  instance?: string | null;
  started_s: number;
  ended_s?: number | null;
  outcome?: string | null;
  exit_code?: number | null;
  peak_bytes?: number | null;
  ooms?: number;
  promised_bytes?: number | null;
}

export interface DecisionGpu {
  gpu: number;
  fits: boolean;
  score?: number | null;
  text: string;
  refusals?: RuleRefusal[];
}

export interface Decision {
  at_s: number;
  attempt?: number | null;
  kind: string;
  chosen: number[];
  gpus: DecisionGpu[];
}

export interface Neighbour {
  id: number;
  name: string;
  user: string;
  gpu: number;
  since_s: number;
  until_s?: number | null;
  used_bytes?: number | null;
  slows_this?: number | null;
  slowed_by_this?: number | null;
}

export interface StoryLine {
  at: number;
  what: string;
}

export interface TaskDetail extends TaskView {
  command: unknown[];
  directory: unknown;
  log: string;
  log_removed?: boolean;
  estimate_bound_bytes?: number | null;
  estimator?: string | null;
  estimate_flags?: { kind: string; detail: string }[];
  memory_basis?: string | null;
  limit_bytes?: number | null;
  settled?: boolean;
  memory_rule?: string | null;
  story: StoryLine[];
  attempts_list?: Attempt[];
  decisions?: Decision[];
  neighbours?: Neighbour[];
  energy_j?: number | null;
  energy_kind?: string | null;
  smact_mean?: number | null;
}

export type Column = (number | null)[];

export interface Series {
  of: string;
  step_s: number;
  start_s: number;
  columns: Record<string, Column>;
  max?: Record<string, Column> | null;
}

export interface TimelineAttempt {
  task: number;
  name: string;
  user: string;
  number: number;
  gpus: number[];
  instance?: string | null;
  started_s: number;
  ended_s?: number | null;
  outcome?: string | null;
  predicted_end_s?: number | null;
  ooms?: number;
}

export interface TimelineWaiting {
  task: number;
  name: string;
  user: string;
  gpus: number[];
  expected_start_s?: number | null;
  expected_end_s?: number | null;
}

export interface TimelineForeign {
  gpu: number;
  user?: string | null;
  pid: number;
  from_s: number;
  to_s?: number | null;
}

export interface Timeline {
  from_s: number;
  to_s: number;
  now_s: number;
  attempts: TimelineAttempt[];
  waiting: TimelineWaiting[];
  foreign: TimelineForeign[];
}

export interface PolicyOutcome {
  policy: string;
  makespan_s?: number | null;
  jct_mean_s?: number | null;
  jct_p50_s?: number | null;
  jct_p95_s?: number | null;
  wait_mean_s?: number | null;
  oom_count?: number | null;
  preemptions?: number | null;
  smact_mean?: number | null;
  energy_j?: number | null;
  completed?: number | null;
  tasks?: { id: number; submit_s: number; start_s?: number | null; end_s?: number | null }[];
}

export interface WhatIf {
  observed: PolicyOutcome;
  model: PolicyOutcome;
  agreement?: unknown;
  rows: PolicyOutcome[];
  assumptions: string[];
}

export interface Savings {
  gpu_hours_saved?: number | null;
  jct_saved_mean_s?: number | null;
  energy_saved_j?: number | null;
  by_day: { day: string | number; exclusive_gpu_h: number; shared_gpu_h: number }[];
  by_user: { user: string; tasks: number; waited_s: number; would_have_waited_s: number }[];
  cost: { oom_repeated_s?: number | null; slowed_tasks?: number | null; slowed_beyond?: number | null };
  assumptions: string[];
}

export interface SampleGpu {
  index: number;
  memory_used_bytes: number;
  memory_promised_bytes: number;
  smact?: number | null;
  smocc?: number | null;
  drama?: number | null;
  power_w?: number | null;
  temperature_c?: number | null;
  verdict?: Verdict | null;
  residents: { id: number; used_bytes?: number | null; promised_bytes?: number | null; sm_share?: number | null; slowdown?: number | null }[];
  foreign_bytes?: number | null;
}

export interface Sample {
  at_s: number;
  gpus: SampleGpu[];
}

export interface Hello {
  epoch: string | number;
  seq: number;
  schema?: number;
  now_s: number;
}
