//! The emulated driver as programs meet it: through its exported functions, from many processes at once.
#![allow(unsafe_code)] // Calling C functions of the libraries under test is what these tests are for.

mod beside;
mod contention;
mod death;
mod energy;
mod faults;
mod hostile;
mod instances;
mod physics;
mod support;
