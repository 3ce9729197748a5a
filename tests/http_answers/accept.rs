//! Which body a client prefers.

use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use tidegate::http::Answering;
use tidegate::{Denied, Limit, Manual, SingleLimiter, Window};

use super::{accepts, field, secs};

fn denied() -> Denied {
    let limiter = SingleLimiter::builder(Limit::window(Window::new(1, secs(60)))).clock(Manual::new());
    let limiter = limiter.build().unwrap();
    let _ = limiter.check();
    limiter.check().unwrap_err()
}

fn is_text(request: &HeaderMap) -> bool {
    let refusal = Answering::new().refusal(&denied(), request);
    match field(refusal.headers(), "content-type").unwrap() {
        "text/plain; charset=utf-8" => true,
        "application/problem+json" => false,
        other => panic!("{other}"),
    }
}

#[test]
fn text_where_text_is_preferred_and_problem_details_elsewhere() {
    assert!(!is_text(&HeaderMap::new()));
    for (accept, expected) in [
        ("", false),
        ("*/*", false),
        ("application/json", false),
        ("application/problem+json", false),
        ("application/json, text/plain, */*", false),
        ("text/plain", true),
        ("TEXT/Plain", true),
        ("text/*", true),
        ("text/html", true),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true),
        ("text/plain;q=0.5, application/json;q=0.4", true),
        ("text/plain;q=0.4, application/json;q=0.5", false),
        ("text/plain;q=0.5, */*;q=0.501", false),
        ("text/plain ; Q=0.9 , application/* ; q=0.8", true),
        ("image/png", false),
        // Zero is not at all; the closest range counts, wherever it stands.
        ("text/plain;q=0", false),
        ("application/*;q=0, */*;q=0.1", true),
        ("application/problem+json;q=0, application/json;q=0, */*;q=0.1", true),
        ("application/problem+json;q=0, */*", true),
        ("*/*, text/plain;q=0", false),
        ("text/*;q=0.9, text/plain;q=0.1, */*;q=0.5", false),
        // HTML is told in text only where text is not judged by itself.
        ("text/html, text/plain;q=0.1, application/json;q=0.5", false),
        ("text/html;q=0.6, application/json;q=0.5", true),
        // Parameters are part of the type.
        ("text/plain;charset=utf-8, */*;q=0.5", true),
        ("text/plain; charset=\"UTF-8\", */*;q=0.5", true),
        ("text/plain;charset=utf-16", false),
        ("text/plain;format=flowed, application/json;q=0.1", false),
        ("text/plain;charset=utf-8;q=0.1, text/plain, application/json;q=0.5", false),
        // Commas and semicolons in quotes part nothing.
        ("text/plain;charset=\"a,b\\\"; */*\", application/json;q=0.1", false),
        // What is malformed says nothing, and the rest counts.
        ("text/plain;q=2, application/json;q=0.1", false),
        ("text/plain;q=, application/json;q=0.1", false),
        ("text/plain;q=0.1234, application/json;q=0.1", false),
        ("text/plain;q=1.001, application/json;q=0.1", false),
        ("text/plain;q=-1, text/html;q=nan", false),
        ("plain, /, text/, ;;;, text/plain", true),
        ("text/plain;;", true),
        ("*/plain", false),
        (",,,", false),
        ("\"", false),
    ] {
        assert_eq!(is_text(&accepts(accept)), expected, "{accept}");
    }
}

#[test]
fn several_fields_are_one_list() {
    let mut request = accepts("application/json;q=0.5");
    assert!(!is_text(&request));
    request.append("accept", HeaderValue::from_static("text/plain"));
    assert!(is_text(&request));
}

proptest! {
    #[test]
    fn nothing_malformed_fails(bytes in prop::collection::vec(prop_oneof![
        any::<u8>(), prop::sample::select(b"text/plain*;,=q0.91\"\\ ".to_vec()),
    ], 0..64)) {
        let mut request = HeaderMap::new();
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            request.insert("accept", value);
            let _ = is_text(&request);
        }
    }

    /// Against what RFC 9110 says of two types, each named once, with plain numbers.
    #[test]
    fn the_higher_quality_wins(text in 0_u32..=1_000, json in 0_u32..=1_000, swaps: bool) {
        let number = |q: u32| format!("{}.{:03}", q / 1_000, q % 1_000);
        let (text_range, json_range) =
            (format!("text/plain;q={}", number(text)), format!("application/problem+json;q={}", number(json)));
        let accept = if swaps { format!("{json_range},{text_range}") } else { format!("{text_range}, {json_range}") };
        prop_assert_eq!(is_text(&accepts(&accept)), text > json);
    }
}
