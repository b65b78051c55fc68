//! What was used of the GPUs, added up: reports, and ended tasks with what each used.

use crate::view::TaskView;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a figure of energy comes from, the most certain first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, JsonSchema, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum EnergyKind {
    /// The device's own counter or power reading, shared among its tasks by a model.
    Measured,
    /// The device tells neither: a model says what it draws.
    Modelled,
    /// The counter of an emulated device.
    Emulated,
}

impl EnergyKind {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            EnergyKind::Measured => "measured",
            EnergyKind::Modelled => "modelled",
            EnergyKind::Emulated => "emulated",
        }
    }
}

/// What the rows of a report stand for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportBy {
    /// Users.
    #[default]
    User,
    /// The primary groups of users.
    Group,
    /// GPUs.
    Gpu,
    /// Days.
    Day,
}

impl ReportBy {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            ReportBy::User => "user",
            ReportBy::Group => "group",
            ReportBy::Gpu => "gpu",
            ReportBy::Day => "day",
        }
    }
}

/// What a report is to have.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReportRequest {
    /// What ran since, in seconds since 1970.
    pub since_s: f64,
    /// What ran before; until now if it is left out.
    pub until_s: Option<f64>,
    /// What its rows stand for.
    pub by: ReportBy,
    /// Only this user's tasks.
    pub user: Option<String>,
    /// Where days begin: seconds that the caller's clocks are ahead of UTC.
    #[schemars(range(min = -86400, max = 86400))]
    pub utc_offset_s: i32,
}

/// What was used, row by row. Seconds and hours are those of the tasks, which pass faster where time is scaled.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Report {
    /// The version of the answer.
    pub schema: u32,
    /// What the rows stand for.
    pub by: ReportBy,
    /// From when.
    pub since_s: f64,
    /// Until when.
    pub until_s: f64,
    /// The tasks' seconds in one of the world's.
    pub time_scale: f64,
    /// The rows: days in order, others by the hours that were promised, the most first.
    pub rows: Vec<ReportRow>,
    /// All of them; a task that is in several rows counts once.
    pub total: ReportRow,
    /// Tasks beyond the most that one report reads were left out, the oldest first.
    #[serde(default)]
    pub truncated: bool,
}

/// A row of a report.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ReportRow {
    /// The user, the group, the number of the GPU, or the day.
    pub key: String,
    /// Tasks that ran in that time.
    pub tasks: usize,
    /// The part of each GPU that was promised, times hours.
    pub gpu_hours_promised: f64,
    /// The part of each GPU's memory that was held, times hours.
    pub gpu_hours_used: f64,
    /// From submission to the first start, mean over tasks that were first started in that time; null without any.
    pub wait_mean_s: Option<f64>,
    /// Attempts that ran out of GPU memory.
    pub ooms: u32,
    /// Energy of the tasks' shares; null if nothing is known of any.
    pub energy_j: Option<f64>,
    /// Where that comes from: of several sources the least certain.
    pub energy_kind: Option<EnergyKind>,
    /// The tasks' own SM activity, mean over the GPU time in which the monitor looked.
    pub smact_mean: Option<f64>,
    /// GPU hours in which no daemon looked: energy, memory and SM activity of that time are not in the row.
    #[serde(default)]
    pub gpu_hours_unwatched: f64,
}

/// Which ended tasks are wanted.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HistoryRequest {
    /// What ended since, in seconds since 1970.
    pub since_s: f64,
    /// What ended before; until now if it is left out.
    pub until_s: Option<f64>,
    /// Only this user's.
    pub user: Option<String>,
    /// These ids or ranges of them alone, such as 3,7-9.
    pub ids: Option<String>,
    /// At most so many, the newest.
    pub limit: Option<u32>,
}

/// Ended tasks with what each used.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TaskHistory {
    /// The version of the answer.
    pub schema: u32,
    /// The tasks, by when they ended.
    pub tasks: Vec<EndedTask>,
    /// There are older ones that fit the request.
    #[serde(default)]
    pub truncated: bool,
}

/// An ended task with what it used.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct EndedTask {
    /// As in a list.
    #[serde(flatten)]
    pub task: TaskView,
    /// From its submission to its first start, or to its end if it was never started.
    pub waited_s: f64,
    /// How long its attempts were on GPUs, all together; null if there was none.
    pub ran_s: Option<f64>,
    /// What it used.
    #[serde(flatten)]
    pub usage: UsageView,
}

/// What a task used so far.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct UsageView {
    /// Its share of what its GPUs drew; null if that is not known.
    #[serde(default)]
    pub energy_j: Option<f64>,
    /// Where that comes from.
    #[serde(default)]
    pub energy_kind: Option<EnergyKind>,
    /// Its own SM activity, mean over its GPUs and the time in which the monitor looked.
    #[serde(default)]
    pub smact_mean: Option<f64>,
    /// The part of each GPU that it was promised, times hours.
    #[serde(default)]
    pub gpu_hours_promised: f64,
    /// The part of each GPU's memory that it held, times hours.
    #[serde(default)]
    pub gpu_hours_used: f64,
}
