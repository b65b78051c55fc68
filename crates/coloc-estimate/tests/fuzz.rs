//! Mutated inputs: every reader must answer or refuse, never panic, never hang.
//!
//! A few blind seconds in every test run. Coverage-guided fuzzing of the same promises, from the same seeds, is
//! `cargo xtask fuzz`.

#[path = "../fuzz/src/lib.rs"]
pub mod promises;

use coloc_estimate::dataset::{self, Kind};
use coloc_estimate::graph::text;
use coloc_estimate::hf::{self, Options};
use coloc_estimate::summary::{self, Dialect, SummaryOptions};
use std::path::Path;
use std::time::{Duration, Instant};

/// A small generator of its own, so that a failing input can be made again from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides.max(1) as u64) as usize
    }
}

const PIECES: [&str; 15] = [
    "[",
    "]",
    "-1",
    "0",
    "99999999999999999999",
    "4294967295",
    "(",
    ")",
    ": ",
    "│    └─",
    ",",
    "\n",
    "Conv2d-1 [-1, 0, 0, 0] 0",
    "repeat 9999",
    "$",
];

fn mutate(seed: &str, dice: &mut Dice) -> String {
    let mut characters: Vec<char> = seed.chars().collect();
    for _ in 0..1 + dice.roll(12) {
        let at = dice.roll(characters.len());
        match dice.roll(5) {
            0 => characters.truncate(at),
            1 if at < characters.len() => {
                characters.remove(at);
            }
            2 => {
                let piece: Vec<char> = PIECES[dice.roll(PIECES.len())].chars().collect();
                characters.splice(at..at, piece);
            }
            3 if !characters.is_empty() => {
                let from = dice.roll(characters.len());
                let part: Vec<char> = characters[from..].iter().take(200).copied().collect();
                characters.splice(at..at, part);
            }
            _ if at < characters.len() => {
                characters[at] = char::from(32 + dice.roll(95) as u8);
            }
            _ => {}
        }
        characters.truncate(20_000);
    }
    characters.into_iter().collect()
}

fn seeds(reader: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(reader);
    let files = folder.read_dir().expect("every reader has seeds");
    let mut files: Vec<_> = files.map(|file| file.expect("a listed file").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read_to_string(file).expect("seeds are text")).collect()
}

fn fuzz(reader: &str, read: impl Fn(&str)) {
    let seeds = seeds(reader);
    let end = Instant::now() + Duration::from_secs(2);
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let mut slowest = Duration::ZERO;
    let mut inputs = 0u64;
    while Instant::now() < end {
        let text = mutate(&seeds[dice.roll(seeds.len())], &mut dice);
        let start = Instant::now();
        read(&text);
        slowest = slowest.max(start.elapsed());
        inputs += 1;
    }
    println!("{reader}: {inputs} inputs, the slowest took {slowest:?}");
    // A hang, not a busy machine, takes this long.
    assert!(slowest < Duration::from_secs(60), "an input took {slowest:?}");
}

fn fuzz_summary(reader: &str, dialect: Dialect) {
    fuzz(reader, |text| {
        promises::check_summary(text, dialect);
    });
}

#[test]
fn torchsummary_tables_survive() {
    fuzz_summary("torchsummary", Dialect::Torchsummary);
}

#[test]
fn module_trees_survive() {
    fuzz_summary("module_tree", Dialect::ModuleTree);
}

#[test]
fn torchinfo_trees_survive() {
    fuzz_summary("torchinfo", Dialect::Torchinfo);
}

#[test]
fn graphs_survive() {
    fuzz("graph_text", promises::check_graph_text);
}

#[test]
fn configs_survive() {
    fuzz("hf_config", promises::check_config);
}

#[test]
fn measured_rows_survive() {
    fuzz("measured_rows", |text| promises::check_rows(text.as_bytes()));
}

/// A seed that is refused leads nowhere.
#[test]
fn the_seeds_themselves_are_read() {
    for reader in ["torchsummary", "module_tree", "torchinfo"] {
        for seed in seeds(reader) {
            summary::parse(&seed, &SummaryOptions::default()).unwrap();
        }
    }
    for seed in seeds("graph_text") {
        text::parse(&seed).unwrap();
    }
    for seed in seeds("hf_config") {
        hf::parse(&seed, &Options::default()).unwrap();
    }
    for seed in seeds("measured_rows") {
        let read = |kind| dataset::read_from(seed.as_bytes(), Path::new("rows.csv"), kind).is_ok();
        assert!([Kind::Mlp, Kind::Cnn, Kind::Transformer].into_iter().any(read), "{seed}");
    }
}
