//! How large the future of an admitted request is.

use std::future::Ready;

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use tidegate::Ticking;
use tidegate::http::{Extractor, Fields, ResponseFuture};

type Inner = Ready<Result<Response<Full<Bytes>>, ()>>;

/// The future behind it, the fields, and two words: no verdict, which has room for eight limits.
#[test]
fn no_verdict_is_kept_across_the_call() {
    let size = size_of::<ResponseFuture<Inner, Ticking, Extractor>>();
    let parts = size_of::<Inner>() + size_of::<Fields>() + 2 * size_of::<usize>();
    assert!(size <= parts, "{size} > {parts}");
    assert!(size_of::<tidegate::policy::Verdict>() > parts);
}
