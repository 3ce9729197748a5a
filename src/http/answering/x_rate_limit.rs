//! `X-RateLimit-Limit`, `-Remaining` and `-Reset`, which no standard describes: of one limit, the nearest, and of a refusal the
//! one to wait for.

use std::time::{Duration, SystemTime};

use http::HeaderValue;

use super::quota::{Quota, Quotas};
use super::text::{self, Buffer};
use super::{Answer, Dialect, Dialects};
use crate::answer::whole_seconds;
use crate::policy::compare_shares;

/// The three fields.
pub(super) struct XRateLimit {
    pub(super) limit: Option<HeaderValue>,
    pub(super) remaining: Option<HeaderValue>,
    pub(super) reset: Option<HeaderValue>,
}

/// The fields of the dialects; `None` where no limit counts.
pub(super) fn fields<'a>(
    answer: Answer<'a>,
    quotas: &Quotas<'a>,
    dialects: Dialects,
    now: impl FnOnce() -> SystemTime,
) -> Option<XRateLimit> {
    let nearest = nearest(answer, quotas)?;
    let mut to = Buffer::new();
    text::integer(nearest.state.limit, &mut to);
    if dialects.has(Dialect::XEnvoy) {
        all_limits(quotas, &mut to);
    }
    let limit = text::value(&to);
    // What a refused client waits for is that its request passes, not that any would.
    let wait = answer.retry_after().or(nearest.next_after);
    let reset = if dialects.has(Dialect::XEpoch) {
        epoch_secs(now(), wait.unwrap_or_default())
    } else {
        wait.map_or(0, whole_seconds)
    };
    Some(XRateLimit { limit, remaining: text::number(nearest.remaining), reset: text::number(reset) })
}

/// `, 10;w=1, 1000;w=3600`, behind the limit that is nearest.
fn all_limits(quotas: &Quotas<'_>, to: &mut Buffer) {
    for (_, quota) in quotas.iter() {
        text::comma(to);
        text::integer(quota.state.limit, to);
        if let Some(seconds) = text::whole_period(quota.state.period) {
            to.extend_from_slice(b";w=");
            text::integer(seconds, to);
        }
    }
}

/// The second of Unix time at which a wait that begins now is over, not earlier. 0 on a clock that stands before 1970.
fn epoch_secs(now: SystemTime, wait: Duration) -> u64 {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let end = since.saturating_add(wait);
    end.as_secs().saturating_add(u64::from(end.subsec_nanos() > 0))
}

/// The window that is told: of the limit to wait for, the one that it waits for; of the nearest limit, the one with the
/// smallest share left, of equals the one that takes longer to give more.
fn nearest<'q, 'a>(answer: Answer<'a>, quotas: &'q Quotas<'a>) -> Option<&'q Quota<'a>> {
    match answer.nearest()? {
        Err(denied) => quotas.binding(denied).map(|(_, quota)| quota),
        Ok(pass) => {
            let windows = quotas.of_answer(Ok(pass)).map(|(_, quota)| quota);
            windows.reduce(|one, other| if is_nearer(other, one) { other } else { one })
        }
    }
}

fn is_nearer(one: &Quota<'_>, other: &Quota<'_>) -> bool {
    let share = |quota: &Quota<'_>| (quota.remaining, quota.state.limit);
    let order = compare_shares(share(one), share(other));
    order.then(other.state.next_after.cmp(&one.state.next_after)).is_lt()
}
