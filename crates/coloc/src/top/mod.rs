//! `coloc top`: a terminal view of the GPUs and the tasks, kept up to date.
//!
//! [`app::App`] is everything that is shown, [`update::update`] changes it, [`view::draw`] draws it; all three are pure.
//! [`edge`] reads keys, asks the daemon and keeps the time.

mod app;
pub(crate) mod edge;
mod feed;
mod keys;
mod numbers;
mod paint;
mod rows;
mod screen;
mod update;
mod view;

#[cfg(test)]
mod fixed;
#[cfg(test)]
mod snapshots;
