//! `coloc reserve` and `coloc return`: GPUs that take only the tasks of some users, and of all again.

use super::drain::tell;
use crate::args::live::SocketArg;
use crate::args::pool::{SomeGpus, all_gpus, some_gpus};
use crate::error::CliError;
use crate::local_time::LocalTime;
use crate::output::visible::visible;
use crate::parse::begin_time;
use clap::Args;
use coloc_api::moment::Moment;
use coloc_api::request::GpuReservation;
use coloc_api::view::GpuView;

/// Have GPUs take only the tasks of some users; what runs goes on
#[derive(Args, Debug)]
pub(crate) struct Reserve {
    /// These GPUs, by number, range or UUID
    #[arg(long, value_name = "GPU", required = true, value_delimiter = ',', value_parser = some_gpus)]
    gpu: Vec<SomeGpus>,
    /// For these users, and groups with a leading @, such as ann,@lab
    #[arg(long = "for", value_name = "USERS", required = true, value_delimiter = ',')]
    users: Vec<String>,
    /// Until then: now+2h, 18:00, tomorrow, 2027-01-20T12:34 [default: until `coloc return`]
    #[arg(long, value_name = "WHEN", value_parser = begin_time::begin)]
    until: Option<Moment>,
    /// Why, for those who ask `coloc gpus` or `coloc why`
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl Reserve {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let request = GpuReservation {
            gpus: all_gpus(&self.gpu),
            reserved_for: self.users,
            until_s: self.until.map(Moment::secs),
            reason: self.reason,
        };
        let served = self.socket.connect()?.reserve_gpus(&request)?;
        tell(&served, self.json, reserved)
    }
}

/// `GPU 2 is reserved for ann, @lab until …: …`.
pub(in crate::verbs) fn reserved(gpu: &GpuView) -> String {
    let until = gpu.reserved_until_s.and_then(|at| LocalTime::of(at as i64));
    let until = until.map_or(String::new(), |until| format!(" until {until}"));
    let reason = gpu.reserve_reason.as_ref().map(|reason| format!(": {}", visible(reason)));
    let users = gpu.reserved_for.join(", ");
    format!(
        "GPU {} is reserved for {}{until}{}",
        gpu.index,
        visible(&users),
        reason.unwrap_or_default()
    )
}

/// Have GPUs that were reserved take the tasks of all users again
#[derive(Args, Debug)]
pub(crate) struct Return {
    /// These GPUs, by number, range or UUID
    #[arg(long, value_name = "GPU", required = true, value_delimiter = ',', value_parser = some_gpus)]
    gpu: Vec<SomeGpus>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl Return {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let (reserved_for, until_s, reason) = (Vec::new(), None, None);
        let request = GpuReservation { gpus: all_gpus(&self.gpu), reserved_for, until_s, reason };
        let served = self.socket.connect()?.reserve_gpus(&request)?;
        tell(&served, self.json, |gpu| format!("GPU {} takes the tasks of all users", gpu.index))
    }
}
