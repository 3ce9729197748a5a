//! `X-RateLimit-Limit`, `-Remaining` and `-Reset`, which no standard describes: of one limit, the nearest, and of a refusal the
//! one to wait for.

use std::time::{Duration, SystemTime};

use http::HeaderValue;

use super::quota::{Quota, Quotas, is_same};
use super::text::{self, Buffer};
use crate::answer::Denied;
use crate::policy::compare_shares;

/// What the nearest limit admits, and behind it, if wanted, what all do: `10, 10;w=1, 1000;w=3600`.
pub(super) fn limit(
    nearest: &Quota<'_>,
    quotas: &Quotas<'_>,
    has_all: bool,
    to: &mut Buffer,
) -> Option<HeaderValue> {
    text::integer(nearest.state.limit, to);
    for (_, quota) in quotas.iter().filter(|_| has_all) {
        text::comma(to);
        text::integer(quota.state.limit, to);
        if let Some(seconds) = text::whole_period(quota.state.period) {
            to.extend_from_slice(b";w=");
            text::integer(seconds, to);
        }
    }
    text::taken(to)
}

/// The second of Unix time at which a wait that begins now is over, not earlier. A clock that stands before 1970 stands there.
pub(super) fn epoch_secs(now: SystemTime, wait: Duration) -> u64 {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let end = since.saturating_add(wait);
    end.as_secs().saturating_add(u64::from(end.subsec_nanos() > 0))
}

/// The window that is told; `None` where no limit counts. Of a refusal it is the one that it waits for, else the one with the
/// smallest share left: the one of [`Verdict::nearest`](crate::policy::Verdict::nearest). Of equals it is the first, but of one
/// limit the one that takes longer to give more.
pub(super) fn nearest<'q, 'a>(binding: Option<&'a Denied>, quotas: &'q Quotas<'a>) -> Option<&'q Quota<'a>> {
    match binding {
        Some(denied) => quotas.binding(denied).map(|(_, quota)| quota),
        None => {
            let all = quotas.iter().map(|(_, quota)| quota);
            all.reduce(|one, other| if is_nearer(other, one) { other } else { one })
        }
    }
}

/// Whether one window is nearer to its end than another that stands before it.
fn is_nearer(one: &Quota<'_>, before: &Quota<'_>) -> bool {
    let share = |quota: &Quota<'_>| (quota.remaining, quota.state.limit);
    let takes_longer =
        || is_same(one.answer, before.answer) && one.state.next_after > before.state.next_after;
    let order = compare_shares(share(one), share(before));
    order.is_lt() || order.is_eq() && takes_longer()
}
