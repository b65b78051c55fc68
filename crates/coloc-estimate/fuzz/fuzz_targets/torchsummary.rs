//! Tables of torchsummary.

#![no_main]

use coloc_estimate::summary::Dialect;
use coloc_estimate_fuzz::check_summary;
use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus {
    match check_summary(&String::from_utf8_lossy(data), Dialect::Torchsummary) {
        true => Corpus::Keep,
        false => Corpus::Reject,
    }
});
