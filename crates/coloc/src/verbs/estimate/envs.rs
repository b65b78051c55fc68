//! `coloc estimate envs`: the software environments that can be named.

use super::{EstimateError, json};
use crate::config::environments::{self, Named, Origin};
use crate::output::table::words;
use clap::Args;
use coloc_estimate::environment::Environment;
use serde::Serialize;

#[derive(Args, Debug)]
pub(super) struct EnvsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Listed {
    environments: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    #[serde(flatten)]
    constants: Environment,
    /// Measured runs behind it; for shipped ones the number is not known.
    rows: Option<usize>,
    source: String,
    borrowed: Option<environments::Borrowed>,
}

impl From<Named> for Entry {
    fn from(named: Named) -> Self {
        let source = match named.origin {
            Origin::Shipped => "ships with coloc".to_owned(),
            Origin::File(file) => file.display().to_string(),
        };
        let Named { name, constants, rows, borrowed, .. } = named;
        Entry { name, constants, rows, source, borrowed }
    }
}

pub(super) fn run(args: &EnvsArgs) -> Result<String, EstimateError> {
    let mut listed = Vec::new();
    for named in environments::all() {
        match named {
            Ok(named) => listed.push(Entry::from(named)),
            // One broken file must not hide the others.
            Err(error) => eprintln!("coloc: {error}"),
        }
    }
    if args.json {
        return json::text(&Listed { environments: listed });
    }
    let rows = listed.into_iter().map(|entry| {
        let Environment { base_mib, convolution_mib, batch_norm_mib, spread_mib } = entry.constants;
        let mib = |mib: f64| format!("{mib:.0}");
        let rows = entry.rows.map_or("-".to_owned(), |rows| rows.to_string());
        let parts = [base_mib, convolution_mib, batch_norm_mib, spread_mib].map(mib);
        let borrowed = entry.borrowed.map(|borrowed| {
            let parts: Vec<&str> = borrowed.parts.iter().map(|part| part.part()).collect();
            format!(" ({} as in {})", parts.join(", "), borrowed.from)
        });
        let source = entry.source + &borrowed.unwrap_or_default();
        [vec![entry.name], parts.to_vec(), vec![rows, source]].concat()
    });
    let header = ["NAME", "BASE", "+CUDNN", "+BATCHNORM", "SPREAD", "ROWS", "SOURCE"];
    Ok(words(&header, rows, &[]) + "\n\nMemory beside the allocator, in MiB.")
}
