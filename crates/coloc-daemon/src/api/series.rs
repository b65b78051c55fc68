//! What was measured over time.

use super::answer::Failure;
use super::request::Query;
use super::{Peer, State};
use axum::Json;
use axum::http::StatusCode;
use coloc_api::SCHEMA;
use coloc_api::request::SeriesRequest;
use coloc_api::view::{SeriesAnswer, SeriesView};
use coloc_model::TaskId;

/// Series of one answer.
const MOST_SERIES: usize = 256;
/// Values of each column.
const USUAL_POINTS: u32 = 600;
const MOST_POINTS: u32 = 4000;

/// Of what a series is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Gpu(usize),
    Task(u32),
}

fn wrong(what: String) -> Failure {
    Failure::Malformed(StatusCode::BAD_REQUEST, what)
}

fn parse(of: &str) -> Result<Vec<Of>, Failure> {
    let one = |text: &str| {
        let (kind, number) = text.split_once(':')?;
        match kind {
            "gpu" => number.parse().ok().map(Of::Gpu),
            "task" => number.parse().ok().map(Of::Task),
            _ => None,
        }
    };
    let said = "`of` names GPUs and tasks, such as gpu:0,task:450";
    let all: Option<Vec<Of>> = of.split(',').map(one).collect();
    match all {
        Some(all) if all.len() <= MOST_SERIES => Ok(all),
        Some(_) => Err(wrong(format!("`of` names at most {MOST_SERIES}"))),
        None => Err(wrong(format!("{said}, not {of:?}"))),
    }
}

/// Whole seconds of a time that a client gave.
fn seconds(time: Option<f64>, usual: u64) -> u64 {
    time.map_or(usual, |time| time.clamp(0.0, 1e12) as u64)
}

/// The part of a series that was kept as a whole.
fn part(series: SeriesView, from: u64, to: u64) -> SeriesView {
    let inside = |index: usize| {
        let at = series.start_s + series.step_s * index as f64;
        at + series.step_s > from as f64 && at < to as f64
    };
    let length = series.columns.values().map(Vec::len).max().unwrap_or(0);
    let first = (0..length).find(|&index| inside(index)).unwrap_or(length);
    let only = |all: &std::collections::BTreeMap<String, Vec<Option<f64>>>| {
        let cut = |(name, values): (&String, &Vec<Option<f64>>)| {
            let kept = values.iter().enumerate().filter(|(index, _)| inside(*index));
            (name.clone(), kept.map(|(_, value)| *value).collect())
        };
        all.iter().map(cut).collect()
    };
    SeriesView {
        start_s: series.start_s + series.step_s * first as f64,
        columns: only(&series.columns),
        max: only(&series.max),
        ..series
    }
}

pub(super) async fn read(
    api: State,
    _peer: Peer,
    Query(request): Query<SeriesRequest>,
) -> Result<Json<SeriesAnswer>, Failure> {
    let wanted = parse(&request.of)?;
    let (from, to) = (seconds(request.from_s, 0), seconds(request.to_s, u64::MAX));
    if from >= to {
        return Err(wrong("`from_s` is before `to_s`".to_owned()));
    }
    let points = request.points.unwrap_or(USUAL_POINTS).clamp(1, MOST_POINTS) as usize;
    let mut series = Vec::new();
    for of in wanted {
        match of {
            Of::Gpu(gpu) => series.extend(api.series.gpu(gpu, from, to, points)),
            Of::Task(task) => match api.series.task(TaskId(task), from, to, points) {
                Some(live) => series.push(live),
                None => {
                    let kept = api.read(move |journal| journal.series(TaskId(task))).await?;
                    series.extend(kept.map(|kept| part(kept, from, to)));
                }
            },
        }
    }
    Ok(Json(SeriesAnswer { schema: SCHEMA, series }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_or_refused() {
        assert_eq!(parse("gpu:0,task:450").ok(), Some(vec![Of::Gpu(0), Of::Task(450)]));
        for wrong in ["", "gpu", "gpu:x", "node:1", "gpu:0,", "task:-1"] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse(&vec!["gpu:0"; MOST_SERIES + 1].join(",")).is_err());
    }

    #[test]
    fn a_kept_series_is_cut() {
        let values: Vec<Option<f64>> = (0..10).map(|n| Some(f64::from(n))).collect();
        let columns = [("smact".to_owned(), values)].into_iter().collect();
        let all = SeriesView { step_s: 10.0, start_s: 100.0, columns, ..SeriesView::default() };
        let cut = part(all, 125, 145);
        assert_eq!(
            (cut.start_s, cut.columns["smact"].clone()),
            (120.0, vec![Some(2.0), Some(3.0), Some(4.0)])
        );
    }
}
