//! Which source to believe: the best that answers now, with another look at the better ones later.

use super::{Reading, Source};
use crate::driver::DriverError;
use coloc_model::{Millis, Time};

/// How long a ladder leaves failing sources alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LadderConfig {
    /// The pause after a first failure; it doubles with each further one.
    pub first_pause: Millis,
    /// The longest pause.
    pub longest_pause: Millis,
}

impl Default for LadderConfig {
    fn default() -> Self {
        LadderConfig { first_pause: Millis::from_secs(1), longest_pause: Millis::from_secs(60) }
    }
}

/// The sources of one GPU.
#[derive(Clone, Debug)]
pub struct Ladder {
    config: LadderConfig,
    rungs: [Rung; Source::ALL.len()],
}

#[derive(Clone, Copy, Default, Debug)]
struct Rung {
    failures: u32,
    not_before: Time,
}

impl Ladder {
    /// A ladder whose sources have not failed yet.
    pub fn new(config: LadderConfig) -> Self {
        Ladder { config, rungs: Default::default() }
    }

    /// Asks the sources, best first, until one sees SM activity; else the best of what they said. Sources that
    /// failed are left alone for a while.
    ///
    /// `ask` answers `Ok(None)` for a source that has nothing yet, which is no failure.
    pub fn read(
        &mut self,
        now: Time,
        mut ask: impl FnMut(Source) -> Result<Option<Reading>, DriverError>,
    ) -> Option<(Source, Reading)> {
        let mut coarse = None;
        for (source, rung) in Source::ALL.into_iter().zip(&mut self.rungs) {
            if now < rung.not_before {
                continue;
            }
            match ask(source) {
                Ok(Some(reading)) => {
                    *rung = Rung::default();
                    if reading.sm.is_some() {
                        return Some((source, reading));
                    }
                    coarse = coarse.or(Some((source, reading)));
                }
                Ok(None) => {}
                Err(error) => {
                    let pause = match error {
                        // What a device cannot do it will not learn soon.
                        DriverError::NotSupported { .. } => self.config.longest_pause,
                        _ => self.config.pause_after(rung.failures),
                    };
                    *rung = Rung { failures: rung.failures + 1, not_before: now + pause };
                }
            }
        }
        coarse
    }
}

impl LadderConfig {
    fn pause_after(&self, failures: u32) -> Millis {
        let factor = 1u64.checked_shl(failures).unwrap_or(u64::MAX);
        Millis(self.first_pause.0.saturating_mul(factor)).min(self.longest_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::Fraction;

    fn seen(sm: f64) -> Reading {
        Reading { sm: Some(Fraction::new(sm)), ..Reading::default() }
    }

    fn utilization(gpu: f64) -> Reading {
        Reading { gpu: Some(Fraction::new(gpu)), ..Reading::default() }
    }

    const BROKEN: DriverError = DriverError::Hung;
    const UNABLE: DriverError = DriverError::NotSupported { what: "GPM" };

    fn at(secs: u64) -> Time {
        Time::START + Millis::from_secs(secs)
    }

    #[test]
    fn the_best_source_that_answers_is_believed() {
        let mut ladder = Ladder::new(LadderConfig::default());
        let answer = ladder.read(at(0), |source| match source {
            Source::DcgmDmon | Source::DcgmExporter => Ok(None),
            Source::Gpm => Ok(Some(seen(0.3))),
            _ => panic!("a coarse source was asked though a fine one answered"),
        });
        assert_eq!(answer, Some((Source::Gpm, seen(0.3))));
    }

    #[test]
    fn a_failing_source_is_left_alone_and_comes_back() {
        let mut ladder = Ladder::new(LadderConfig::default());
        let mut asked = Vec::new();
        for second in 0..8 {
            let (source, _) = ladder
                .read(at(second), |source| match source {
                    Source::DcgmDmon => {
                        asked.push(second);
                        if second < 7 { Err(BROKEN) } else { Ok(Some(seen(0.5))) }
                    }
                    Source::Utilization => Ok(Some(utilization(1.0))),
                    _ => Ok(None),
                })
                .expect("some source");
            let expected = if second < 7 { Source::Utilization } else { Source::DcgmDmon };
            assert_eq!(source, expected, "second {second}");
        }
        assert_eq!(asked, [0, 1, 3, 7], "pauses of 1, 2 and 4 s");
    }

    #[test]
    fn what_a_device_cannot_do_is_asked_rarely() {
        let mut ladder = Ladder::new(LadderConfig::default());
        let mut asked = 0;
        for second in 0..120 {
            ladder.read(at(second), |source| match source {
                Source::Gpm => {
                    asked += 1;
                    Err(UNABLE)
                }
                _ => Ok(None),
            });
        }
        assert_eq!(asked, 2);
    }

    #[test]
    fn an_exporter_without_sm_activity_does_not_hide_a_finer_source() {
        let mut ladder = Ladder::new(LadderConfig::default());
        let answer = ladder.read(at(0), |source| match source {
            Source::DcgmExporter => Ok(Some(utilization(0.9))),
            Source::Gpm => Ok(Some(seen(0.2))),
            _ => Ok(None),
        });
        assert_eq!(answer, Some((Source::Gpm, seen(0.2))));
        let answer = ladder.read(at(1), |source| match source {
            Source::DcgmExporter => Ok(Some(utilization(0.9))),
            Source::Utilization => Ok(Some(utilization(1.0))),
            _ => Ok(None),
        });
        assert_eq!(answer, Some((Source::DcgmExporter, utilization(0.9))));
    }

    #[test]
    fn no_source_at_all_is_no_reading() {
        let mut ladder = Ladder::new(LadderConfig::default());
        assert_eq!(ladder.read(at(0), |_| Err(BROKEN)), None);
    }
}
