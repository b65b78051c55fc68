//! Eligibility as it is kept, event by event, against the rules applied to every waiting task; and what an event costs.

mod examples;

use coloc_core::eligibility::{
    ArrayMember, Conditions, Dependency, DependencyKind, Eligibility, End, Facts, Ineligible,
    Retry, Tasks, retry_pause,
};
use coloc_model::{Millis, TaskId, Time, UserId};
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Waiting,
    Eligible,
    Ended,
}

#[derive(Clone, Debug)]
struct Known {
    conditions: Conditions,
    facts: Facts,
    state: State,
    user: UserId,
    name: String,
}

#[derive(Default)]
struct Model {
    now: Time,
    tasks: BTreeMap<TaskId, Known>,
    eligibility: Eligibility,
    /// How often a task was asked for what it waits for.
    looks: Cell<usize>,
}

/// What the module is told of the model.
struct Told<'a>(&'a BTreeMap<TaskId, Known>, &'a Cell<usize>);

impl Tasks for Told<'_> {
    fn conditions(&self, task: TaskId) -> Option<Conditions> {
        self.1.set(self.1.get() + 1);
        let known = self.0.get(&task).filter(|known| known.state == State::Waiting)?;
        Some(known.conditions.clone())
    }

    fn facts(&self, task: TaskId) -> Option<Facts> {
        self.0.get(&task).map(|known| known.facts)
    }

    fn last_unended(&self, tasks: Range<TaskId>) -> Option<TaskId> {
        let mut all = self.0.range(tasks).rev();
        all.find(|(_, known)| known.state != State::Ended).map(|(id, _)| *id)
    }
}

impl Model {
    fn next_id(&self) -> TaskId {
        TaskId(self.tasks.keys().next_back().map_or(1, |last| last.0 + 1))
    }

    fn submit(&mut self, conditions: Conditions, user: UserId, name: &str) -> TaskId {
        let id = self.next_id();
        let facts = Facts { array: conditions.array, ..Facts::default() };
        let name = name.to_owned();
        self.eligibility.named(id, user, &name);
        self.tasks.insert(id, Known { conditions, facts, state: State::Waiting, user, name });
        self.eligibility.look_at(id);
        id
    }

    fn submit_array(&mut self, of: &Conditions, many: u32, at_once: Option<u32>, name: &str) {
        let array = self.next_id();
        for index in 0..many {
            let member = ArrayMember { array, index: 2 * index, at_once };
            self.submit(Conditions { array: Some(member), ..of.clone() }, UserId(0), name);
        }
    }

    fn end(&mut self, task: TaskId, ok: bool) {
        let now = self.now;
        let Some(known) = self.tasks.get_mut(&task) else { return };
        known.state = State::Ended;
        known.facts.end = Some(End { at: now, ok });
        let array = known.facts.array.map(|member| member.array);
        self.eligibility.ended(task, array, known.user, &known.name);
    }

    fn start(&mut self, task: TaskId) {
        let now = self.now;
        if let Some(known) = self.tasks.get_mut(&task) {
            known.facts.first_started.get_or_insert(now);
            self.eligibility.started(task);
        }
    }

    /// A task that the scheduler had comes back, after a failure or by request.
    fn again(&mut self, task: TaskId, failures: u32) {
        let at = self.now + retry_pause(failures);
        let Some(known) = self.tasks.get_mut(&task) else { return };
        known.state = State::Waiting;
        known.conditions.retry = (failures > 0).then_some(Retry { at, failures });
        self.eligibility.left(task, known.facts.array.map(|member| member.array));
        self.eligibility.look_at(task);
    }

    fn of_state(&self, state: State, number: usize) -> Option<TaskId> {
        let all: Vec<TaskId> = self.ids(state).collect();
        (!all.is_empty()).then(|| all[number % all.len()])
    }

    fn ids(&self, state: State) -> impl Iterator<Item = TaskId> + '_ {
        self.tasks.iter().filter(move |(_, known)| known.state == state).map(|(id, _)| *id)
    }

    /// Looks at whatever has to be looked at, as a daemon does.
    fn run_until_idle(&mut self, checked: bool) {
        loop {
            let told = Told(&self.tasks, &self.looks);
            let Some((task, verdict)) = self.eligibility.next(self.now, &told) else { return };
            if checked {
                assert_eq!(verdict.is_ok(), self.may_come(task), "task {task}: {verdict:?}");
            }
            match verdict {
                Ok(()) => {
                    if let Some(known) = self.tasks.get_mut(&task) {
                        known.state = State::Eligible;
                    }
                }
                Err(Ineligible::DependencyNeverSatisfied(_)) => self.end(task, false),
                Err(_) => {}
            }
        }
    }

    /// The rules, as plainly as they can be said.
    fn may_come(&self, task: TaskId) -> bool {
        let known = &self.tasks[&task];
        let Conditions { held, begin, retry, after, any, singleton, array } = &known.conditions;
        let mut met = after.iter().map(|other| self.is_met(other, array.map(|m| m.index)));
        let first = array.map_or(task, |member| member.array);
        let namesake = |(user, name): &(UserId, String)| {
            let mut before = self.tasks.range(..first).map(|(_, other)| other);
            before.any(|other| {
                other.state != State::Ended && other.user == *user && other.name == *name
            })
        };
        let is_full = |member: &ArrayMember| {
            let of_it = self.tasks.values().filter(|other| other.state == State::Eligible);
            let of_it = of_it
                .filter(|other| other.facts.array.is_some_and(|other| other.array == member.array));
            member.at_once.is_some_and(|most| of_it.count() >= most as usize)
        };
        !held
            && begin.is_none_or(|begin| begin <= self.now)
            && retry.is_none_or(|retry| retry.at <= self.now)
            && (after.is_empty() || if *any { met.any(|met| met) } else { met.all(|met| met) })
            && !singleton.as_ref().is_some_and(namesake)
            && !array.as_ref().is_some_and(is_full)
    }

    fn is_met(&self, dependency: &Dependency, index: Option<u32>) -> bool {
        let Dependency { task, kind } = *dependency;
        let array: Vec<(&TaskId, &Known)> = self
            .tasks
            .iter()
            .filter(|(_, known)| known.facts.array.is_some_and(|member| member.array == task))
            .collect();
        let with_index = |index: u32| {
            let has_it = |known: &Known| known.facts.array.is_some_and(|m| m.index == index);
            array.iter().find(|(_, known)| has_it(known)).map(|(_, known)| known.facts)
        };
        let own = self.tasks[&task].facts;
        let ends: Vec<Option<End>> = match (kind, index) {
            (DependencyKind::After(delay), _) => {
                let since = own.first_started.or(own.end.map(|end| end.at));
                return since.is_some_and(|since| since + delay <= self.now);
            }
            (DependencyKind::AfterCorr, index) => {
                vec![index.and_then(with_index).unwrap_or(own).end]
            }
            _ if !array.is_empty() => array.iter().map(|(_, known)| known.facts.end).collect(),
            _ => vec![own.end],
        };
        let Some(ends) = ends.into_iter().collect::<Option<Vec<End>>>() else { return false };
        let ok = ends.iter().all(|end| end.ok);
        match kind {
            DependencyKind::AfterOk | DependencyKind::AfterCorr => ok,
            DependencyKind::AfterNotOk => !ok,
            DependencyKind::AfterAny | DependencyKind::After(_) => true,
        }
    }
}

/// Something that may happen. Tasks are named by a number that is taken modulo their count.
#[derive(Clone, Debug)]
enum Step {
    Submit { asks: Asks, user: u32, name: usize },
    SubmitArray { asks: Asks, many: u32, at_once: Option<u32>, name: usize },
    Hold(usize, bool),
    Update(usize, Asks),
    Rename(usize, usize),
    Start(usize),
    End(usize, bool),
    Cancel(usize),
    Again(usize, u32),
    Advance(u64),
}

/// What a task asks for.
#[derive(Clone, Debug)]
struct Asks {
    begin: Option<u64>,
    after: Vec<(u32, u8, u64)>,
    any: bool,
    singleton: bool,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

impl Asks {
    fn conditions(&self, now: Time, next: TaskId, user: u32, name: usize) -> Conditions {
        let kind = |kind: u8, delay: u64| match kind {
            0 => DependencyKind::AfterOk,
            1 => DependencyKind::AfterNotOk,
            2 => DependencyKind::AfterAny,
            3 => DependencyKind::AfterCorr,
            _ => DependencyKind::After(Millis(delay)),
        };
        let after = self.after.iter().filter(|_| next.0 > 1).map(|&(task, of, delay)| Dependency {
            task: TaskId(1 + task % (next.0 - 1)),
            kind: kind(of, delay),
        });
        Conditions {
            begin: self.begin.map(|begin| now + Millis(begin)),
            after: after.collect(),
            any: self.any,
            singleton: self.singleton.then(|| (UserId(user), NAMES[name].to_owned())),
            ..Conditions::default()
        }
    }
}

fn any_asks() -> impl Strategy<Value = Asks> {
    let delay = prop_oneof![2 => Just(0u64), 1 => 1u64..3_000];
    let begin = prop::option::weighted(0.2, 0u64..5_000);
    let after = prop::collection::vec((any::<u32>(), 0u8..5, delay), 0..4);
    (begin, after, any::<bool>(), prop::bool::weighted(0.2))
        .prop_map(|(begin, after, any, singleton)| Asks { begin, after, any, singleton })
}

fn any_step() -> impl Strategy<Value = Step> {
    let number = any::<usize>;
    let at_once = prop::option::weighted(0.7, 1u32..4);
    prop_oneof![
        4 => (any_asks(), 0u32..2, 0usize..3)
            .prop_map(|(asks, user, name)| Step::Submit { asks, user, name }),
        2 => (any_asks(), 1u32..6, at_once, 0usize..3).prop_map(|(asks, many, at_once, name)| {
            Step::SubmitArray { asks, many, at_once, name }
        }),
        2 => (number(), any::<bool>()).prop_map(|(task, held)| Step::Hold(task, held)),
        1 => (number(), any_asks()).prop_map(|(task, asks)| Step::Update(task, asks)),
        1 => (number(), 0usize..3).prop_map(|(task, name)| Step::Rename(task, name)),
        3 => number().prop_map(Step::Start),
        6 => (number(), prop::bool::weighted(0.8)).prop_map(|(task, ok)| Step::End(task, ok)),
        1 => number().prop_map(Step::Cancel),
        1 => (number(), 0u32..3).prop_map(|(task, failures)| Step::Again(task, failures)),
        2 => (0u64..3_000).prop_map(Step::Advance),
    ]
}

impl Model {
    fn happen(&mut self, step: &Step) {
        let (now, next) = (self.now, self.next_id());
        match step {
            Step::Submit { asks, user, name } => {
                let conditions = asks.conditions(now, next, *user, *name);
                self.submit(conditions, UserId(*user), NAMES[*name]);
            }
            Step::SubmitArray { asks, many, at_once, name } => {
                let conditions = asks.conditions(now, next, 0, *name);
                self.submit_array(&conditions, *many, *at_once, NAMES[*name]);
            }
            Step::Advance(millis) => self.now = now + Millis(*millis),
            Step::Start(number) => {
                if let Some(task) = self.of_state(State::Eligible, *number) {
                    self.start(task);
                }
            }
            Step::End(number, ok) => {
                if let Some(task) = self.of_state(State::Eligible, *number) {
                    self.end(task, *ok);
                }
            }
            Step::Again(number, failures) => {
                if let Some(task) = self.of_state(State::Eligible, *number) {
                    self.again(task, *failures);
                }
            }
            Step::Hold(number, _)
            | Step::Cancel(number)
            | Step::Update(number, _)
            | Step::Rename(number, _) => {
                if let Some(task) = self.of_state(State::Waiting, *number) {
                    self.change(task, step);
                }
            }
        }
    }

    /// Changes a waiting task.
    fn change(&mut self, task: TaskId, step: &Step) {
        let Some(known) = self.tasks.get_mut(&task) else { return };
        match step {
            Step::Hold(_, held) => known.conditions.held = *held,
            Step::Update(_, asks) => {
                let first = known.conditions.array.map_or(task, |member| member.array);
                let asked = asks.conditions(self.now, first, known.user.0, 0);
                let Conditions { begin, after, any, .. } = asked;
                known.conditions = Conditions { begin, after, any, ..known.conditions.clone() };
            }
            Step::Rename(_, name) => {
                let old = std::mem::replace(&mut known.name, NAMES[*name].to_owned());
                let singleton = &mut known.conditions.singleton;
                singleton.iter_mut().for_each(|(_, name)| name.clone_from(&known.name));
                self.eligibility.renamed(task, known.user, &old, &known.name);
            }
            _ => return self.end(task, false),
        }
        self.eligibility.look_at(task);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn tasks_become_eligible_exactly_when_the_rules_say_so(
        batches in prop::collection::vec(prop::collection::vec(any_step(), 1..4), 1..40)
    ) {
        let mut model = Model::default();
        for batch in &batches {
            batch.iter().for_each(|step| model.happen(step));
            model.run_until_idle(true);
            for task in model.ids(State::Waiting) {
                prop_assert!(!model.may_come(task), "task {task} waits after {batch:?}");
            }
            prop_assert!(!model.eligibility.has_more());
        }
    }
}
