//! Opens the pages in a real browser: what is not drawn there is not there.

use super::{
    ComparePage, Stack, StackUser, UsagePage, collocate_page, compare_page, sample, usage_page,
};
use coloc_api::report::ReportRow;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A page is drawn in a second; a browser that takes this long hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The page after its scripts ran, or `None` without a browser on this machine.
fn rendered(html: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, html).unwrap();
    let Some(browser) = browser() else {
        // Written past the test runner's capture, which would swallow it in a test that passes.
        let words = "SKIPPED: no Chromium on this machine, so the page was not drawn or checked";
        writeln!(std::io::stderr(), "{words}").unwrap();
        return None;
    };
    let dom = dump(browser, folder.path(), &file);
    assert!(!dom.contains("data-error="), "the page reported: {}", attribute(&dom, "data-error"));
    assert!(dom.contains(r#"data-rendered="ok""#), "the page's script did not reach its end");
    Some(dom)
}

fn browser() -> Option<&'static str> {
    let answers = |name: &&str| {
        let mut ask = Command::new(name);
        ask.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        ask.status().is_ok_and(|status| status.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(answers)
}

fn dump(browser: &str, folder: &Path, file: &Path) -> String {
    let output = folder.join("dom.html");
    let mut running = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--window-size=1280,2000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(File::create(&output).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while running.try_wait().unwrap().is_none() {
        if begin.elapsed() > TIMEOUT {
            running.kill().unwrap();
            panic!("{browser} did not finish within {TIMEOUT:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    std::fs::read_to_string(output).unwrap()
}

/// The first value of an attribute, as the browser wrote it.
fn attribute<'a>(dom: &'a str, name: &str) -> &'a str {
    dom.split_once(&format!("{name}=\""))
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("", |(value, _)| value)
}

fn count(dom: &str, part: &str) -> usize {
    dom.matches(part).count()
}

/// Opening tag of every Gantt chart.
fn gantts(dom: &str) -> Vec<&str> {
    let tags = dom.split("<svg ").skip(1).filter_map(|rest| rest.split_once('>'));
    tags.map(|(tag, _)| tag).filter(|tag| tag.contains(r#"data-chart="gantt""#)).collect()
}

#[test]
fn a_comparison_draws_every_bar_curve_and_row() {
    let mut page = sample::compare(40, 4, &sample::TOYS);
    page.runs[0].tasks[0].attempts[0].gpus = vec![0, 1];
    let Some(dom) = rendered(&compare_page(&page)) else { return };
    let drawn = gantts(&dom);
    assert_eq!(drawn.len(), 3);
    for (tag, run) in drawn.iter().zip(&page.runs) {
        let attempts = run.tasks.iter().flat_map(|task| &task.attempts);
        let bars: usize = attempts.map(|attempt| attempt.gpus.len()).sum();
        assert_eq!(attribute(tag, "data-bars"), bars.to_string(), "{tag}");
        assert_eq!(attribute(tag, "data-ooms"), run.summary.oom_count.to_string());
        assert_eq!(attribute(tag, "data-rows"), "4");
    }
    assert_eq!(count(&dom, "class=\"oom-hatch\""), 1, "attempts out of memory are hatched");
    for curve in ["mean-sm", "mean-memory_mib", "mean-power_w", "jct", "waits"] {
        assert_eq!(count(&dom, &format!("data-chart=\"{curve}\"")), 1, "{curve}");
    }
    assert_eq!(count(&dom, "class=\"line run-"), 3 * 4, "a line a run: three curves and the JCT");
    assert_eq!(count(&dom, "<tr data-run="), 3);
    assert!(dom.contains("class=\"best\""));
    assert!(dom.contains("Predicted by the model, not measured"));
}

#[test]
fn keys_walk_through_tasks_zoom_and_switch_the_curves() {
    let hands = r#"<script>
        const gantt = () => document.querySelector("[data-chart=gantt]");
        const press = (key) => gantt().dispatchEvent(new KeyboardEvent("keydown", { key }));
        press("ArrowRight");
        document.body.dataset.said = document.getElementById("announce").textContent;
        document.body.dataset.marked = document.querySelectorAll(".chosen").length;
        press("+"); press("+"); press("+");
        document.body.dataset.zoomed = gantt().dataset.bars;
        press("0");
        document.body.dataset.all = gantt().dataset.bars;
        document.getElementById("curves-each").click();
        document.querySelector(".runs button").click();
    </script></body>"#;
    let html = compare_page(&sample::compare(40, 4, &sample::TOYS));
    let Some(dom) = rendered(&html.replace("</body>", hands)) else { return };
    assert!(attribute(&dom, "data-said").contains("#0, class light, waited 0"), "what was told");
    assert_eq!(attribute(&dom, "data-marked"), "3", "the task is marked under every policy");
    assert!(attribute(&dom, "data-zoomed").parse::<usize>().unwrap() < 20);
    assert_eq!(attribute(&dom, "data-all"), "40");
    assert_eq!(count(&dom, "data-chart=\"gpus-sm\""), 3, "a chart a run");
    let (_, body) = dom.split_once("<main").unwrap();
    assert_eq!(count(body, "aria-pressed=\"false\""), 2, "hidden here and in the distribution");
}

#[test]
fn a_large_fleet_says_what_it_leaves_out() {
    let Some(dom) = rendered(&compare_page(&sample::compare(200, 24, &sample::TOYS[..2]))) else {
        return;
    };
    assert!(dom.contains("The first 16 of 24 GPUs are drawn"));
    assert_eq!(attribute(gantts(&dom)[0], "data-rows"), "16");
}

#[test]
fn ten_thousand_tasks_stay_a_handful_of_elements() {
    let html = compare_page(&sample::compare(10_000, 8, &sample::TOYS[..2]));
    let Some(dom) = rendered(&html) else { return };
    assert_eq!(attribute(gantts(&dom)[0], "data-bars"), "10000");
    let drawn = dom.split_once("</main>").unwrap().0;
    assert!(count(drawn, "<") < 6_000, "{} tags", count(drawn, "<"));
    assert!(drawn.len() < 3_000_000, "{} bytes drawn", drawn.len());
}

#[test]
fn odd_comparisons_are_drawn_too() {
    let nothing = ComparePage::default();
    let no_tasks = sample::compare(0, 1, &sample::TOYS[..1]);
    let all_failed = sample::one_run_failed();
    for (page, words) in [
        (nothing, "no run to compare"),
        (no_tasks, "No task was started"),
        (all_failed, "not ranked"),
    ] {
        let Some(dom) = rendered(&compare_page(&page)) else { return };
        assert!(dom.contains(words), "{words}");
        let drawn = dom.split_once("</main>").unwrap().0;
        assert!(!drawn.contains("NaN") && !drawn.contains("undefined"), "{words}");
        assert!(!drawn.contains("Infinity"), "{words}");
    }
}

#[test]
fn names_stay_text() {
    let page = sample::hostile_names();
    let attack = page.title.as_str();
    let mut study = sample::collocate();
    study.title = attack.into();
    study.experiments[0].workload = attack.into();
    study.experiments[0].layout = attack.into();
    study.experiments[0].share = attack.into();
    for html in [compare_page(&page), collocate_page(&study)] {
        let Some(dom) = rendered(&html) else { return };
        assert!(!dom.contains("<img"));
    }
}

#[test]
fn a_study_draws_its_charts_with_the_published_points() {
    let Some(dom) = rendered(&collocate_page(&sample::collocate())) else { return };
    for chart in ["throughput", "slowdown", "memory", "smact", "energy"] {
        assert_eq!(count(&dom, &format!("data-chart=\"{chart}\"")), 3, "{chart} of each workload");
    }
    assert_eq!(count(&dom, "data-chart=\"published\""), 1);
    assert_eq!(count(&dom, "<tr data-experiment"), 33);
    assert!(dom.contains("does not fit"));
    let Some(dom) = rendered(&collocate_page(&Default::default())) else { return };
    assert!(dom.contains("no experiment"));
}

fn usage(users: &[&str]) -> UsagePage {
    let row = |key: &str| ReportRow {
        key: key.to_owned(),
        tasks: 3,
        gpu_hours_promised: 12.5,
        gpu_hours_used: 4.0,
        wait_mean_s: Some(90.0),
        ooms: 1,
        energy_j: Some(3.6e6),
        smact_mean: Some(0.6),
        ..ReportRow::default()
    };
    let days = ["2027-01-20", "2027-01-21"];
    let stacked = |name: &&str| StackUser { name: (*name).to_owned(), hours: vec![5.0, 7.5] };
    UsagePage {
        title: "GPU usage".into(),
        note: "Emulated, not measured".into(),
        users: users.iter().map(|user| row(user)).collect(),
        days: days.map(row).to_vec(),
        gpus: vec![row("0"), ReportRow { key: "1".into(), ..ReportRow::default() }],
        total: Some(row("total")),
        stack: Stack {
            days: days.map(String::from).to_vec(),
            users: users.iter().map(stacked).collect(),
        },
        ..UsagePage::default()
    }
}

#[test]
fn a_report_draws_every_figure_by_user_day_and_gpu() {
    let Some(dom) = rendered(&usage_page(&usage(&["ada", "bob"]))) else { return };
    for side in ["users", "days", "gpus"] {
        for chart in ["hours", "wait", "ooms", "energy", "smact"] {
            assert_eq!(count(&dom, &format!("data-chart=\"{chart}-{side}\"")), 1, "{chart} {side}");
        }
        assert_eq!(count(&dom, &format!("data-row=\"{side}\"")), 2, "{side}");
    }
    assert_eq!(count(&dom, "data-chart=\"hours-by-user-and-day\""), 1);
    assert!(dom.contains("Emulated, not measured"));
    let drawn = dom.split_once("</main>").unwrap().0;
    assert!(!drawn.contains("NaN") && !drawn.contains("undefined") && !drawn.contains("Infinity"));
    let attack = "<img src=x onerror=document.title='owned'>";
    let Some(dom) = rendered(&usage_page(&usage(&[attack]))) else { return };
    assert!(!dom.contains("<img"), "names stay text");
    let Some(dom) = rendered(&usage_page(&UsagePage::default())) else { return };
    assert!(dom.contains("No task ran in that time"));
}
