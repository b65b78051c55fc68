//! What can happen.

use super::*;
use coloc_api::request::{ArrayRequest, GpuName, GpuService, SignalRequest};
use coloc_api::spec::{Dependency, DependencyKind, OnOom, TaskUpdate, Warning};

impl Run {
    /// One thing happens.
    pub(super) fn happens(&mut self) {
        match self.random.below(100) {
            0..20 => self.submit(),
            20..38 => self.change(),
            38..52 => self.end_one(),
            52..62 => self.begin_some(),
            62..69 => self.stopped_ones_end(),
            69..76 => self.look(),
            76..79 => self.gpu_trouble(),
            79..83 => self.fail_a_launch(),
            83..86 => self.disk_trouble(),
            86..91 => {
                let points = self.random.below(24) as u32;
                self.kit.disk.crash_in(Some(points));
                self.did(format!("a crash at point {points} from now"));
            }
            91..93 => self.ask_something(),
            93..94 => self.administer(),
            _ => {
                let span = Duration::from_millis(1 << self.random.below(18));
                self.did(format!("{span:?} pass"));
                self.pass(span);
            }
        }
    }

    fn did(&mut self, what: String) {
        if std::env::var_os("COLOC_SIMULATION_SEED").is_some() {
            eprintln!("step {}: {what}", self.step);
        }
        self.last = what;
    }

    /// Asks for something, whatever the answer is.
    fn tell<T: 'static>(&mut self, what: String, command: impl FnOnce(Reply<T>) -> Command) {
        self.did(what);
        self.kit.tell(command);
    }

    /// One of the tasks that were ever acknowledged.
    fn some_task(&mut self) -> Option<TaskId> {
        let all: Vec<TaskId> = self.acknowledged.iter().copied().collect();
        // Most of the time, one of the newest.
        let recent = all.len().saturating_sub(12);
        let recent = if self.random.one_in(5) { &all[..] } else { &all[recent..] };
        self.random.of(recent)
    }

    fn spec(&mut self) -> TaskSpec {
        let random = &mut self.random;
        let mut spec = train();
        spec.command.push(format!("--model={}", random.below(4)).as_str().into());
        spec.name = format!("train-{}", random.below(3));
        spec.gpus = if random.one_in(5) { 2.min(self.kit.fleet.len() as u32) } else { 1 };
        spec.gpu_memory = (!random.one_in(3)).then(|| gib(2 + random.below(20)));
        spec.exclusive = random.one_in(6);
        spec.time_limit = random.one_in(3).then(|| Millis::from_secs(1 + random.below(120)));
        if spec.time_limit.is_some_and(|limit| limit > Millis::from_secs(9)) && random.one_in(2) {
            spec.warning = Some(Warning { signal: 10, before: Millis::from_secs(5) });
        }
        spec.retries = random.below(3) as u32;
        spec.priority = random.below(3) as i32 - 1;
        let ways = [OnOom::Policy, OnOom::Grow, OnOom::Exclusive, OnOom::Fail];
        spec.on_oom = random.of(&ways).unwrap_or_default();
        spec.singleton = random.one_in(12);
        if random.one_in(12) {
            let now = VirtualTime::BEGAN.0 + self.kit.time.passed().as_millis() as u64;
            spec.begin_ms = Some(now + random.below(60_000));
        }
        if random.one_in(5)
            && let Some(task) = self.some_task()
        {
            spec.after.push(self.dependency(task));
        }
        spec
    }

    fn dependency(&mut self, task: TaskId) -> Dependency {
        use DependencyKind::{After, AfterAny, AfterCorr, AfterNotOk, AfterOk};
        let kinds = [After, AfterAny, AfterOk, AfterNotOk, AfterCorr];
        Dependency::new(task, self.random.of(&kinds).unwrap_or(AfterOk))
    }

    fn submit(&mut self) {
        let spec = self.spec();
        let random = &mut self.random;
        let array = random.one_in(4).then(|| ArrayRequest {
            indices: (0..1 + random.below(5) as u32).collect(),
            at_once: random.one_in(2).then(|| 1 + random.below(2) as u32),
        });
        let key = random.one_in(5).then(|| format!("key-{}", random.below(6)));
        let held = random.one_in(8);
        let submission = Submission { array, key, held, ..Submission::of(spec) };
        self.did(format!("{submission:?}").chars().take(200).collect());
        let answer = self.kit.ask(|reply| Command::Submit(Box::new(submission), reply));
        self.asked.push(Asked::Submission(answer));
    }

    fn change(&mut self) {
        let Some(task) = self.some_task() else { return self.submit() };
        let mut tasks = vec![task];
        if self.random.one_in(6) {
            tasks.extend(self.some_task().filter(|other| *other != task));
        }
        let change = match self.random.below(10) {
            0..2 => Change::Cancel,
            2..4 => Change::Hold,
            4..6 => Change::Release,
            6..7 => Change::Requeue,
            7..8 => Change::Signal(SignalRequest { signal: 10, full: self.random.one_in(2) }),
            _ => Change::Update(self.update()),
        };
        self.did(format!("{change:?} of {tasks:?}").chars().take(200).collect());
        let answer = self.kit.ask(|reply| Command::Change(tasks, change.clone(), reply));
        self.asked.push(Asked::Change(answer, change));
    }

    fn update(&mut self) -> TaskUpdate {
        let mut update = TaskUpdate::default();
        let random = &mut self.random;
        match random.below(8) {
            0 => update.gpu_memory = Some(gib(2 + random.below(20))),
            1 => update.priority = Some(random.below(5) as i32 - 2),
            2 => update.gpus = Some(1 + random.below(2) as u32),
            3 => update.exclusive = Some(random.one_in(2)),
            4 => update.time_limit = Some(Millis::from_secs(random.below(100))),
            5 => update.name = Some(format!("train-{}", random.below(3))),
            6 => update.retries = Some(random.below(3) as u32),
            _ => {
                let task = self.some_task();
                update.after = Some(task.map(|task| self.dependency(task)).into_iter().collect());
            }
        }
        update
    }

    fn end_one(&mut self) {
        let begun = self.kit.machine.alive().into_iter().filter(|(_, found)| found.has_begun());
        let begun: Vec<(TaskId, u32)> = begun.map(|(name, _)| name).collect();
        let Some((task, attempt)) = self.random.of(&begun) else { return self.begin_some() };
        let end = match self.random.below(10) {
            0..4 => completed(),
            4..6 => failed(),
            6..8 => {
                let held = gib(1 + self.random.below(20));
                out_of_memory(held, gib(1 + self.random.below(10)))
            }
            8 => End::Ended(
                Verdict::HostOutOfMemory(None),
                Some(crate::record::Exit::Signal(9)),
                None,
            ),
            _ => End::Vanished,
        };
        self.did(format!("attempt {attempt} of task {task}: {end:?}"));
        self.kit.machine.end(task, attempt, end);
    }

    fn begin_some(&mut self) {
        for ((task, attempt), found) in self.kit.machine.open() {
            if found && self.random.one_in(20) {
                let why = Some("simulated: the machine has no processes left".to_owned());
                self.did(format!("attempt {attempt} of task {task} does not begin"));
                self.kit.machine.end(task, attempt, End::NeverBegan(why));
            } else if self.random.below(4) > 0 {
                self.did(format!("attempt {attempt} of task {task} begins"));
                self.kit.machine.begin(task, attempt);
            }
        }
    }

    fn stopped_ones_end(&mut self) {
        for ((task, attempt), found) in self.kit.machine.alive() {
            if found.stopping && !self.random.one_in(3) {
                let end = if self.random.one_in(8) { completed() } else { stopped() };
                self.did(format!("attempt {attempt} of task {task} ends, as it was asked to"));
                self.kit.machine.end(task, attempt, end);
            }
        }
    }

    fn look(&mut self) {
        self.kit.used = gib(1 + self.random.below(18));
        let sighting = self.kit.sighting();
        self.did("a look at the GPUs".to_owned());
        self.kit.inputs.push(Input::Seen(Box::new(sighting)));
    }

    fn gpu_trouble(&mut self) {
        let gpu = GpuId(self.random.below(self.kit.fleet.len() as u64) as u32);
        if self.random.one_in(4) {
            self.did(format!("a critical error of GPU {gpu}"));
            return self.kit.machine.report(gpu, 79);
        }
        let lost = !self.kit.machine.is_lost(gpu);
        self.kit.machine.set_gone(gpu, lost);
        let sighting = Sighting { there: vec![(gpu, !lost)], ..self.kit.sighting() };
        self.did(format!("GPU {gpu} is lost: {lost}"));
        self.kit.inputs.push(Input::Seen(Box::new(sighting)));
    }

    fn fail_a_launch(&mut self) {
        use Blame::{Account, Machine, Moment, Number, Setup, Task};
        let blame = self.random.of(&[Machine, Moment, Setup, Number, Account, Task]);
        let blame = blame.unwrap_or(Machine);
        self.did(format!("the next launch fails: {blame:?}"));
        self.kit.machine.fail_a_launch(blame);
    }

    fn disk_trouble(&mut self) {
        match self.random.below(4) {
            0 => {
                let unclear = self.random.one_in(2);
                self.did(format!("the machine cannot tell how attempts are: {unclear}"));
                self.kit.machine.set_unclear(unclear);
            }
            1 | 2 if !self.kit.disk.is_full() => {
                self.did("the disk is full".to_owned());
                self.counts.full_disks += 1;
                self.kit.disk.fill(true);
            }
            _ => {
                self.did("the disk has room".to_owned());
                self.kit.disk.fill(false);
            }
        }
    }

    fn ask_something(&mut self) {
        let task = self.some_task().unwrap_or(TaskId(1));
        match self.random.below(6) {
            0 => self.tell("a list".to_owned(), Command::List),
            1 => self.tell(format!("show {task}"), |reply| Command::Show(task, reply)),
            2 => self.tell(format!("why {task}"), |reply| Command::Why(task, reply)),
            3 => self.tell("a snapshot".to_owned(), Command::Snapshot),
            4 => self.tell("the GPUs".to_owned(), Command::Gpus),
            _ => self.tell("the status".to_owned(), Command::Status),
        }
    }

    fn administer(&mut self) {
        let drained = self.random.one_in(2);
        match self.random.below(3) {
            0 => self.tell(format!("drain: {drained}"), |reply| Command::Drain(drained, reply)),
            1 => {
                let gpu = self.random.below(self.kit.fleet.len() as u64) as u32;
                let request = GpuService { gpus: vec![GpuName::Index(gpu)], drained, reason: None };
                let what = format!("drain GPU {gpu}: {drained}");
                self.tell(what, |reply| Command::ServeGpus(request, reply));
            }
            _ => {
                let policy = self.random.policy_like(&self.kit.settings.policy);
                // A restart has what was configured, too.
                self.kit.settings.policy = policy;
                let settings = Box::new(self.kit.settings.clone());
                self.tell("other settings".to_owned(), |reply| {
                    Command::Reconfigure(settings, reply)
                });
            }
        }
    }
}
