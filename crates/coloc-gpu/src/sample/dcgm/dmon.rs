//! `dcgmi dmon`: a table that goes on for ever.

use super::super::Reading;
use super::Field;
use super::feed::{Entity, Feed, Measured, Shared};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// DCGM samples its profiling metrics no faster than this. An emulated one does, where time is scaled.
pub const SHORTEST_PERIOD: Duration = Duration::from_millis(100);
/// No line of the table is longer.
const LONGEST_LINE: u64 = 64 * 1024;

/// Reads the table line by line. The head, which is repeated now and then, names the columns.
#[derive(Clone, Debug)]
pub struct DmonParser {
    columns: Vec<Option<Field>>,
}

impl Default for DmonParser {
    /// Columns in the order in which they are asked for, until a head says otherwise.
    fn default() -> Self {
        DmonParser { columns: Field::ALL.map(Some).to_vec() }
    }
}

impl DmonParser {
    /// Takes one line; what it measures, if it measures anything.
    pub fn line(&mut self, line: &str) -> Option<Measured> {
        let mut words = line.split_whitespace().peekable();
        let first = *words.peek()?;
        if first.starts_with('#') {
            self.head(line);
            return None;
        }
        let (entity, values) = entity(words.collect())?;
        let mut reading = Reading::default();
        for (column, value) in self.columns.iter().zip(values) {
            if let (Some(field), Ok(value)) = (column, value.parse::<f64>()) {
                reading.set(*field, value);
            }
        }
        (!reading.is_empty()).then_some(Measured { entity, reading })
    }

    fn head(&mut self, line: &str) {
        let names = line.trim_start_matches(['#', ' ']).split_whitespace().skip(1);
        let columns: Vec<Option<Field>> = names.map(Field::by_column).collect();
        // A head that names none of our columns was renamed: what was asked for still stands.
        if columns.iter().any(Option::is_some) {
            self.columns = columns;
        }
    }
}

/// Splits a row into what it is about and its values: `GPU 0 …`, `GPU-I 3 …`, `GPU 0/1/2 …`, or `0 …`.
fn entity(words: Vec<&str>) -> Option<(Entity, Vec<&str>)> {
    match words[..] {
        ["GPU", id, ..] => {
            let entity = match id.parse() {
                Ok(index) => Entity::Index(index),
                Err(_) => Entity::Instance(format!("GPU {id}")),
            };
            Some((entity, words[2..].to_vec()))
        }
        [kind, id, ..] if kind.starts_with("GPU-") => {
            Some((Entity::Instance(format!("{kind} {id}")), words[2..].to_vec()))
        }
        [id, ..] => Some((Entity::Index(id.parse().ok()?), words[1..].to_vec())),
        [] => None,
    }
}

/// Keeps `dcgmi dmon` running and reads along, a look every `period`.
pub fn dmon_feed(program: PathBuf, period: Duration) -> Feed {
    let millis = period.as_millis().max(1).to_string();
    let fields = Field::ALL.map(|field| field.number().to_string()).join(",");
    Feed::run("dcgmi-dmon", move |shared| {
        let child = crate::program::command(&program)
            .args(["dmon", "-e", &fields, "-d", &millis])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let child = child.map_err(|error| format!("{}: {error}", program.display()))?;
        follow(child, shared)
    })
}

/// A child that is ended when its output is not read any more.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is collected.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn follow(mut child: Child, shared: &Shared) -> Result<(), String> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let child = Ended(child);
    let mut lines = BufReader::new(stdout.ok_or("no output")?);
    let mut parser = DmonParser::default();
    let mut line = Vec::new();
    while !shared.stopped() {
        line.clear();
        let read = lines.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line);
        if read.map_err(|error| error.to_string())? == 0 {
            drop(child);
            let mut complaint = String::new();
            if let Some(stderr) = stderr {
                let _ = stderr.take(4096).read_to_string(&mut complaint);
            }
            let complaint = complaint.lines().next().unwrap_or("no message").to_owned();
            return Err(format!("dcgmi dmon ended: {complaint}"));
        }
        if let Some(measured) = parser.line(&String::from_utf8_lossy(&line)) {
            shared.publish(measured, Instant::now());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::Fraction;
    use proptest::prelude::*;

    fn parse(text: &str) -> Vec<Measured> {
        let mut parser = DmonParser::default();
        text.lines().filter_map(|line| parser.line(line)).collect()
    }

    #[test]
    fn the_table_of_dcgm_is_read() {
        let rows = parse(
            "#Entity   GRACT        SMACT        SMOCC        TENSO        DRAMA        \n\
             ID                                                                     \n\
             GPU 0     1.000        0.170        0.042        N/A          0.012       \n\
             GPU 1     0.000        0.000        0.000        0.000        0.000       \n\
             GPU-I 3   0.500        0.250        0.125        0.000        0.100       \n\
             GPU 2     N/A          N/A          N/A          N/A          N/A         \n",
        );
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].entity, Entity::Index(0));
        assert_eq!(rows[0].reading.gpu, Some(Fraction::ONE));
        assert_eq!(rows[0].reading.sm, Some(Fraction::new(0.17)));
        assert_eq!(rows[0].reading.tensor, None);
        assert_eq!(rows[2].entity, Entity::Instance("GPU-I 3".to_owned()));
    }

    #[test]
    fn columns_follow_the_head() {
        let rows = parse("# Entity  DRAMA  POWER  SMACT\n   Id\n  GPU 1  0.3  411.2  0.9\n");
        assert_eq!(rows[0].reading.dram, Some(Fraction::new(0.3)));
        assert_eq!(rows[0].reading.sm, Some(Fraction::new(0.9)));
        assert_eq!((rows[0].reading.gpu, rows[0].reading.occupancy), (None, None));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let feed = dmon_feed(PathBuf::from("/nonexistent/dcgmi"), Duration::from_secs(1));
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            if let super::super::FeedStatus::Failing { why } = feed.status() {
                assert!(why.contains("/nonexistent/dcgmi"), "{why}");
                return;
            }
            assert!(Instant::now() < deadline, "the feed never failed");
            std::thread::yield_now();
        }
    }

    proptest! {
        #[test]
        fn hostile_tables_are_survived(text in "(#?[A-Z]{0,5}[ 0-9./eE+-]{0,30}(GPU|GPU-I|Entity|N/A|SMACT)?[ \n]){0,12}") {
            for measured in parse(&text) {
                prop_assert!(!measured.reading.is_empty());
            }
        }
    }
}
