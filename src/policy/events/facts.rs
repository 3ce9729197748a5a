//! How a limit stood for a key.

use std::time::Duration;

use crate::answer::{Denied, Pass, Standing};
use crate::decision::{Reason, WindowName, WindowState};

/// What an event tells of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) window: WindowName,
    pub(super) limit: u64,
    pub(super) period: Duration,
    pub(super) used: u64,
    pub(super) remaining: u64,
    pub(super) reason: Option<Reason>,
    pub(super) retry_after: Option<Duration>,
    /// How long the period still lasts: of a window until its end, of a bucket as long as it takes to fill.
    pub(super) ends_after: Duration,
}

impl Facts {
    pub(super) fn of(answer: &Result<Pass, Denied>) -> Self {
        match answer {
            Ok(pass) => Self::standing(Standing { snapshot: pass.snapshot }),
            Err(denied) => {
                let (windows, binding) = (denied.windows(), denied.binding());
                let state = windows.iter().find(|state| state.name == binding).unwrap_or(&windows[0]);
                Self {
                    remaining: denied.remaining(),
                    reason: Some(denied.reason()),
                    retry_after: denied.retry_after(),
                    ..Self::of_window(state)
                }
            }
        }
    }

    /// Of the window of which the largest share is used.
    pub(super) fn standing(standing: Standing) -> Self {
        let windows = standing.windows();
        let share = |state: &WindowState| (u128::from(state.observed) << 64) / u128::from(state.limit.max(1));
        let fullest = windows.iter().reduce(|one, other| if share(other) > share(one) { other } else { one });
        Self { retry_after: standing.retry_after(1), ..Self::of_window(fullest.unwrap_or(&windows[0])) }
    }

    fn of_window(state: &WindowState) -> Self {
        let whole = state.name == WindowName::Bucket || state.reset_after.is_zero();
        Self {
            window: state.name,
            limit: state.limit,
            period: state.period,
            used: state.observed,
            remaining: state.remaining,
            reason: None,
            retry_after: None,
            ends_after: if whole { state.period } else { state.reset_after.min(state.period) },
        }
    }

    /// The same of a key that has used nothing.
    pub(super) fn unused(&self) -> Self {
        let Self { window, limit, period, .. } = *self;
        Self {
            window,
            limit,
            period,
            used: 0,
            remaining: limit,
            reason: None,
            retry_after: Some(Duration::ZERO),
            ends_after: period,
        }
    }
}
