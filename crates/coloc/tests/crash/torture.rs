//! The crash test: clients at work, a daemon that is killed, and what must hold all the same.

use super::checks::{Seen, id_of, is_over};
use super::client::Client;
use super::daemon::Daemon;
use super::http::{Answer, ask};
use super::leftover;
use super::model::OneOf;
use super::program::{Ledger, Program};
use super::random::Random;
use super::report::{Fault, Outcome, Sort, percentile, report};
use super::setup::{Kind, Plan, Setup};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::io::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Clients at work at once.
const CLIENTS: usize = 3;
/// Tasks that only wait, so that every restart has them to read.
const BALLAST: u32 = 1000;
/// A restart may take half a second; ten times that on a machine that is busy with a debug build.
const SLOWEST_START: Duration = Duration::from_secs(5);
/// All tasks end sooner.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What was acknowledged is carried out sooner.
const DEBTS: Duration = Duration::from_secs(20);

#[test]
fn nothing_is_lost_doubled_misjudged_or_left_however_often_the_daemon_dies() {
    let plan = Plan::from_environment();
    // Past the test runner's capture, so that a run that hangs can be repeated too.
    let say = |text: &str| writeln!(std::io::stderr(), "{text}").expect("it is heard");
    say(&format!("crash test: COLOC_CRASH_SEED=0x{:x}", plan.seed));
    let outcomes = run(&plan);
    let told = report(&plan, &outcomes);
    say(&told);
    let faults: usize = outcomes.iter().map(|outcome| outcome.faults.len()).sum();
    assert_eq!(faults, 0, "each is told above");
    let kills: usize = outcomes.iter().map(|outcome| outcome.kills).sum();
    assert!(kills >= plan.kills, "{kills} kills of {}", plan.kills);
}

/// Runs all setups, as many at once as the machine has cores.
fn run(plan: &Plan) -> Vec<Outcome> {
    let mut random = Random::new(plan.seed);
    let (setups, count) = (plan.setups.iter().enumerate(), plan.setups.len());
    let share = |place: usize| plan.kills / count + usize::from(place < plan.kills % count);
    let work: VecDeque<_> =
        setups.map(|(place, setup)| (place, *setup, share(place), random.part())).collect();
    let (work, outcomes) = (Mutex::new(work), Mutex::new(Vec::new()));
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores.min(count) {
            scope.spawn(|| {
                loop {
                    let next = work.lock().expect("no panic with it").pop_front();
                    let Some((place, setup, kills, random)) = next else { return };
                    let outcome = Run::new(setup, plan.kinds.clone(), random).torture(kills);
                    outcomes.lock().expect("no panic with it").push((place, outcome));
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().expect("no panic with it");
    outcomes.sort_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// One setup under test.
struct Run {
    setup: Setup,
    kinds: BTreeSet<Kind>,
    random: Random,
    daemon: Daemon,
    clients: Vec<Client>,
    ballast: Vec<u32>,
    draining: OneOf<bool>,
    faults: Vec<Fault>,
}

impl Run {
    fn new(setup: Setup, kinds: BTreeSet<Kind>, mut random: Random) -> Self {
        let daemon = Daemon::new(setup);
        let client = |number| Client::new(number, daemon.path(), setup, &kinds, random.part());
        let clients = (0..CLIENTS).map(client).collect();
        let (ballast, draining) = (Vec::new(), OneOf::surely(false));
        Run { setup, kinds, random, daemon, clients, ballast, draining, faults: Vec::new() }
    }

    fn torture(mut self, kills: usize) -> Outcome {
        self.daemon.start();
        self.load();
        while self.daemon.kills < kills {
            self.round();
        }
        self.wait_until_idle();
        self.outcome()
    }

    /// Submits what only waits.
    fn load(&mut self) {
        let status = self.daemon.must("GET /v1/status", None);
        let groups = status["processes"].as_str().is_some_and(|said| said.starts_with("cgroup:"));
        assert!(self.setup.groups || !groups, "{status}: these tasks were to have no groups");
        let indices: Vec<u32> = (1..=BALLAST).collect();
        let spec = json!({"name": "ballast", "command": ["false"], "directory": "/", "gpus": 1});
        let body = json!({"spec": spec, "array": {"indices": indices}, "held": true});
        let said = self.daemon.must("POST /v1/tasks", Some(&body));
        self.ballast = said["ids"].as_array().expect("ids").iter().map(id).collect();
    }

    /// Clients work, the daemon is killed and started again, and everything is looked at.
    fn round(&mut self) {
        let drain = self.kinds.contains(&Kind::Drain) && self.random.percent(20);
        let pause = self.random.millis(0, 500);
        let (daemon, clients) = (&mut self.daemon, &mut self.clients);
        let mut drained = None;
        std::thread::scope(|scope| {
            for client in clients.iter_mut() {
                scope.spawn(|| client.work());
            }
            if drain {
                let socket = daemon.socket();
                let ask = move || ask(&socket, "POST /v1/drain", Some(&json!(true)));
                let asked = scope.spawn(ask);
                std::thread::sleep(pause / 8);
                daemon.kill();
                drained = asked.join().ok();
            } else {
                std::thread::sleep(pause);
                daemon.kill();
            }
        });
        match drained {
            Some(Answer::Done(_)) => self.draining = OneOf::surely(true),
            Some(Answer::Unanswered) => self.draining.or(true),
            _ => {}
        }
        self.daemon.start_again(&mut self.random);
        self.look();
        self.go_on();
    }

    /// Checks everything that can be checked now.
    fn look(&mut self) {
        let listed = self.daemon.list();
        for place in 0..self.clients.len() {
            let wrong = self.clients[place].find_out(&listed);
            let faults = wrong.into_iter().map(|what| Fault::general(Sort::Doubled, what));
            self.faults.extend(faults);
        }
        let (listed, ledger) = self.now();
        let seen = Seen::new(&listed, &ledger, self.setup);
        let mut found = Vec::new();
        for client in &mut self.clients {
            found.extend(seen.check(&mut client.tasks));
        }
        found.extend(seen.strangers(self.clients.iter().flat_map(|client| &client.tasks)));
        let waits = |task: &&Value| task["name"] == "ballast" && task["state"] == "pending";
        let waiting = listed.iter().filter(waits).count();
        if waiting != self.ballast.len() {
            let what = format!("{waiting} of {} held tasks wait", self.ballast.len());
            found.push(Fault::general(Sort::Lost, what));
        }
        let draining = self.daemon.must("GET /v1/status", None)["draining"] == true;
        if !self.draining.turns_out(&draining) {
            let what = format!("draining is {draining}, and that was not the last word");
            found.push(Fault::general(Sort::Lost, what));
        }
        self.note(found);
    }

    /// Tasks and what they wrote. The ledger is read first and last: what was written in between is of no use.
    fn now(&self) -> (Vec<Value>, Ledger) {
        loop {
            let before = Ledger::read(self.daemon.path());
            let listed = self.daemon.list();
            let after = Ledger::read(self.daemon.path());
            if before.tasks == after.tasks {
                return (listed, after);
            }
        }
    }

    /// Each fault once, with its story.
    fn note(&mut self, found: Vec<Fault>) {
        for mut fault in found {
            let known = self
                .faults
                .iter()
                .any(|old| (old.sort, old.task) == (fault.sort, fault.task) && old.task.is_some());
            if known {
                continue;
            }
            if let Some(task) = fault.task {
                let tasks = self.clients.iter().flat_map(|client| &client.tasks);
                let model = tasks.into_iter().find(|known| known.id == task);
                let wrote = Ledger::read(self.daemon.path()).tasks.remove(&task);
                let story = self.daemon.story(task);
                fault.story = format!("{story}    known: {model:?}\n    its programs: {wrote:?}\n");
            }
            self.faults.push(fault);
        }
    }

    /// A daemon that drains starts nothing; then it goes on.
    fn go_on(&mut self) {
        if self.draining.is_surely(&false) {
            return;
        }
        let launched = |listed: &[Value]| -> u64 {
            listed.iter().filter_map(|task| task["attempts"].as_u64()).sum()
        };
        let before = launched(&self.daemon.list());
        std::thread::sleep(Duration::from_millis(200));
        let after = launched(&self.daemon.list());
        if after > before {
            let what = format!("{} attempts began while it drained", after - before);
            self.note(vec![Fault::general(Sort::Wrong, what)]);
        }
        self.daemon.must("POST /v1/drain", Some(&json!(false)));
        self.draining = OneOf::surely(false);
    }

    /// Waits until nothing is owed and everything has ended.
    fn wait_until_idle(&mut self) {
        self.clients.iter_mut().for_each(Client::release_all);
        self.pay_debts();
        Program::let_go(self.daemon.path());
        let began = Instant::now();
        let alive = loop {
            let listed = self.daemon.list();
            let alive = listed.iter().filter(|task| !is_over(task) && task["name"] != "ballast");
            let alive: Vec<u32> = alive.map(id_of).collect();
            if alive.is_empty() || began.elapsed() > TIMEOUT {
                break alive;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let stuck = alive.into_iter().map(|id| Fault::of(Sort::Wrong, id, "does not end"));
        self.note(stuck.collect());
        self.look();
        let body = json!({"ids": self.ballast, "change": "cancel"});
        let done = self.daemon.must("POST /v1/tasks/change", Some(&body));
        if done["done"].as_array().map(Vec::len) != Some(self.ballast.len()) {
            self.note(vec![Fault::general(Sort::Lost, "held tasks cannot be cancelled".into())]);
        }
    }

    fn pay_debts(&mut self) {
        let began = Instant::now();
        loop {
            let (listed, ledger) = self.now();
            let seen = Seen::new(&listed, &ledger, self.setup);
            let owed = seen.owed(self.clients.iter().flat_map(|client| &client.tasks));
            if owed.is_empty() {
                return;
            }
            if began.elapsed() > DEBTS {
                return self.note(owed);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the daemon, and says what came of it.
    fn outcome(mut self) -> Outcome {
        let listed = self.daemon.list();
        let ledger = Ledger::read(self.daemon.path());
        if !self.daemon.stop() {
            self.faults.push(Fault::general(Sort::Left, "the daemon does not end".into()));
        }
        let left = leftover::find(self.daemon.path(), &ledger).into_iter();
        self.faults.extend(left.map(|what| Fault::general(Sort::Left, what)));
        let refused = self.daemon.refusals.iter();
        self.faults.extend(refused.map(|said| Fault::general(Sort::Start, said.clone())));
        let slowest = percentile(&self.daemon.starts, 1.0);
        if slowest > SLOWEST_START {
            self.faults.push(Fault::general(Sort::Start, format!("a start took {slowest:?}")));
        }
        let sum = |count: fn(&Client) -> usize| self.clients.iter().map(count).sum();
        Outcome {
            name: self.setup.name,
            groups: self.setup.groups,
            kills: self.daemon.kills,
            tasks: sum(|client| client.tasks.len()),
            attempts: ledger.tasks.keys().map(|task| ledger.starts(*task)).sum(),
            preemptions: listed.iter().filter_map(|task| task["preemptions"].as_u64()).sum(),
            acknowledged: sum(|client| client.acknowledged),
            unanswered: sum(|client| client.unanswered),
            starts: self.daemon.starts.clone(),
            faults: self.faults,
            log: self.daemon.log(),
        }
    }
}

fn id(value: &Value) -> u32 {
    value.as_u64().expect("a number") as u32
}
