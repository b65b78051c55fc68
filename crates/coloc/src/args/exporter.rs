//! Where a dcgm-exporter is.

use coloc_gpu::sample::dcgm::Endpoint;

/// A dcgm-exporter. An empty word, which a variable has that is set to nothing, stands for none.
#[derive(Clone, Debug)]
pub(crate) struct ExporterArg(pub(crate) Option<Endpoint>);

impl std::str::FromStr for ExporterArg {
    type Err = <Endpoint as std::str::FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(ExporterArg(if text.trim().is_empty() { None } else { Some(text.parse()?) }))
    }
}
