//! The daemon killed at the worst moments, under every way of sharing. docs/live.md says how to run more of it.

mod crash {
    mod checks;
    mod client;
    mod daemon;
    mod http;
    mod intent;
    mod leftover;
    mod model;
    #[path = "../support/processes.rs"]
    mod processes;
    mod program;
    mod proof;
    mod random;
    mod report;
    mod setup;
    mod torture;
}
