//! How a training script fails, in the words of PyTorch.

use super::TrainError;
use coloc_emu::Place;
use coloc_emu::client::{Client, ClientError};
use coloc_model::Bytes;

/// Why a training ended early.
pub(super) enum Failure {
    /// As a script would: this text on standard error, exit code 1.
    Script(String),
    /// The trainer itself could not go on.
    Training(TrainError),
}

impl<E: Into<TrainError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Training(error.into())
    }
}

const TRACEBACK: &str = "Traceback (most recent call last):\n  \
    File \"train.py\", line 1, in <module>\n";

/// The contexts of the process were ended from outside.
pub(super) fn ended(why: &str) -> Failure {
    Failure::Script(format!(
        "{TRACEBACK}RuntimeError: CUDA error: context is destroyed ({why})\n{ASYNC}"
    ))
}

const ASYNC: &str = "CUDA kernel errors might be asynchronously reported at some other API call, so the \
    stacktrace below might be incorrect.\n";

/// No context could be opened.
pub(super) fn context(error: ClientError) -> Failure {
    match error.out_of_memory() {
        Some(_) => {
            Failure::Script(format!("{TRACEBACK}RuntimeError: CUDA error: out of memory\n{ASYNC}"))
        }
        None => error.into(),
    }
}

/// Memory could not be had.
pub(super) fn allocation(
    client: &Client,
    places: &[Place],
    place: Place,
    wanted: Bytes,
    ours: Bytes,
    error: ClientError,
) -> Failure {
    let Some((_, free)) = error.out_of_memory() else { return error.into() };
    let ordinal = places.iter().position(|own| *own == place).unwrap_or(0);
    match picture(client, place) {
        Ok(picture) => Failure::Script(text(ordinal, wanted, free, ours, &picture)),
        Err(error) => error.into(),
    }
}

/// What is on the device at that moment.
struct Picture {
    total: Bytes,
    own: Bytes,
    others: Vec<(i32, Bytes)>,
}

fn picture(client: &Client, place: Place) -> Result<Picture, ClientError> {
    let (state, slot) = client.lock()?;
    let total = state.memory(place)?.total;
    let (own, others): (Vec<_>, Vec<_>) =
        state.residents(place).into_iter().partition(|resident| resident.process == slot);
    Ok(Picture {
        total,
        own: own.iter().map(|resident| resident.held).sum(),
        others: others.iter().map(|resident| (resident.pid, resident.held)).collect(),
    })
}

/// What a script prints that caught an out-of-memory error of something small and went on. Its figures are those of
/// another device: nothing of this run is to be learned from them.
pub(super) fn survived() -> String {
    let own = Bytes::from_mib(2);
    let picture = Picture { total: Bytes::from_mib(2048), own, others: Vec::new() };
    text(0, Bytes::from_mib(20), Bytes::from_mib(4), own, &picture)
}

/// PyTorch writes sizes with two digits and the largest unit that fits.
fn size(bytes: Bytes) -> String {
    match bytes.0 {
        0..=1024 => format!("{} bytes", bytes.0),
        1025..=1_048_576 => format!("{:.2} KiB", bytes.0 as f64 / 1024.0),
        1_048_577..=1_073_741_824 => format!("{:.2} MiB", bytes.mib()),
        _ => format!("{:.2} GiB", bytes.gib()),
    }
}

/// The message of PyTorch 2.5 and newer.
fn text(ordinal: usize, wanted: Bytes, free: Bytes, ours: Bytes, picture: &Picture) -> String {
    let others: String = picture
        .others
        .iter()
        .map(|(pid, held)| format!("Process {pid} has {} memory in use. ", size(*held)))
        .collect();
    format!(
        "{TRACEBACK}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {}. GPU {ordinal} has a \
         total capacity of {} of which {} is free. {others}Including non-PyTorch memory, this process has {} \
         memory in use. Of the allocated memory {} is allocated by PyTorch, and 0 bytes is reserved by \
         PyTorch but unallocated. If reserved but unallocated memory is large try setting \
         PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for \
         Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)\n",
        size(wanted),
        size(picture.total),
        size(free),
        size(picture.own),
        size(ours),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_never_written_as_nothing() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (512, "512 bytes"),
            (2048, "2.00 KiB"),
            (20 << 20, "20.00 MiB"),
            (3 << 29, "1.50 GiB"),
        ] {
            assert_eq!(size(Bytes(bytes)), text);
        }
    }

    #[test]
    fn the_message_names_the_neighbours() {
        let picture = Picture {
            total: Bytes::from_mib(40_960),
            own: Bytes::from_mib(1474),
            others: vec![(4711, Bytes::from_mib(25_000)), (42, Bytes::from_mib(900))],
        };
        let text = text(0, Bytes::from_mib(1536), Bytes::from_mib(700), Bytes(1 << 30), &picture);
        let expected = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a \
            total capacity of 40.00 GiB of which 700.00 MiB is free. Process 4711 has 24.41 GiB memory in use. \
            Process 42 has 900.00 MiB memory in use. Including non-PyTorch memory, this process has 1.44 GiB";
        assert!(text.contains(expected), "{text}");
    }
}
