//! The live system, end to end: the real daemon on emulated GPUs, real processes, the real command line.

mod live {
    mod home;
    mod http;

    mod document;
    mod fairness;
    mod hostile;
    mod limits;
    mod memory;
    mod order;
    mod reload;
    mod remote;
    mod setup;
    mod survive;
    mod sweep;
    mod tasks;
    mod update;
    mod users;
}
