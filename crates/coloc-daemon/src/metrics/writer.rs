//! Writing series with the crate's encoder. It writes values of labels as they are, so they are escaped here.

use super::histogram::Histogram;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use std::fmt;

/// Labels of one series.
pub(super) type Labels = Vec<(&'static str, String)>;

/// The same with what would end a value escaped.
fn escaped(labels: Labels) -> Labels {
    let escape = |value: String| match value.contains(['\\', '"', '\n']) {
        true => value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"),
        false => value,
    };
    labels.into_iter().map(|(name, value)| (name, escape(value))).collect()
}

/// Writes families of series.
pub(super) struct Writer<'a>(pub(super) DescriptorEncoder<'a>);

impl Writer<'_> {
    /// A gauge with its series.
    pub(super) fn gauges(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in series {
            let labels = escaped(labels);
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// A gauge that has no labels.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        family.encode_gauge(&value)
    }

    /// A counter with its series. The crate adds `_total` to the name.
    pub(super) fn counters(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (Labels, f64)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in series {
            let labels = escaped(labels);
            let mut one = family.encode_family(&labels)?;
            one.encode_counter(&value, None::<&Exemplar<NoLabelSet, f64>>)?;
        }
        Ok(())
    }

    /// A counter that has no labels.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        family.encode_counter(&value, None::<&Exemplar<NoLabelSet, f64>>)
    }

    /// A histogram with its series.
    pub(super) fn histograms<'h>(
        &mut self,
        name: &str,
        help: &str,
        series: impl IntoIterator<Item = (Labels, &'h Histogram)>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, histogram) in series {
            let (sum, count, buckets) = (histogram.sum(), histogram.count(), histogram.buckets());
            if labels.is_empty() {
                family.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
                continue;
            }
            let labels = escaped(labels);
            let mut one = family.encode_family(&labels)?;
            one.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}
