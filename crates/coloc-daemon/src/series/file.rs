//! The file of what was measured: written every five minutes and at the end, compressed, in one step. It may be lost: then it begins anew.

use super::{Kept, Series};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How often it is written.
const EVERY: Duration = Duration::from_secs(300);
/// More than this is not read: it is no file of ours.
const MOST: u64 = 512 << 20;

impl Series {
    /// What the last daemon left; nothing if it left none that can be read.
    pub fn open(file: &Path) -> Arc<Self> {
        let series = Series::default();
        match read(file) {
            Ok(kept) => *series.kept() = kept,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!("{}: {error}; series begin anew", file.display()),
        }
        Arc::new(series)
    }

    /// Writes what there is.
    pub fn save(&self, file: &Path) -> io::Result<()> {
        let text = serde_json::to_vec(&*self.kept())?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        io::Write::write_all(&mut packed, &text)?;
        crate::tokens::write_private(file, &packed.finish()?)
    }
}

fn read(file: &Path) -> io::Result<Kept> {
    let mut text = Vec::new();
    GzDecoder::new(std::fs::File::open(file)?).take(MOST).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Writes it now and then from a thread of its own, until the sender is gone.
pub fn keep(series: Arc<Series>, file: PathBuf) -> io::Result<mpsc::Sender<()>> {
    let (alive, gone) = mpsc::channel::<()>();
    let write = move || {
        while gone.recv_timeout(EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
            if let Err(error) = series.save(&file) {
                tracing::warn!("{}: {error}", file.display());
            }
        }
    };
    std::thread::Builder::new().name("series".to_owned()).spawn(write)?;
    Ok(alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Sighting;
    use coloc_api::moment::Moment;
    use coloc_api::view::GpuView;

    #[test]
    fn a_restart_goes_on_with_what_was_measured_and_a_broken_file_is_none() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("series.json.gz");
        let series = Series::open(&file);
        let gpu = GpuView {
            uuid: "GPU-a".to_owned(),
            smact: 0.5,
            power_w: Some(1.0),
            ..GpuView::default()
        };
        let at = |second: u64| Moment(1_800_000_000_000 + second * 1000);
        series.add(at(0), std::slice::from_ref(&gpu), &Sighting::default());
        series.save(&file).unwrap();
        let again = Series::open(&file);
        again.add(at(5), &[gpu], &Sighting::default());
        let seen = again.gpu(0, 0, u64::MAX, 600).unwrap();
        assert_eq!(seen.columns["smact"].iter().flatten().count(), 2);
        std::fs::write(&file, "no gzip").unwrap();
        assert_eq!(Series::open(&file).gpu(0, 0, u64::MAX, 600), None);
    }
}
