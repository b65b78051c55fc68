//! Graphs as text.

#![no_main]

use coloc_estimate_fuzz::check_graph_text;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check_graph_text(&String::from_utf8_lossy(data)));
