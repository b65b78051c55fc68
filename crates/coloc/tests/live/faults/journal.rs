//! A journal that is damaged, cut, lost or put back: nothing that was acknowledged goes without a word, and no task has
//! the end of another.

use crate::live::home::{Home, coloc, text};
use coloc_api::spec::TaskSpec;
use coloc_api::view::StoryLine;
use coloc_daemon::journal::{Journal, JournalError};
use coloc_daemon::record::Record;
use coloc_model::TaskId;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

const FLEET: [&str; 2] = ["--emulate", "1xA100-40GB"];
const FILES: [&str; 3] = ["journal.db", "journal.db-wal", "journal.mark"];
const PAGE: usize = 4096;

/// Starts a daemon that is expected to refuse.
fn refused(home: &Home) -> String {
    let log = home.path().join("refusal.log");
    let mut daemon = coloc()
        .arg("daemon")
        .args(FLEET)
        .arg("--state")
        .arg(home.path().join("state"))
        .arg("--socket")
        .arg(home.socket())
        .stderr(fs::File::create(&log).expect("a log"))
        .spawn()
        .expect("it runs");
    let began = Instant::now();
    let ended = loop {
        match daemon.try_wait().expect("it is ours") {
            Some(ended) => break ended,
            None if home.socket().exists() || began.elapsed() > Duration::from_secs(60) => {
                daemon.kill().expect("it is ours");
                daemon.wait().expect("it ends");
                panic!("it does not refuse");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let told = fs::read_to_string(&log).expect("a log");
    assert_eq!(ended.code(), Some(1), "{told}");
    told
}

fn state(home: &Home, words: &[&str]) -> Output {
    let mut command = coloc();
    command.arg("state").args(words).arg("--state").arg(home.path().join("state"));
    command.output().expect("it runs")
}

/// Everything that was acknowledged.
type Everything = (bool, Vec<(Record, TaskSpec, Vec<StoryLine>)>);

fn everything(journal: &mut Journal, runs: &Path) -> Result<Everything, JournalError> {
    let saved = journal.load(runs)?;
    let mut tasks = Vec::new();
    for id in 1..saved.next_task {
        let Some(record) = journal.task(TaskId(id))? else { continue };
        let spec = journal.spec(record.spec)?;
        tasks.push((record, spec, journal.story(TaskId(id))?));
    }
    Ok((saved.draining, tasks))
}

/// What a daemon left that was killed, with as much in the database as in its log.
fn killed() -> Home {
    let mut home = Home::new(&FLEET);
    for round in 0..2 {
        for n in 0..8 {
            home.submit(&["--hold", "-J", &format!("held {round} {n}"), "--", "true"]);
        }
        home.submit(&["--hold", "-a", "1-20", "--", "true"]);
        home.run(&["run", "--", "true"]);
        if round == 0 {
            home.run(&["cancel", "2"]);
            home.stop();
            home.boot();
        }
    }
    home.run(&["drain"]);
    home.kill();
    home
}

/// A way to spoil a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Cut,
    Flip,
    Zero,
}

impl Damage {
    fn to(self, bytes: &mut Vec<u8>, place: usize) {
        match self {
            Damage::Cut => bytes.truncate(place),
            Damage::Flip => bytes[place] ^= 1 << (place % 8),
            Damage::Zero => {
                let page = place / PAGE * PAGE;
                let end = bytes.len().min(page + PAGE);
                bytes[page..end].fill(0);
            }
        }
    }
}

/// Places in a file: its header, and then as a random number has it.
fn places(length: usize, count: usize) -> Vec<usize> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 16) as usize
    };
    let header = (0..100).step_by(7);
    header.chain(std::iter::repeat_with(|| next() % length)).take(count).collect()
}

/// Every kind of damage at many places of each file.
fn damages(files: &[Vec<u8>]) -> Vec<(usize, Damage, usize)> {
    let mut damages = Vec::new();
    for (file, count) in [(0, 70), (1, 90), (2, 8)] {
        for damage in [Damage::Cut, Damage::Flip, Damage::Zero] {
            let places = places(files[file].len(), count);
            damages.extend(places.into_iter().map(|place| (file, damage, place)));
        }
    }
    damages
}

#[test]
fn a_journal_damaged_anywhere_is_refused_or_whole() {
    let home = killed();
    let from = home.path().join("state");
    let files: Vec<Vec<u8>> =
        FILES.iter().map(|name| fs::read(from.join(name)).expect("a file")).collect();
    let lay = |place: &Path, files: &[Vec<u8>]| {
        for (name, bytes) in FILES.iter().zip(files) {
            fs::write(place.join(name), bytes).expect("written");
        }
        let _ = fs::remove_file(place.join("journal.db-shm"));
    };
    let open = |place: &Path| {
        let mut journal = Journal::open(&place.join("journal.db"))?;
        everything(&mut journal, &from.join("runs"))
    };
    let place = tempfile::tempdir().expect("a directory");
    lay(place.path(), &files);
    let truth = open(place.path()).expect("it is whole");
    assert!(truth.0 && truth.1.len() == 58, "{} tasks", truth.1.len());
    assert!(files[1].len() > 20 * PAGE, "the log has {} bytes", files[1].len());

    let damages = damages(&files);
    assert!(damages.len() > 500);
    let try_all = |damages: &[(usize, Damage, usize)]| -> usize {
        let (place, mut whole) = (tempfile::tempdir().expect("a directory"), 0);
        for &(file, damage, at) in damages {
            let mut files = files.clone();
            damage.to(&mut files[file], at);
            lay(place.path(), &files);
            let what = format!("{damage:?} at {at} of {}", FILES[file]);
            match open(place.path()) {
                Ok(found) => {
                    assert!(found == truth, "{what}: something was lost without a word");
                    whole += 1;
                }
                Err(error) => {
                    let told = error.to_string();
                    let advised = told.contains("coloc state") || told.contains("use the newer");
                    assert!(advised, "{what}: {told}");
                    let left = FILES.map(|name| fs::read(place.path().join(name)).expect("a file"));
                    assert!(left[..] == files[..], "{what}: a refusal changes nothing");
                }
            }
        }
        whole
    };
    let (one, other) = damages.split_at(damages.len() / 2);
    let whole = std::thread::scope(|scope| {
        let one = scope.spawn(|| try_all(one));
        try_all(other) + one.join().expect("it works")
    });
    let harms = |files: &[Vec<u8>]| {
        lay(place.path(), files);
        open(place.path()).is_err_and(|error| error.to_string().contains("coloc state restore"))
    };
    the_daemon_says_the_same(home, &files, &lay, harms);
    // A page that was written again later, a byte that nothing uses: not every damage harms.
    assert!(whole > 10 && whole < damages.len() / 2, "{whole} of {}", damages.len());
}

/// The real daemon refuses what was damaged, and has everything once that is put back.
fn the_daemon_says_the_same(
    mut home: Home,
    files: &[Vec<u8>],
    lay: &impl Fn(&Path, &[Vec<u8>]),
    harms: impl Fn(&[Vec<u8>]) -> bool,
) {
    let place = home.path().join("state");
    // A daemon that was killed leaves its socket.
    let _ = fs::remove_file(home.socket());
    for (file, damage) in [(1, Damage::Cut), (1, Damage::Flip), (0, Damage::Zero), (2, Damage::Cut)]
    {
        // Not every place matters: a page that was written again later, the unused end of a log.
        let mut damaged = places(files[file].len(), 60).into_iter().map(|at| {
            let mut files = files.to_vec();
            damage.to(&mut files[file], at);
            files
        });
        let damaged = damaged.find(|files| harms(files)).expect("a place that matters");
        lay(&place, &damaged);
        let told = refused(&home);
        assert!(told.contains("coloc state restore"), "{damage:?} in {}: {told}", FILES[file]);
    }
    lay(&place, files);
    home.boot();
    assert_eq!(home.json(&["queue", "--all"])["tasks"].as_array().map(Vec::len), Some(58));
    home.run(&["resume"]);
}

#[test]
fn a_lost_log_is_refused_until_it_is_accepted() {
    let mut home = Home::new(&FLEET);
    home.submit(&["--", "true"]);
    home.wait_for_state(1, "completed");
    home.stop();
    home.boot();
    let lost = home.submit(&["--", "sh", "-c", "exit 7"]);
    home.wait_for_state(lost, "failed");
    home.kill();
    let log = home.path().join("state/journal.db-wal");
    fs::remove_file(&log).expect("there is a log");
    // A daemon that was killed leaves its socket.
    fs::remove_file(home.socket()).expect("a socket");
    let told = refused(&home);
    assert!(told.contains("knows tasks up to 1, and tasks up to 2 were acknowledged"), "{told}");
    assert!(told.contains("coloc state accept") && told.contains("coloc state restore"), "{told}");
    let check = state(&home, &["check"]);
    let said = text(&check.stdout);
    assert_eq!(check.status.code(), Some(3), "{said}");
    assert!(
        said.contains("mark             BROKEN") && said.contains("does not know these tasks: 2"),
        "{said}"
    );
    let accepted = state(&home, &["accept"]);
    assert!(accepted.status.success(), "{}", text(&accepted.stderr));
    assert!(
        text(&accepted.stdout).contains("New tasks begin with id 1000"),
        "{}",
        text(&accepted.stdout)
    );
    home.boot();
    let next = home.submit(&["--", "true"]);
    assert_eq!(next, 1000);
    home.wait_for_state(next, "completed");
    assert_eq!(home.state(1), "completed");
    assert!(!home.try_run(&["show", "2"]).status.success(), "it is not known");
    home.kill();
    home.boot();
    assert_eq!(home.submit(&["--", "true"]), 1001);
}

#[test]
fn a_backup_put_back_gives_no_task_the_end_of_another() {
    let mut home = Home::new(&FLEET);
    let ran = home.path().join("ran");
    let count = format!("echo ran >> {}", ran.display());
    let held = home.submit(&["--hold", "--", "sh", "-c", &count]);
    let file = home.path().join("backup.db");
    let name = file.to_str().expect("text");
    let made = state(&home, &["backup", name, "--json"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let again = state(&home, &["backup", name]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
    // Both run, and the backup knows nothing of it.
    home.run(&["release", &held.to_string()]);
    home.wait_for_state(held, "completed");
    let later = home.submit(&["--", "sh", "-c", &count]);
    home.wait_for_state(later, "completed");
    let busy = state(&home, &["restore", name]);
    assert_eq!(busy.status.code(), Some(1), "{}", text(&busy.stdout));
    assert!(text(&busy.stderr).contains("stop it first"), "{}", text(&busy.stderr));
    home.stop();
    let done = state(&home, &["restore", name]);
    let said = text(&done.stdout);
    assert!(done.status.success() && said.contains("is kept as"), "{said}{}", text(&done.stderr));
    home.boot();
    let times = || fs::read_to_string(&ran).expect("it ran").lines().count();
    assert_eq!((home.state(held).as_str(), times()), ("pending", 2), "{}", home.story(held));
    assert!(home.story(held).contains("attempt 1 was started after this journal ended"));
    let new = home.submit(&["--", "sh", "-c", &count]);
    assert_eq!(new, 1000);
    home.wait_for_state(new, "completed");
    assert_eq!(times(), 3, "it has run");
    home.run(&["release", &held.to_string()]);
    home.wait_for_state(held, "completed");
    assert_eq!((times(), home.show(held)["attempts"].as_u64()), (4, Some(2)));
    let check = state(&home, &["check", "--json"]);
    assert_eq!(check.status.code(), Some(0), "{}", text(&check.stdout));
    for nothing in ["/nowhere", "/"] {
        let wrong = state(&home, &["restore", nothing]);
        assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
    }
    let wrong = state(&home, &["check", "--state", "/nowhere"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
}

#[test]
fn a_drain_is_not_forgotten() {
    let mut home = Home::new(&FLEET);
    let waits = home.submit(&["--begin", "now+1h", "--", "true"]);
    home.run(&["drain"]);
    for _ in 0..2 {
        home.kill();
        home.boot();
        let refused = home.try_run(&["submit", "--", "true"]);
        assert!(text(&refused.stderr).contains("draining"), "{}", text(&refused.stderr));
    }
    let log = fs::read_to_string(home.path().join("daemon.log")).expect("a log");
    assert!(log.contains("draining, as before"), "{log}");
    home.run(&["resume"]);
    home.kill();
    home.boot();
    home.run(&["run", "--", "true"]);
    assert_eq!(home.state(waits), "pending");
}

#[test]
fn a_copy_made_while_the_daemon_works_is_whole_or_refused() {
    let home = Home::new(&FLEET);
    for _ in 0..5 {
        home.submit(&["--hold", "--", "true"]);
    }
    let copy: PathBuf = home.path().join("copy");
    fs::create_dir(&copy).expect("a directory");
    // The mark last, as `cp` may have it: by then there is more to miss.
    for (n, name) in FILES.iter().enumerate() {
        fs::copy(home.path().join("state").join(name), copy.join(name)).expect("copied");
        if n == 1 {
            home.submit(&["--hold", "--", "true"]);
        }
    }
    let error = Journal::open(&copy.join("journal.db")).expect_err("a task is missing");
    assert!(error.to_string().contains("tasks up to 6 were acknowledged"), "{error}");
}

#[test]
fn what_is_no_file_is_no_backup() {
    let place = tempfile::tempdir().expect("a directory");
    let fifo = place.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo runs").success());
    for (wrong, why) in [
        (fifo, "a backup is a regular file"),
        (place.path().to_owned(), "is a directory"),
        (place.path().join("nothing"), "No such file"),
    ] {
        let state = place.path().join("state");
        let restore =
            coloc().args(["state", "restore"]).arg(&wrong).arg("--state").arg(&state).output();
        let restore = restore.expect("it runs");
        assert_eq!(restore.status.code(), Some(2));
        let said = text(&restore.stderr);
        assert!(said.contains(why) && said.contains(&*wrong.display().to_string()), "{said}");
        assert!(!state.exists(), "nothing was begun");
    }
}
