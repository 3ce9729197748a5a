//! One window or two as a limit asks for them: what is wrong with them, and the word that they need.

use crate::error::ConfigError;
use crate::limit::{Alignment, Window};
use crate::time::timebase::{Ask, HORIZON_LEAST_NS, Timebase, beyond_horizon, nanoseconds};
use crate::word::layout::{Layout, Misfit, Needs};

/// The windows asked for, checked.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    burst: Window,
    sustain: Option<Window>,
    pub(super) ratio: u64,
    burst_ns: u64,
    first_request: bool,
    value_bits: u32,
}

impl Pair {
    pub(super) fn new(
        burst: Window,
        sustain: Option<Window>,
        alignment: Alignment,
        value_bits: u32,
    ) -> Result<Self, ConfigError> {
        let [limit_name, period_name] = if sustain.is_some() {
            ["burst limit", "burst period"]
        } else {
            ["window limit", "window period"]
        };
        let mut ratio = 1;
        if burst.limit() == 0 {
            return Err(ConfigError::Zero { field: limit_name });
        }
        if burst.period().is_zero() {
            return Err(ConfigError::ZeroPeriod { field: period_name });
        }
        let longest = sustain.unwrap_or(burst);
        if let Some(sustain) = sustain {
            ratio = Self::ratio(burst, sustain)?;
        }
        let span_ns = u128::from(HORIZON_LEAST_NS);
        let field = if sustain.is_some() { "sustain period" } else { period_name };
        let too_long = || beyond_horizon(field, longest.period().as_nanos(), span_ns);
        let longest_ns = nanoseconds(longest.period()).ok_or_else(too_long)?;
        if longest_ns > HORIZON_LEAST_NS {
            return Err(too_long());
        }
        let burst_ns = longest_ns / ratio;
        Ok(Self {
            burst,
            sustain,
            ratio,
            burst_ns,
            first_request: alignment == Alignment::FirstRequest,
            value_bits,
        })
    }

    /// Burst periods in the sustain period.
    fn ratio(burst: Window, sustain: Window) -> Result<u64, ConfigError> {
        if sustain.limit() == 0 {
            return Err(ConfigError::Zero { field: "sustain limit" });
        }
        if sustain.period().is_zero() {
            return Err(ConfigError::ZeroPeriod { field: "sustain period" });
        }
        let (burst_ns, sustain_ns) = (burst.period().as_nanos(), sustain.period().as_nanos());
        if sustain_ns % burst_ns != 0 || sustain_ns <= burst_ns {
            return Err(ConfigError::NotAMultiple { burst: burst.period(), sustain: sustain.period() });
        }
        if sustain.limit() < burst.limit() {
            return Err(ConfigError::SustainBelowBurst { burst: burst.limit(), sustain: sustain.limit() });
        }
        // Beyond 2^64 the periods are beyond the horizon too, and are reported as that.
        Ok(u64::try_from(sustain_ns / burst_ns).unwrap_or(u64::MAX))
    }

    /// A timebase of this horizon and the layout beside it.
    pub(super) fn fit(&self, horizon_ns: u64) -> Result<(Timebase, Layout), ConfigError> {
        // Time starts up to two longest periods above 0 (one to be idle, one to line up with the
        // wall clock), and a phase shifts it by up to one more, which the timebase counts itself.
        let longest_ns = self.burst_ns * self.ratio;
        let ask = Ask {
            emissions: 1,
            period_ns: self.burst_ns,
            ahead: self.ratio,
            reserve_ns: 2 * longest_ns,
            value_bits: self.value_bits,
        };
        let time = Timebase::with_horizon(ask, horizon_ns).ok_or_else(|| {
            beyond_horizon("sustain period", u128::from(longest_ns), u128::from(HORIZON_LEAST_NS))
        })?;
        let fraction_bits = time.fraction_bits();
        let layout = Layout::new(&Needs {
            tick_max: (time.units(time.end_ns()) >> fraction_bits) + self.ratio,
            fraction_bits,
            first_request: self.first_request,
            ratio: self.ratio,
            burst: self.burst.limit(),
            sustain: self.sustain.map(|window| window.limit()),
            value_bits: self.value_bits,
        });
        Ok((time, layout.map_err(|misfit| self.too_wide(misfit))?))
    }

    pub(super) fn too_wide(&self, misfit: Misfit) -> ConfigError {
        let limit = self.burst.limit();
        let sustain = self.sustain.map_or(0, |window| window.limit());
        match misfit {
            Misfit::Window { limit_max: 0 }
            | Misfit::Burst { limit_max: 0 }
            | Misfit::Sustain { limit_max: 0, .. } => {
                let longest = self.sustain.unwrap_or(self.burst);
                ConfigError::PeriodsTooWide { burst: self.burst.period(), sustain: longest.period() }
            }
            Misfit::Window { limit_max } => {
                ConfigError::TooWide { field: "window limit", limit, limit_max, other: None }
            }
            Misfit::Burst { limit_max } => {
                let other = Some(("sustain limit", sustain));
                ConfigError::TooWide { field: "burst limit", limit, limit_max, other }
            }
            Misfit::Sustain { limit_max, burst } => {
                let other = Some(("burst limit", burst));
                ConfigError::TooWide { field: "sustain limit", limit: sustain, limit_max, other }
            }
        }
    }
}
