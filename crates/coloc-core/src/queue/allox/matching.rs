//! Minimum-cost matching of jobs to positions on devices (AlloX).
//!
//! A job that is `k`-th from the end on a device delays itself and the `k − 1` behind it, so it costs
//! `D + k·P`, with `D` the wait until the device is free and `P` its time there. The cheapest matching of
//! all jobs to `(device, k)` has the least mean completion time of all schedules without preemption.
//!
//! Devices of one kind that become free together are one group; its `k`-th column takes as many jobs as
//! it has devices. A column is opened when the one before it is full, since a lower `k` is always
//! cheaper. Jobs are added one by one along the shortest augmenting path, so every step is optimal.

use coloc_model::Millis;

/// Devices that differ in nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// How many.
    pub devices: usize,
}

/// What jobs cost on groups.
pub trait Costs {
    /// Time of a job on a device of the group; `None` if it cannot run there.
    fn time(&self, job: usize, group: usize) -> Option<Millis>;
    /// How long a job has to wait until devices of the group are free, counted from its arrival.
    fn delay(&self, job: usize, group: usize) -> Millis;
}

/// A place in a group's queue: `from_end` is 1 for the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The group.
    pub group: usize,
    /// How many end no earlier on the device, itself included.
    pub from_end: usize,
}

/// Costs in milliseconds, with two more sets of digits: among equals the flatter schedule, which ends
/// sooner, is cheaper; and among those the one in which jobs go in the order of their numbers, so that
/// a job that came first is not passed by its equals.
type Cost = i128;
const DIGITS: u32 = 32;
const NEVER: Cost = Cost::MAX / 4;

struct Column {
    position: Position,
    jobs: Vec<usize>,
    price: Cost,
}

struct Matching<'a, C> {
    costs: &'a C,
    groups: &'a [Group],
    columns: Vec<Column>,
    place: Vec<Option<usize>>,
    worth: Vec<Cost>,
}

/// Where each job goes; `None` for one that can run nowhere.
pub fn matching<C: Costs>(jobs: usize, groups: &[Group], costs: &C) -> Vec<Option<Position>> {
    let mut matching = Matching {
        costs,
        groups,
        columns: Vec::new(),
        place: vec![None; jobs],
        worth: vec![0; jobs],
    };
    for group in (0..groups.len()).filter(|&group| groups[group].devices > 0) {
        matching.open(Position { group, from_end: 1 });
    }
    for job in 0..jobs {
        matching.add(job);
    }
    let Matching { columns, place, .. } = matching;
    place.into_iter().map(|column| Some(columns[column?].position)).collect()
}

/// One step of a path: how cheaply a column is reached, and which job moves there.
#[derive(Clone, Copy)]
struct Reach {
    cost: Cost,
    mover: usize,
    done: bool,
}

impl<C: Costs> Matching<'_, C> {
    fn open(&mut self, position: Position) {
        self.columns.push(Column { position, jobs: Vec::new(), price: 0 });
    }

    fn cost(&self, job: usize, position: Position) -> Cost {
        let Some(time) = self.costs.time(job, position.group) else { return NEVER };
        let k = position.from_end as Cost;
        let delay = Cost::from(self.costs.delay(job, position.group).0);
        let millis = delay + k * Cost::from(time.0);
        (((millis << DIGITS) + k) << DIGITS) + k * job as Cost
    }

    fn is_full(&self, column: usize) -> bool {
        let column = &self.columns[column];
        column.jobs.len() == self.groups[column.position.group].devices
    }

    /// Lets `job` reach every column from a point that cost `from`.
    fn relax(&self, job: usize, from: Cost, reached: &mut [Reach]) {
        for (column, reach) in self.columns.iter().zip(reached.iter_mut()) {
            if reach.done {
                continue;
            }
            let cost = self.cost(job, column.position);
            if cost == NEVER {
                continue;
            }
            let cost = from + cost - self.worth[job] - column.price;
            if cost < reach.cost {
                (reach.cost, reach.mover) = (cost, job);
            }
        }
    }

    /// Adds a job along the cheapest path of moves that ends at a column with room.
    fn add(&mut self, job: usize) {
        let mut reached = vec![Reach { cost: NEVER, mover: job, done: false }; self.columns.len()];
        self.worth[job] = 0;
        self.relax(job, 0, &mut reached);
        let (end, shortest) = loop {
            let open = reached.iter().enumerate().filter(|(_, reach)| !reach.done);
            let Some((column, &Reach { cost, .. })) = open.min_by_key(|(_, reach)| reach.cost)
            else {
                return;
            };
            if cost >= NEVER {
                return;
            }
            if !self.is_full(column) {
                break (column, cost);
            }
            reached[column].done = true;
            for index in 0..self.columns[column].jobs.len() {
                let mover = self.columns[column].jobs[index];
                self.relax(mover, cost, &mut reached);
            }
        };
        self.reprice(job, shortest, &reached);
        self.shift(job, end, &reached);
        if self.is_full(end) {
            let Position { group, from_end } = self.columns[end].position;
            self.open(Position { group, from_end: from_end + 1 });
        }
    }

    /// Keeps every reduced cost at zero or above, and at zero where a job is placed.
    fn reprice(&mut self, job: usize, shortest: Cost, reached: &[Reach]) {
        self.worth[job] += shortest;
        for (column, reach) in self.columns.iter_mut().zip(reached).filter(|(_, r)| r.done) {
            let gain = shortest - reach.cost;
            column.price -= gain;
            for &placed in &column.jobs {
                self.worth[placed] += gain;
            }
        }
    }

    /// Moves the jobs of the path, last first.
    fn shift(&mut self, job: usize, end: usize, reached: &[Reach]) {
        let mut column = end;
        loop {
            let mover = reached[column].mover;
            let from = self.place[mover].replace(column);
            self.columns[column].jobs.push(mover);
            if mover == job {
                break;
            }
            let Some(from) = from else { break };
            self.columns[from].jobs.retain(|&placed| placed != mover);
            column = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Table {
        times: Vec<Vec<u64>>,
        delays: Vec<u64>,
    }

    impl Costs for Table {
        fn time(&self, job: usize, group: usize) -> Option<Millis> {
            Some(Millis(self.times[job][group]))
        }
        fn delay(&self, _: usize, group: usize) -> Millis {
            Millis(self.delays[group])
        }
    }

    /// Completion times: on each device jobs run from the largest position down to the last.
    fn completions(table: &Table, groups: &[Group], found: &[Option<Position>]) -> Vec<u64> {
        let mut ends = vec![0; found.len()];
        for (group, of_group) in groups.iter().enumerate() {
            let mut devices = vec![table.delays[group]; of_group.devices];
            for from_end in (1..=found.len()).rev() {
                let here = |place: &Option<Position>| *place == Some(Position { group, from_end });
                let jobs = (0..found.len()).filter(|&job| here(&found[job]));
                for (device, job) in jobs.enumerate() {
                    devices[device] += table.times[job][group];
                    ends[job] = devices[device];
                }
            }
        }
        ends
    }

    /// The least sum of completion times over all assignments: on one device the shortest goes first.
    fn brute_force(table: &Table, groups: &[Group], jobs: usize) -> u64 {
        let devices: Vec<usize> = groups
            .iter()
            .enumerate()
            .flat_map(|(group, of_group)| std::iter::repeat_n(group, of_group.devices))
            .collect();
        let choices = devices.len().pow(jobs as u32);
        (0..choices)
            .map(|choice| {
                let device_of = |job: usize| choice / devices.len().pow(job as u32) % devices.len();
                let on_device = |device: usize| {
                    let group = devices[device];
                    let mut times: Vec<u64> = (0..jobs)
                        .filter(|&job| device_of(job) == device)
                        .map(|job| table.times[job][group])
                        .collect();
                    times.sort_unstable();
                    let mut at = table.delays[group];
                    times
                        .iter()
                        .map(|time| {
                            at += time;
                            at
                        })
                        .sum::<u64>()
                };
                (0..devices.len()).map(on_device).sum()
            })
            .min()
            .unwrap_or(0)
    }

    /// The slides' example: X takes 10, 15, 20, 20 and Y 20, 25, 100, 90, two devices of each.
    #[test]
    fn four_jobs_of_the_slides() {
        let times = vec![vec![10, 20], vec![15, 25], vec![20, 100], vec![20, 90]];
        let table = Table { times, delays: vec![0, 0] };
        let groups = [Group { devices: 2 }, Group { devices: 2 }];
        let found = matching(4, &groups, &table);
        assert_eq!(completions(&table, &groups, &found), [20, 25, 20, 20]);
    }

    #[test]
    fn equal_jobs_go_in_their_order() {
        let table = Table { times: vec![vec![10]; 5], delays: vec![0] };
        let found = matching(5, &[Group { devices: 1 }], &table);
        let from_end: Vec<usize> =
            found.into_iter().flatten().map(|place| place.from_end).collect();
        assert_eq!(from_end, [5, 4, 3, 2, 1]);
    }

    #[test]
    fn who_can_run_nowhere_is_left_out() {
        struct Picky;
        impl Costs for Picky {
            fn time(&self, job: usize, _: usize) -> Option<Millis> {
                (job != 1).then_some(Millis(5))
            }
            fn delay(&self, _: usize, _: usize) -> Millis {
                Millis::ZERO
            }
        }
        let found = matching(3, &[Group { devices: 1 }], &Picky);
        assert_eq!(found.iter().filter(|place| place.is_some()).count(), 2);
        assert_eq!(found[1], None);
        assert_eq!(matching(2, &[], &Picky), [None, None]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn nothing_is_cheaper(
            times in prop::collection::vec(prop::collection::vec(1u64..60, 3), 1..=7),
            devices in prop::collection::vec(0usize..=2, 3),
            delays in prop::collection::vec(0u64..40, 3),
        ) {
            prop_assume!((1..=3).contains(&devices.iter().sum::<usize>()));
            let groups: Vec<Group> = devices.iter().map(|&devices| Group { devices }).collect();
            let (jobs, table) = (times.len(), Table { times, delays });
            let found = matching(jobs, &groups, &table);
            prop_assert!(found.iter().all(Option::is_some));
            let total: u64 = completions(&table, &groups, &found).iter().sum();
            prop_assert_eq!(total, brute_force(&table, &groups, jobs));
        }
    }
}
