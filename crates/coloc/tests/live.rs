//! The live system, end to end: the real daemon on emulated GPUs, real processes, the real command line.

mod live {
    mod home;
    mod http;

    mod abuse;
    mod agreement;
    mod collocate;
    mod document;
    mod expected;
    mod fairness;
    mod farewell;
    mod groups;
    mod history;
    mod hostile;
    mod kinds;
    mod limits;
    mod loss;
    mod memory;
    mod mig;
    mod mps;
    mod order;
    mod programs;
    mod reconnect;
    mod reload;
    mod remote;
    mod retention;
    mod scripts;
    mod setup;
    mod slurm;
    mod survive;
    mod sweep;
    mod tasks;
    mod telling;
    mod update;
    mod users;
    mod whatif;
    mod words;
}
