// Made from the OpenAPI document by scripts/types.mjs. Not written by hand: `cargo xtask web` makes it again.

/** What went wrong, for a program. */
export interface ApiError {
  code: string;
  error: string;
  schema: number;
}

/** The numbers of an array. */
export interface ArrayExtent {
  count: number;
  max: number;
  min: number;
  step: number;
}

/** Tasks that differ in a number. */
export interface ArrayRequest {
  at_once?: number | null;
  indices: number[];
}

/** One attempt at a task. */
export interface AttemptView {
  ended_s: number | null;
  exit_code: number | null;
  gpus: number[];
  instance: string | null;
  number: number;
  ooms: number;
  outcome: string | null;
  peak_bytes: number;
  promised_bytes: number | null;
  started_s: number | null;
}

/** What can be done with a task. */
export type Change = "cancel" | "hold" | "release" | "requeue" | { update: TaskUpdate; } | { signal: SignalRequest; };

/** Something to be done with tasks. */
export interface ChangeRequest {
  change: Change;
  ids: number[];
}

/** Which tasks were changed. */
export interface Changed {
  done: number[];
  refused: RefusedTask[];
  schema: number;
}

/** How something is told. */
export type Channel = { mail: string | null; } | { command: string; } | { webhook: string; };

/** A setting that was chosen, and where. */
export interface ChosenSetting {
  key: string;
  origin: string;
  values: string[];
}

/** The settings in force that were chosen; the others are as `coloc daemon --help` tells. */
export interface ConfigInForce {
  grace_s: number;
  keep_logs_bytes: number | null;
  keep_logs_s: number | null;
  policy: unknown;
  schema: number;
  settings: ChosenSetting[];
}

/** What keeps the processes of a task together, so that all of them end with it. */
export type Containment = "session" | "cgroup" | "cgroup_with_limits";

/** What one GPU said when a task was decided about. */
export interface DecisionGpu {
  fits: boolean;
  gpu: number;
  refusals: RuleView[];
  score: number | null;
  text: string;
}

/** What was decided. */
export type DecisionKind = "waits" | "starts";

/** What was decided of a task. */
export interface DecisionNews {
  at_s: number;
  attempt: number | null;
  chosen: number[];
  gpus: DecisionGpu[];
  kind: DecisionKind;
  left_out: number;
  reason_code: ReasonCode | null;
  task: number;
}

/** What the scheduler decided of a task, and why. */
export interface DecisionView {
  at_s: number;
  attempt: number | null;
  chosen: number[];
  gpus: DecisionGpu[];
  kind: DecisionKind;
  left_out: number;
  reason_code: ReasonCode | null;
}

/** A task that must end first. */
export interface Dependency {
  delay?: number;
  task: number;
  when: DependencyKind;
}

/** How a task that is waited for must end. */
export type DependencyKind = "afterok" | "afternotok" | "afterany" | "after" | "aftercorr";

/** An answer with the version of its schema. */
export interface DrainingAnswer {
  draining: boolean;
  schema: number;
}

/** An ended task with what it used. */
export interface EndedTask {
  array_id: number | null;
  array_index: number | null;
  attempts: number;
  bound_bytes: number | null;
  ended_s: number | null;
  energy_j: number | null;
  energy_kind: EnergyKind | null;
  estimate_bytes: number | null;
  exit_code: number | null;
  first_started_s: number | null;
  gpu_hours_promised: number;
  gpu_hours_used: number;
  gpu_ids: number[];
  gpu_mem_bytes: number | null;
  gpus: number;
  held_by: string | null;
  id: number;
  name: string;
  ooms: number;
  peak_bytes: number;
  position: number | null;
  preemptions: number;
  priority: number;
  progress: Progress | null;
  promised_bytes: number | null;
  ran_s: number | null;
  reason: string | null;
  reason_code: ReasonCode | null;
  smact_mean: number | null;
  started_s: number | null;
  state: TaskState;
  stopped_s: number | null;
  submitted_s: number;
  time_limit_s: number | null;
  used_bytes: number | null;
  user: string;
  waited_s: number;
}

/** Where a figure of energy comes from, the most certain first. */
export type EnergyKind = "measured" | "modelled" | "emulated";

/** What holds an attempt to what it was given. */
export interface EnforcementView {
  containment: Containment;
  cpus: string | null;
  dmem: boolean;
  gpu_memory: string;
  host_memory: number | null;
  mps: MpsEnforcementView | null;
  processes: string;
  sms: string | null;
}

/** How an [`coloc_model::Estimate`] is written, for clients that write one without this crate. */
export interface Estimate {
  bound: number;
  peak: number;
  sm?: number | null;
}

/** A reason to doubt an estimate. */
export interface EstimateFlag {
  detail: string;
  kind: string;
}

/** How good estimates of memory were, over ended tasks that had one and were seen. */
export interface EstimateQuality {
  error_median: number | null;
  rows: number;
  within_bound: number | null;
}

/** What an event has in `data`, by the name of the event: `hello`, `task`, `sample`, `status` or `decision`. `missed` has nothing that counts: the listener has to ask for lists anew. */
export type EventData = Hello | SampleFrame | DecisionNews | StatusNews | TaskView;

/** A command that is to run inside a task's allocation. */
export interface ExecRequest {
  command: RawText[];
  term?: string | null;
  terminal?: TerminalSize | null;
}

/** When a task is expected to start and to end. */
export interface Expected {
  expected_basis: string;
  expected_end_s: number | null;
  expected_gpus: number[];
  expected_start_s: number | null;
  id: number;
}

/** An answer with the version of its schema. */
export interface ExpectedAnswer {
  expected_basis: string;
  expected_end_s: number | null;
  expected_gpus: number[];
  expected_start_s: number | null;
  id: number;
  schema: number;
}

/** Something that is wrong. */
export interface FaultView {
  text: string;
  word: string;
}

/** A process on a GPU that is no task. */
export interface ForeignView {
  bytes: number | null;
  name: string | null;
  pid: number;
  user: string | null;
}

/** What is expected of tasks. */
export interface Foreseen {
  at_s: number;
  schema: number;
  tasks: Expected[];
}

/** What the monitor saw of a GPU. */
export interface GpuFrame {
  drama: number | null;
  foreign_bytes: number;
  index: number;
  memory_promised_bytes: number;
  memory_used_bytes: number;
  power_w: number | null;
  residents: ResidentFrame[];
  smact: number;
  smocc: number | null;
  temperature_c: number | null;
  verdict: VerdictView;
}

/** A GPU as people name it. */
export type GpuName = number | string;

/** GPUs that are to take only the tasks of some users, or of all again. */
export interface GpuReservation {
  gpus: GpuName[];
  reason?: string | null;
  reserved_for: string[];
  until_s?: number | null;
}

/** GPUs that are to take nothing new, or to take tasks again. */
export interface GpuService {
  drained: boolean;
  gpus: GpuName[];
  reason?: string | null;
}

/** A GPU as the daemon sees it. */
export interface GpuView {
  clock_mhz: number | null;
  drain_reason: string | null;
  drained: boolean;
  drained_by: string | null;
  drained_s: number | null;
  drama: number | null;
  energy_j: number | null;
  faults: string[];
  foreign: ForeignView[];
  gract: number | null;
  index: number;
  instances: InstanceView[];
  lost: boolean;
  memory_promised_bytes: number;
  memory_total_bytes: number;
  memory_used_bytes: number;
  mig: boolean;
  model: string;
  pool: string[];
  power_limit_w: number | null;
  power_w: number | null;
  reserve_reason: string | null;
  reserved_by: string | null;
  reserved_for: string[];
  reserved_until_s: number | null;
  residents: ResidentView[];
  sharing: string;
  sm_demand: number | null;
  sm_demand_limit: number | null;
  smact: number;
  smocc: number | null;
  source: string | null;
  tasks: number[];
  temperature_c: number | null;
  uuid: string;
  verdict: VerdictView;
}

/** What one GPU says to a task. */
export interface GpuWhy {
  gpu: number;
  refusals: string[];
  rules: RuleView[];
}

/** GPUs. */
export interface Gpus {
  emulated: boolean;
  gpus: GpuView[];
  host: HostView;
  schema: number;
}

/** Which daemon speaks, and where its events stand. */
export interface Hello {
  epoch: string;
  now_s: number;
  schema: number;
  seq: number;
}

/** Bytes that are not UTF-8. */
export interface Hex {
  hex: string;
}

/** CPUs and memory of the machine: what tasks that run asked for. */
export interface HostView {
  cpus_total: number | null;
  cpus_used: number;
  memory_total_bytes: number | null;
  memory_used_bytes: number;
}

/** A MIG instance. */
export interface InstanceView {
  memory_bytes: number;
  profile: string;
  slices: number;
  start_slice: number;
  task: number | null;
}

/** Sensitivity and pressure, of the usual. */
export interface InterferenceProfile {
  pressure: number;
  sensitivity: number;
}

/** An answer that is being worked out: ask again. */
export interface JobView {
  done: number;
  job: string;
  of: number;
  schema: number;
}

/** How a [`Lesson`] is written, for clients that write one without this crate. */
export interface Lesson {
  interference?: InterferenceProfile | null;
  peak?: number | null;
  sm?: number | null;
}

/** Beyond what GPUs count as busy; null where the policy has no limit. */
export interface LimitsView {
  drama: number | null;
  smact: number | null;
  smocc: number | null;
}

/** Tasks. */
export interface Listed {
  schema: number;
  tasks: TaskView[];
}

/** How MPS holds an attempt. */
export interface MpsEnforcementView {
  memory: number | null;
  server: Process;
  server_memory: number | null;
  threads_percent: number | null;
}

/** A task that was on a GPU of another while that one was. */
export interface NeighbourView {
  gpu: number;
  id: number;
  name: string;
  since_s: number;
  slowed_by_this: number | null;
  slows_this: number | null;
  until_s: number | null;
  used_bytes: number;
  user: string;
}

/** Events that are told in one way. */
export interface Notify {
  channel: Channel;
  events: NotifyEvent[];
  long_wait?: number | null;
}

/** Something that happens to a task. */
export type NotifyEvent = "start" | "end" | "fail" | "oom" | "wait";

/** What happens to a task that ran out of GPU memory. */
export type OnOom = "policy" | "grow" | "exclusive" | "fail";

/** How it went, or would have gone. */
export interface OutcomeRow {
  energy_j: number | null;
  jct_mean_s: number;
  jct_p50_s: number;
  jct_p95_s: number;
  makespan_s: number;
  oom_count: number;
  policy: string;
  smact_mean: number | null;
  tasks: OutcomeTask[];
  wait_mean_s: number;
}

/** How a task went, or would have gone. */
export interface OutcomeTask {
  end_s: number | null;
  id: number;
  start_s: number | null;
  submit_s: number;
}

/** Ended tasks, and how the daemon that ran them was set up. */
export interface Past {
  never_ran: number;
  schema: number;
  setup: Record<string, unknown> | null;
  tasks: PastTask[];
}

/** A task that ran and has ended. */
export interface PastTask {
  activity: Record<string, number> | null;
  basis: string | null;
  bound_bytes: number | null;
  declared_bytes: number | null;
  ended_s: number;
  energy_j: number | null;
  estimate_bytes: number | null;
  exclusive: boolean;
  first_started_s: number;
  gpu_kinds: string[];
  gpus: number;
  id: number;
  kind: string;
  memory_bytes: number | null;
  ooms: number;
  preemptions: number;
  priority: number;
  shared: boolean;
  slowdown: number;
  slowdown_guessed: boolean;
  started_s: number;
  state: TaskState;
  stopped_s: number | null;
  submitted_s: number;
  user: string;
}

/** How a daemon schedules, in words. */
export interface PolicyView {
  estimator: string | null;
  place: string;
  preset: string | null;
  queue: string;
  share: string;
}

/** A process. A PID alone does not name one: it is given again after the process ends. */
export interface Process {
  began: number;
  pid: number;
}

/** How far a running attempt is, as its log tells. */
export interface Progress {
  done: number;
  eta_s: number | null;
  rate: number | null;
  total: number | null;
  unit: string;
}

/** A text, or bytes that are not UTF-8. */
export type RawText = string | Hex;

/** What a task waits for. The sentence beside it has the numbers. */
export type ReasonCode = "memory" | "sm" | "hot" | "taken" | "exclusive" | "gpus" | "held" | "begin" | "dependency" | "array_limit" | "quota" | "host" | "drained" | "retry" | "disk" | "order" | "settling" | "lost_gpu" | "machine" | "other";

/** A task that was not changed. */
export interface RefusedTask {
  code: string;
  id: number;
  message: string;
}

/** What a reload came to. */
export interface Reload {
  at_next_start: string[];
  schema: number;
  settings: ChosenSetting[];
}

/** A replay without what the software environment adds, from which that can be learned once the task has run. */
export interface Replayed {
  allocator: number;
  loads: string;
}

/** What was used, row by row. Seconds and hours are those of the tasks, which pass faster where time is scaled. */
export interface Report {
  by: ReportBy;
  rows: ReportRow[];
  schema: number;
  since_s: number;
  time_scale: number;
  total: ReportRow;
  truncated: boolean;
  until_s: number;
}

/** What the rows of a report stand for. */
export type ReportBy = "user" | "group" | "gpu" | "day";

/** A row of a report. */
export interface ReportRow {
  energy_j: number | null;
  energy_kind: EnergyKind | null;
  gpu_hours_promised: number;
  gpu_hours_unwatched: number;
  gpu_hours_used: number;
  key: string;
  ooms: number;
  smact_mean: number | null;
  tasks: number;
  wait_mean_s: number | null;
}

/** What the monitor saw of a task on a GPU. */
export interface ResidentFrame {
  id: number;
  promised_bytes: number;
  slowdown: number | null;
  sm_share: number | null;
  used_bytes: number | null;
}

/** A task on a GPU. */
export interface ResidentView {
  attempt: number;
  bound_bytes: number | null;
  estimate_bytes: number | null;
  gpus: number;
  id: number;
  instance: string | null;
  leader_pid: number | null;
  name: string;
  ooms: number;
  promised_bytes: number;
  settled: boolean;
  since_s: number | null;
  slowdown: number | null;
  sm_share: number | null;
  used_bytes: number | null;
  user: string;
}

/** A limit on one resource, by the names that Slurm propagates them under. */
export interface ResourceLimit {
  hard?: number | null;
  resource: ResourceName;
  soft?: number | null;
}

/** The resources that a shell can limit. */
export type ResourceName = "as" | "core" | "cpu" | "data" | "fsize" | "memlock" | "nofile" | "nproc" | "stack";

/** A rule that says no to a task on one GPU. Amounts that a rule does not have are null. */
export interface RuleView {
  have: number | null;
  limit: number | null;
  rule: string;
  short: number | null;
  task: number | null;
  text: string;
  unit: string | null;
}

/** What the monitor saw of all GPUs, once a second. */
export interface SampleFrame {
  at_s: number;
  gpus: GpuFrame[];
}

/** A day. */
export interface SavedDay {
  day: string;
  exclusive_gpu_h: number;
  shared_gpu_h: number;
}

/** A user. */
export interface SavedUser {
  energy_j: number | null;
  exclusive_gpu_h: number;
  shared_gpu_h: number;
  tasks: number;
  user: string;
  waited_s: number;
  would_have_waited_s: number;
}

/** What sharing saved: what was observed beside what would have been if every task had had its GPUs to itself. */
export interface SavingsAnswer {
  assumptions: string[];
  by_day: SavedDay[];
  by_user: SavedUser[];
  cost: SavingsCost;
  energy_saved_j: number | null;
  gpu_hours_saved: number;
  jct_saved_mean_s: number;
  schema: number;
  since_s: number;
  tasks: number;
}

/** What sharing cost. */
export interface SavingsCost {
  known_tasks: number;
  oom_repeated_s: number;
  slowed_beyond: number;
  slowed_tasks: number;
}

/** What a caller may do. */
export type Scope = "read" | "act";

/** Series of GPUs and tasks. */
export interface SeriesAnswer {
  schema: number;
  series: SeriesView[];
}

/** One series: a value of each column every `step_s` seconds from `start_s` on. */
export interface SeriesView {
  columns: Record<string, (number | null)[]>;
  max: Record<string, (number | null)[]>;
  of: string;
  start_s: number;
  step_s: number;
}

/** GPUs that take nothing new, or tasks again. */
export interface Served {
  gpus: GpuView[];
  notes: string[];
  schema: number;
}

/** A signal, and which processes it is for. */
export interface SignalRequest {
  full?: boolean;
  signal: number;
}

/** What changes of how the daemon is. */
export interface StatusNews {
  counts: Record<string, number>;
  disk_full: boolean;
  draining: boolean;
  energy_today_j: number | null;
  faults: FaultView[];
  now_s: number;
  ooms_today: number;
  recovered_today: number;
  tasks: number;
  trouble: string | null;
}

/** An answer with the version of its schema. */
export interface StatusViewAnswer {
  admin: boolean;
  containment: Containment;
  counts: Record<string, number>;
  disk_full: boolean;
  draining: boolean;
  emulated: boolean;
  energy_today_j: number | null;
  epoch: string;
  estimate: EstimateQuality;
  faults: FaultView[];
  host: string;
  lessons: number;
  limits: LimitsView;
  now_s: number;
  ooms_today: number;
  pid: number;
  policy: PolicyView;
  processes: string;
  recovered_today: number;
  schema: number;
  scope: Scope;
  seq: number;
  started_s: number;
  tasks: number;
  time_scale: number;
  trouble: string | null;
  user: string;
  version: string;
}

/** A line of a task's story. */
export interface StoryLine {
  at: number;
  what: string;
}

/** What a user submits. */
export interface Submission {
  array?: ArrayRequest | null;
  held?: boolean;
  key?: string | null;
  singleton?: boolean;
  spec: TaskSpec;
}

/** Tasks that are on the disk. */
export interface Submitted {
  ids: number[];
  memory_rule: string | null;
  schema: number;
}

/** An answer with the version of its schema. */
export interface TaskDetailAnswer {
  array_id: number | null;
  array_index: number | null;
  attempts: number;
  attempts_list: AttemptView[];
  bound_bytes: number | null;
  command: RawText[];
  cpus: number | null;
  decisions: DecisionView[];
  directory: RawText;
  ended_s: number | null;
  energy_j: number | null;
  energy_kind: string | null;
  enforcement: EnforcementView | null;
  estimate_bound_bytes: number | null;
  estimate_bytes: number | null;
  estimate_flags: EstimateFlag[];
  estimator: string | null;
  exit_code: number | null;
  first_started_s: number | null;
  gpu_ids: number[];
  gpu_kinds: string[];
  gpu_mem_bytes: number | null;
  gpus: number;
  held_by: string | null;
  host_mem_bytes: number | null;
  id: number;
  limit_bytes: number | null;
  log: string;
  log_removed: boolean;
  memory_basis: string | null;
  memory_rule: string | null;
  name: string;
  neighbours: NeighbourView[];
  ntasks: number | null;
  ooms: number;
  peak_bytes: number;
  pools: string[];
  position: number | null;
  preemptions: number;
  priority: number;
  progress: Progress | null;
  promised_bytes: number | null;
  reason: string | null;
  reason_code: ReasonCode | null;
  schema: number;
  settled: boolean;
  smact_mean: number | null;
  started_s: number | null;
  state: TaskState;
  stopped_s: number | null;
  story: StoryLine[];
  submitted_s: number;
  time_limit_s: number | null;
  used_bytes: number | null;
  user: string;
}

/** Ended tasks with what each used. */
export interface TaskHistory {
  schema: number;
  tasks: EndedTask[];
  truncated: boolean;
}

/** Copies and CPUs of a task. A command is started once: copies are what `srun` starts in it. */
export interface TaskLayout {
  array?: ArrayExtent | null;
  cpus_per_task?: number | null;
  gpus_per_task?: number | null;
  ntasks?: number | null;
  submit_directory?: RawText | null;
}

/** A submission. Tasks of one array share it. */
export interface TaskSpec {
  after?: Dependency[];
  after_any?: boolean;
  begin_ms?: number | null;
  borrow?: boolean;
  checkpoint?: number | null;
  command: RawText[];
  directory: RawText;
  environment?: unknown[][];
  errors?: RawText | null;
  estimate?: Estimate | null;
  estimate_flags?: EstimateFlag[];
  estimator?: string | null;
  exclusive?: boolean;
  force?: boolean;
  framework?: string | null;
  gpu_kinds?: string[];
  gpu_memory?: number | null;
  gpus: number;
  host_memory?: number | null;
  idle_timeout?: number | null;
  input?: boolean;
  layout?: TaskLayout;
  limits?: ResourceLimit[];
  name: string;
  notify?: Notify[];
  on_oom?: OnOom;
  output?: RawText | null;
  pools?: string[];
  pools_if_any?: boolean;
  priority?: number;
  reclaim?: boolean;
  replayed?: Replayed | null;
  retries?: number;
  script?: RawText | null;
  singleton?: boolean;
  sm_percent?: number | null;
  terminal?: TerminalSize | null;
  time_limit?: number | null;
  truncate?: boolean;
  umask?: number | null;
  warning?: Warning | null;
}

/** Where a task stands. */
export type TaskState = "pending" | "launching" | "running" | "preempting" | "recovering" | "completed" | "failed" | "cancelled" | "timed_out" | "out_of_memory" | "lost";

/** What is to be different about a task. */
export interface TaskUpdate {
  after?: Dependency[] | null;
  after_any?: boolean | null;
  begin_ms?: number | null;
  exclusive?: boolean | null;
  gpu_kinds?: string[] | null;
  gpu_memory?: number | null;
  gpus?: number | null;
  name?: string | null;
  on_oom?: OnOom | null;
  pools?: string[] | null;
  priority?: number | null;
  retries?: number | null;
  time_limit?: number | null;
  time_limit_change_ms?: number | null;
}

/** A task in a list. Its texts are its own, or borrowed where lists are long. */
export interface TaskView {
  array_id: number | null;
  array_index: number | null;
  attempts: number;
  bound_bytes: number | null;
  ended_s: number | null;
  estimate_bytes: number | null;
  exit_code: number | null;
  first_started_s: number | null;
  gpu_ids: number[];
  gpu_mem_bytes: number | null;
  gpus: number;
  held_by: string | null;
  id: number;
  name: string;
  ooms: number;
  peak_bytes: number;
  position: number | null;
  preemptions: number;
  priority: number;
  progress: Progress | null;
  promised_bytes: number | null;
  reason: string | null;
  reason_code: ReasonCode | null;
  started_s: number | null;
  state: TaskState;
  stopped_s: number | null;
  submitted_s: number;
  time_limit_s: number | null;
  used_bytes: number | null;
  user: string;
}

/** An answer with the version of its schema. */
export interface TaughtAnswer {
  schema: number;
  taught: boolean;
}

/** What was found out about a command. */
export interface Teaching {
  command: RawText[];
  directory: RawText;
  lesson: Lesson;
  script?: RawText | null;
}

/** The size of a terminal's window, in characters. */
export interface TerminalSize {
  columns: number;
  rows: number;
}

/** What ran and runs in a span of time, and what is expected to. */
export interface TimelineAnswer {
  attempts: TimelineAttempt[];
  foreign: TimelineForeign[];
  from_s: number;
  now_s: number;
  schema: number;
  to_s: number;
  truncated: boolean;
  waiting: TimelineWaiting[];
}

/** An attempt. */
export interface TimelineAttempt {
  ended_s: number | null;
  gpus: number[];
  instance: string | null;
  name: string;
  number: number;
  ooms: number;
  outcome: string | null;
  predicted_end_s: number | null;
  started_s: number;
  task: number;
  user: string;
}

/** A process that is no task, on a GPU. */
export interface TimelineForeign {
  from_s: number;
  gpu: number;
  pid: number;
  to_s: number | null;
  user: string | null;
}

/** A task that waits. */
export interface TimelineWaiting {
  expected_end_s: number | null;
  expected_start_s: number | null;
  gpus: number[];
  name: string;
  task: number;
  user: string;
}

/** Tokens. */
export interface TokenList {
  schema: number;
  tokens: TokenView[];
}

/** A token that was made. */
export interface TokenMade {
  created_s: number;
  expires_s: number | null;
  fingerprint: string | null;
  id: number;
  label: string;
  last_used_s: number | null;
  listens: string | null;
  revoked_s: number | null;
  schema: number;
  scope: Scope;
  token: string;
  user: string;
}

/** A token that is wanted. */
export interface TokenRequest {
  label?: string;
  lasts_s?: number | null;
  scope?: Scope;
  user?: string | null;
}

/** A token as it is listed. */
export interface TokenView {
  created_s: number;
  expires_s: number | null;
  id: number;
  label: string;
  last_used_s: number | null;
  revoked_s: number | null;
  scope: Scope;
  user: string;
}

/** An answer with the version of its schema. */
export interface TokenViewAnswer {
  created_s: number;
  expires_s: number | null;
  id: number;
  label: string;
  last_used_s: number | null;
  revoked_s: number | null;
  schema: number;
  scope: Scope;
  user: string;
}

/** Whether a GPU would take a task now, whichever task that is. */
export interface VerdictView {
  text: string;
  until_s: number | null;
  word: VerdictWord;
}

/** A verdict in a word. */
export type VerdictWord = "open" | "hot" | "full" | "taken" | "drained" | "lost";

/** A signal that comes before the end. */
export interface Warning {
  before: number;
  signal: number;
}

/** A code that a page signs in with, once. */
export interface WebCode {
  code: string;
  expires_s: number;
  schema: number;
  url: string;
}

/** A code to sign in with. */
export interface WebCodeRequest {
  scope?: Scope;
}

/** What a page shows from now on. */
export interface WebSession {
  expires_s: number;
  schema: number;
  scope: Scope;
  token: string;
  user: string;
}

/** A code, for a token. */
export interface WebSessionRequest {
  code?: string;
}

/** What would have been. */
export interface WhatifAnswer {
  agreement: number | null;
  assumptions: string[];
  fleet: string;
  model: OutcomeRow | null;
  observed: OutcomeRow;
  rows: OutcomeRow[];
  schema: number;
  since_s: number;
}

/** What is to be played again. */
export interface WhatifRequest {
  fleet?: string | null;
  policies?: string[];
  since_s?: number;
  user?: string | null;
}

/** An answer with the version of its schema. */
export interface WhyViewAnswer {
  ahead: number;
  awaits: number | null;
  gpus: GpuWhy[];
  host: string | null;
  limit_bytes: number | null;
  memory_basis: string | null;
  memory_rule: string | null;
  promised_bytes: number | null;
  schema: number;
  settled: boolean;
  summary: string;
  task: TaskView;
}
