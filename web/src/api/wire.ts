// The daemon's types by the names that the page has for them.
import type { GpuView as Gpu, TaskDetailAnswer } from "./types.ts";

export type {
  AttemptView as Attempt,
  Changed,
  DecisionGpu,
  DecisionNews,
  DecisionView as Decision,
  Expected,
  ForeignView as Foreign,
  Foreseen,
  GpuFrame as SampleGpu,
  Gpus,
  GpuWhy,
  Hello,
  InstanceView as Instance,
  JobView as Job,
  Listed,
  NeighbourView as Neighbour,
  OutcomeRow as PolicyOutcome,
  ResidentView as Resident,
  RuleView as RuleRefusal,
  SampleFrame as Sample,
  SavingsAnswer as Savings,
  SeriesAnswer,
  SeriesView as Series,
  StatusNews,
  StatusViewAnswer as StatusView,
  StoryLine,
  TaskView,
  TimelineAnswer as Timeline,
  VerdictView as Verdict,
  WhatifAnswer as WhatIf,
  WhyViewAnswer as WhyView,
} from "./types.ts";

/** A GPU as the list has it, with what the frames of samples add. */
export type GpuView = Gpu & { foreign_bytes?: number };

export type TaskDetail = Omit<TaskDetailAnswer, "schema">;
