//! Asking what was used.

use super::wanted::push_user;
use super::{Client, ClientError};
use crate::report::{HistoryRequest, Report, ReportRequest, TaskHistory};

impl Client {
    /// What was used of the GPUs, added up.
    pub fn report(&mut self, request: &ReportRequest) -> Result<Report, ClientError> {
        let ReportRequest { since_s, until_s, by, user, utc_offset_s } = request;
        let by = by.name();
        let mut path = format!("/v1/report?since_s={since_s}&by={by}&utc_offset_s={utc_offset_s}");
        path.extend(until_s.map(|until| format!("&until_s={until}")));
        push_user(&mut path, user.as_deref());
        self.get(&path)
    }

    /// Ended tasks with what each used.
    pub fn history(&mut self, request: &HistoryRequest) -> Result<TaskHistory, ClientError> {
        let HistoryRequest { since_s, until_s, user, ids, limit } = request;
        let mut path = format!("/v1/history?since_s={since_s}");
        path.extend(until_s.map(|until| format!("&until_s={until}")));
        path.extend(limit.map(|limit| format!("&limit={limit}")));
        path.extend(ids.as_ref().map(|ids| format!("&ids={ids}")));
        push_user(&mut path, user.as_deref());
        self.get(&path)
    }
}
