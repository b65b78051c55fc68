//! Hugging Face configs.

#![no_main]

use coloc_estimate_fuzz::check_config;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| check_config(&String::from_utf8_lossy(data)));
