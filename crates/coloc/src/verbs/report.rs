//! `coloc report`: what was promised and used of the GPUs, added up.

use crate::args::live::SocketArg;
use crate::error::{CliError, UsageError};
use crate::local_time::LocalTime;
use crate::output::summary::{energy, span};
use crate::output::table::listing;
use crate::output::terminal::{fold, width};
use crate::output::{files, print_text, to_stdout};
use crate::parse::since::{past_moment, utc_offset_s};
use crate::report::{self as pages, Stack, StackUser, UsagePage};
use clap::{Args, ValueEnum};
use coloc_api::client::Client;
use coloc_api::moment::Moment;
use coloc_api::report::{EnergyKind, Report, ReportBy, ReportRequest, ReportRow};
use std::path::PathBuf;

/// Tell what was promised and used of the GPUs, by user, group, GPU or day
#[derive(Args, Debug)]
pub(crate) struct ReportVerb {
    /// What ran since: 12h or 7d ago, today, yesterday, 2027-01-20
    #[arg(short = 'S', long, value_name = "WHEN", default_value = "7d", value_parser = past_moment)]
    since: Moment,
    /// What ran before, in the same forms [default: now]
    #[arg(short = 'E', long, value_name = "WHEN", value_parser = past_moment)]
    until: Option<Moment>,
    /// What a row stands for
    #[arg(long, value_enum, default_value = "user")]
    by: ByFlag,
    /// Only this user's tasks
    #[arg(short = 'u', long, value_name = "NAME")]
    user: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Write a self-contained page with plots, by user, day and GPU
    #[arg(long, value_name = "OUT.html")]
    html: Option<PathBuf>,
    #[command(flatten)]
    socket: SocketArg,
}

/// What a row stands for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
enum ByFlag {
    /// The user who submitted the tasks
    User,
    /// Their group: the one whose quota counts for them, else their primary group
    Group,
    /// The GPU
    Gpu,
    /// The day
    Day,
}

impl From<ByFlag> for ReportBy {
    fn from(flag: ByFlag) -> Self {
        match flag {
            ByFlag::User => ReportBy::User,
            ByFlag::Group => ReportBy::Group,
            ByFlag::Gpu => ReportBy::Gpu,
            ByFlag::Day => ReportBy::Day,
        }
    }
}

impl ReportVerb {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let now = Moment::now();
        let until = self.until.unwrap_or(now);
        if until <= self.since {
            let why = "that is not after --since, so nothing can have run in between";
            return Err(UsageError::flag("--until", why).into());
        }
        let mut client = self.socket.connect()?;
        let request = ReportRequest {
            since_s: self.since.secs(),
            until_s: Some(until.secs()),
            by: self.by.into(),
            user: self.user.clone(),
            utc_offset_s: utc_offset_s(until),
        };
        let report = client.report(&request)?;
        if let Some(file) = &self.html {
            let page = pages::usage_page(&page(&mut client, &request)?);
            files::write(file, |output| output.write_all(page.as_bytes()))?;
        }
        if self.json {
            let text = serde_json::to_string_pretty(&report);
            return print_text(&text.map_err(|error| to_stdout(error.into()))?);
        }
        if self.csv {
            return print_text(csv(&report).trim_end());
        }
        print_text(&render(&report))?;
        match &self.html {
            Some(file) => print_text(&format!("Written: {}", file.display())),
            None => Ok(()),
        }
    }
}

/// On a narrow terminal: out of memory, waits.
const SPARE: [usize; 2] = [5, 4];

fn render(report: &Report) -> String {
    if report.rows.is_empty() {
        return "No task ran in that time. `coloc report --since 30d` looks further back."
            .to_owned();
    }
    let by = report.by.name().to_uppercase();
    let header = [&by, "TASKS", "PROMISED", "USED", "WAIT", "OOMS", "ENERGY", "SMACT"];
    let dash = || "-".to_owned();
    let row = |row: &ReportRow| {
        vec![
            row.key.clone(),
            row.tasks.to_string(),
            format!("{:.2} h", row.gpu_hours_promised),
            format!("{:.2} h", row.gpu_hours_used),
            row.wait_mean_s.map_or_else(dash, span),
            row.ooms.to_string(),
            row.energy_j.map_or_else(dash, energy),
            row.smact_mean.map_or_else(dash, |smact| format!("{smact:.2}")),
        ]
    };
    let total = (report.rows.len() > 1).then_some(&report.total);
    let mut text = listing(&header, report.rows.iter().chain(total).map(row), &SPARE);
    for line in notes(report) {
        text.push_str(&format!("\n{}", fold(&line, width())));
    }
    text
}

/// Users that have a colour of their own in a plot.
const MOST_COLOURS: usize = 7;

/// Everything that a page shows, asked for view by view.
fn page(client: &mut Client, request: &ReportRequest) -> Result<UsagePage, CliError> {
    let mut by = |by, user: Option<&str>| {
        let user = user.map(str::to_owned).or_else(|| request.user.clone());
        client.report(&ReportRequest { by, user, ..request.clone() })
    };
    let (users, days) = (by(ReportBy::User, None)?, by(ReportBy::Day, None)?);
    let mut stack =
        Stack { days: days.rows.iter().map(|day| day.key.clone()).collect(), users: Vec::new() };
    let mut rest: Vec<f64> = days.rows.iter().map(|day| day.gpu_hours_promised).collect();
    for user in users.rows.iter().take(MOST_COLOURS) {
        let theirs = by(ReportBy::Day, Some(&user.key))?.rows;
        let of_day = |day: &String| {
            theirs.iter().find(|row| row.key == *day).map_or(0.0, |row| row.gpu_hours_promised)
        };
        let hours: Vec<f64> = stack.days.iter().map(of_day).collect();
        rest.iter_mut().zip(&hours).for_each(|(rest, hours)| *rest -= hours);
        stack.users.push(StackUser { name: user.key.clone(), hours });
    }
    if users.rows.len() > MOST_COLOURS {
        let hours = rest.into_iter().map(|hours| hours.max(0.0)).collect();
        stack.users.push(StackUser { name: "others".to_owned(), hours });
    }
    let day = |seconds: f64| {
        LocalTime::of(seconds as i64).map_or(String::new(), |at| at.to_string().replace('T', " "))
    };
    let kind = users.total.energy_kind;
    Ok(UsagePage {
        title: "GPU usage".to_owned(),
        note: notes(&users).join(" "),
        energy: kind.map_or(String::new(), |kind| kind.name().to_owned()),
        from: day(users.since_s),
        until: day(users.until_s),
        gpus: by(ReportBy::Gpu, None)?.rows,
        total: Some(users.total),
        users: users.rows,
        days: days.rows,
        stack,
    })
}

/// Where energy comes from.
const fn told(kind: EnergyKind) -> &'static str {
    match kind {
        EnergyKind::Measured => "measured by the GPUs and shared among their tasks by a model",
        EnergyKind::Modelled => "modelled, at least in part: the GPUs do not tell what they draw",
        EnergyKind::Emulated => "emulated, and shared among the tasks of a GPU by a model",
    }
}

/// What is to be known of the figures.
fn notes(report: &Report) -> Vec<String> {
    let mut notes = vec![
        "GPU hours: promised is the part of each GPU that was booked, used the part of its memory that was held."
            .to_owned(),
    ];
    if let Some(kind) = report.total.energy_kind {
        notes.push(format!("Energy is {}.", told(kind)));
    }
    let unwatched = report.total.gpu_hours_unwatched;
    if unwatched > 0.05 * report.total.gpu_hours_promised && unwatched > 0.1 {
        notes.push(format!(
            "In {unwatched:.2} GPU hours no daemon looked: what was used then is not counted."
        ));
    }
    if report.time_scale != 1.0 {
        let scale = report.time_scale;
        notes.push(format!("Time is scaled by {scale}: hours and waits are those of the tasks."));
    }
    if report.truncated {
        notes.push("Only the newest 100,000 tasks were read: ask for a shorter time.".to_owned());
    }
    notes
}

fn csv(report: &Report) -> String {
    let mut text = "key,tasks,gpu_hours_promised,gpu_hours_used,wait_mean_s,ooms,energy_j,energy_kind,smact_mean\n".to_owned();
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
    for row in &report.rows {
        let key = match row.key.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", row.key.replace('"', "\"\"")),
            false => row.key.clone(),
        };
        let cells = [
            key,
            row.tasks.to_string(),
            number(Some(row.gpu_hours_promised)),
            number(Some(row.gpu_hours_used)),
            number(row.wait_mean_s),
            row.ooms.to_string(),
            number(row.energy_j),
            row.energy_kind.map_or(String::new(), |kind| kind.name().to_owned()),
            number(row.smact_mean),
        ];
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Report {
        let row = |key: &str, tasks| ReportRow {
            key: key.to_owned(),
            tasks,
            gpu_hours_promised: 12.5 * tasks as f64,
            gpu_hours_used: 4.25,
            wait_mean_s: Some(754.0),
            ooms: 2,
            energy_j: Some(9_000_000.0),
            energy_kind: Some(EnergyKind::Emulated),
            smact_mean: Some(0.613),
            gpu_hours_unwatched: 2.0,
        };
        let never = ReportRow { key: "eve, \"the\" second".to_owned(), ..ReportRow::default() };
        Report {
            schema: 1,
            time_scale: 20.0,
            rows: vec![row("ada", 3), never],
            total: row("total", 3),
            ..Report::default()
        }
    }

    #[test]
    fn a_report_is_a_table_with_a_total() {
        insta::assert_snapshot!(render(&sample()));
        assert!(render(&Report::default()).contains("No task ran"));
        let table = listing_width(&render(&sample()));
        assert!(table <= 80, "{table} columns");
    }

    fn listing_width(text: &str) -> usize {
        text.lines().take(4).map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn names_cannot_leave_their_cell() {
        insta::assert_snapshot!(csv(&sample()));
    }
}
