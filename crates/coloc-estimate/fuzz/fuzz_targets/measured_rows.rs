//! Measured rows of each kind.

#![no_main]

use coloc_estimate_fuzz::check_rows;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check_rows(data));
