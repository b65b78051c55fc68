//! `coloc emu` as people use it: commands, tools and trainers on emulated GPUs.

mod support;

mod emulated {
    mod fleet;

    mod commands;
    mod sharing;
    mod tools;
    mod trainers;
}
