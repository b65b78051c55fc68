//! The live system, end to end: the real daemon on emulated GPUs, real processes, the real command line.

mod live {
    mod home;
    mod http;

    mod agreement;
    mod document;
    mod expected;
    mod groups;
    mod history;
    mod hostile;
    mod limits;
    mod memory;
    mod mig;
    mod order;
    mod remote;
    mod setup;
    mod survive;
    mod sweep;
    mod tasks;
    mod update;
    mod users;
    mod whatif;
}
