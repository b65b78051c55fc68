//! The live system, end to end: the real daemon on emulated GPUs, real processes, the real command line.

mod live {
    mod home;
    mod http;
    #[path = "../support/processes.rs"]
    mod processes;

    mod abuse;
    mod agreement;
    mod bounds;
    mod collocate;
    mod contract;
    mod daemon_log;
    mod document;
    mod drained;
    mod events;
    mod expected;
    mod fairness;
    mod farewell;
    mod groups;
    mod history;
    mod hostile;
    mod journal;
    mod kinds;
    mod limits;
    mod long_queue;
    mod loss;
    mod machine;
    mod memory;
    mod mig;
    mod mps;
    mod order;
    mod outputs;
    mod programs;
    mod reconnect;
    mod reload;
    mod remote;
    mod retention;
    mod scripts;
    mod setup;
    mod slurm;
    mod supervision;
    mod survive;
    mod sweep;
    mod tasks;
    mod telling;
    mod update;
    mod users;
    mod whatif;
    mod words;
}
