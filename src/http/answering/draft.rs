//! `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers-10, as lists of RFC 9651.

use http::HeaderValue;

use super::quota::Quotas;
use super::text::{self, Buffer};
use crate::answer::whole_seconds;

/// `"burst";q=30;w=15, "sustain";q=100;w=300`; `None` where no limit counts.
pub(super) fn policy(quotas: &Quotas<'_>, to: &mut Buffer) -> Option<HeaderValue> {
    for (name, quota) in quotas.told() {
        text::comma(to);
        text::quoted(name, to);
        to.extend_from_slice(b";q=");
        text::integer(quota.state.limit, to);
        if let Some(seconds) = text::whole_period(quota.state.period) {
            to.extend_from_slice(b";w=");
            text::integer(seconds, to);
        }
    }
    text::taken(to)
}

/// `"burst";r=0;t=9, "sustain";r=65;t=294`; `None` where no limit counts.
pub(super) fn limit(quotas: &Quotas<'_>, to: &mut Buffer) -> Option<HeaderValue> {
    for (name, quota) in quotas.told() {
        text::comma(to);
        text::quoted(name, to);
        to.extend_from_slice(b";r=");
        text::integer(quota.remaining, to);
        if let Some(wait) = quota.next_after {
            to.extend_from_slice(b";t=");
            text::integer(whole_seconds(wait), to);
        }
    }
    text::taken(to)
}
