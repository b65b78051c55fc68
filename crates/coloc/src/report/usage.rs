//! The page of `coloc report`: what was promised and used, drawn.

use super::frame;
use coloc_api::report::ReportRow;
use serde::Serialize;

/// What the page of a report shows.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct UsagePage {
    /// Heading and window title.
    pub(crate) title: String,
    /// What the numbers are, such as "emulated, not measured".
    pub(crate) note: String,
    /// Where energy comes from.
    pub(crate) energy: String,
    /// From when, for people.
    pub(crate) from: String,
    /// Until when.
    pub(crate) until: String,
    /// A row a user.
    pub(crate) users: Vec<ReportRow>,
    /// A row a day.
    pub(crate) days: Vec<ReportRow>,
    /// A row a GPU.
    pub(crate) gpus: Vec<ReportRow>,
    /// All of it.
    pub(crate) total: Option<ReportRow>,
    /// GPU hours promised by day and user.
    pub(crate) stack: Stack,
}

/// GPU hours promised by day, divided by user.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Stack {
    /// The days.
    pub(crate) days: Vec<String>,
    /// The users with the most hours, and the others together.
    pub(crate) users: Vec<StackUser>,
}

/// One user's hours.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct StackUser {
    /// The user.
    pub(crate) name: String,
    /// Day by day.
    pub(crate) hours: Vec<f64>,
}

/// The page for a report, complete.
pub(crate) fn usage_page(data: &UsagePage) -> String {
    frame::page(&data.title, data, &[include_str!("usage.js")])
}
