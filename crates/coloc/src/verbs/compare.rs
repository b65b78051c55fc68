//! x
use crate::error::CliError;
use clap::Args;
/// x
#[derive(Args, Debug)]
pub(crate) struct Compare {}
impl Compare {
    pub(crate) fn run(self) -> Result<(), CliError> {
        Ok(())
    }
}
