//! The live system, end to end: the real daemon on emulated GPUs, real processes, the real command line.

mod live {
    mod home;
    mod http;
    #[path = "../support/processes.rs"]
    mod processes;
    mod screen;

    mod administration;
    mod agreement;
    mod collocate;
    mod command_output;
    mod contract;
    mod daemon_log;
    mod dashboard;
    mod document;
    mod events;
    mod exec;
    mod expected;
    mod export;
    mod fairness;
    mod gpu_models;
    mod groups;
    mod history;
    mod hooks;
    mod long_queue;
    mod messages;
    mod metrics;
    mod mig;
    mod mps;
    mod order;
    mod out_of_memory;
    mod programs;
    mod reload;
    mod remote;
    mod report;
    mod retention;
    mod scripts;
    mod security;
    mod setup;
    mod slurm;
    mod slurm_scripts;
    mod stopping;
    mod sweep;
    mod tasks;
    mod terminal;
    mod top;
    mod update;
    mod users;
    mod web;
    mod whatif;

    /// What goes wrong, and what people do wrong.
    mod faults {
        mod abuse;
        mod drained_gpus;
        mod journal;
        mod lost_gpus;
        mod machine;
        mod odd_input;
        mod outputs;
        mod reconnect;
        mod restart;
        mod shortages;
        mod supervision;
        mod user_limits;
    }
}
