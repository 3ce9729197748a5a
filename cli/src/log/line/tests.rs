use super::*;
use proptest::prelude::*;

const COMMON: &str = r#"192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 2326"#;

/// 2025-10-10 13:55:36 UTC.
const AT: u64 = 1_760_104_536;

fn seconds(line: &str) -> u64 {
    parse(line.as_bytes()).unwrap().at_unix_ns / 1_000_000_000
}

#[track_caller]
fn fails(line: &str, kind: &str) {
    let error = parse(line.as_bytes()).unwrap_err();
    assert_eq!(error.kind(), kind, "{line}");
}

#[test]
fn the_common_format_is_read() {
    let entry = Entry {
        client: "192.0.2.7",
        user: None,
        at_unix_ns: AT * 1_000_000_000,
        request: "GET / HTTP/1.1",
        status: Some(200),
        bytes: Some(2326),
        rest: "",
    };
    assert_eq!(parse(COMMON.as_bytes()), Ok(entry));
}

#[test]
fn what_follows_the_size_is_free() {
    for tail in [r#" "https://example.com/" "Browser/1.0""#, r#" "-" "-" 0.012 extra"#, " \"cut", " "] {
        assert_eq!(seconds(&format!("{COMMON}{tail}")), AT, "{tail}");
    }
}

#[test]
fn zones_are_applied() {
    for (time, at) in [
        ("10/Oct/2025:13:55:36 -0700", AT + 7 * 3600),
        ("10/Oct/2025:13:55:36 +0530", AT - 5 * 3600 - 1800),
        ("11/Oct/2025:00:55:36 +1100", AT),
        ("29/Feb/2024:23:59:59 +0000", 1_709_251_199),
        ("01/Jan/1970:00:00:00 +0000", 0),
    ] {
        assert_eq!(seconds(&COMMON.replace("10/Oct/2025:13:55:36 +0000", time)), at, "{time}");
    }
}

#[test]
fn fractions_of_a_second_are_kept() {
    let line = COMMON.replace(":36 ", ":36.0125 ");
    assert_eq!(parse(line.as_bytes()).unwrap().at_unix_ns, AT * 1_000_000_000 + 12_500_000);
}

#[test]
fn bad_times_are_named() {
    const RANGE: &str = "must lie between 1970 and July 2554";
    const SHAPE: &str = "time is not day/Mon/year:hh:mm:ss zone";
    for (time, why) in [
        ("31/Feb/2025:13:55:36 +0000", "no such day"),
        ("29/Feb/2100:13:55:36 +0000", "no such day"),
        ("00/Oct/2025:13:55:36 +0000", "no such day"),
        ("31/Jun/2025:13:55:36 +0000", "no such day"),
        ("10/Foo/2025:13:55:36 +0000", "no such month (Jan to Dec)"),
        ("10/10/2025:13:55:36 +0000", "no such month (Jan to Dec)"),
        ("10/Oct/2025:24:55:36 +0000", "no such time of day"),
        ("10/Oct/2025:13:60:36 +0000", "no such time of day"),
        ("10/Oct/2025:13:55:61 +0000", "no such time of day"),
        ("10/Oct/2025:13:55:36", "no zone, as in +0000"),
        ("10/Oct/2025:13:55:36.125", "no zone, as in +0000"),
        ("10/Oct/2025:13:55:36 UTC", "zone is not like +0000"),
        ("10/Oct/2025:13:55:36 ", "zone is not like +0000"),
        ("2025-10-10T13:55:36Z", SHAPE),
        ("10/Oct/2025 13:55:36 +0000", SHAPE),
        ("10/Oct/2025:13:55 +0000", SHAPE),
        ("ten/Oct/2025:13:55:36 +0000", SHAPE),
        ("10/Oct/20255:13:55:36 +0000", RANGE),
        ("31/Dec/1969:23:59:59 +0000", RANGE),
        ("10/Oct/9998:13:55:36 +0000", RANGE),
    ] {
        let line = COMMON.replace("10/Oct/2025:13:55:36 +0000", time);
        let error = parse(line.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), "bad time", "{time}");
        assert_eq!(error.to_string(), format!("bad time \"{time}\": {why}"));
    }
    let long = COMMON.replace("+0000", &"0".repeat(60));
    let error = parse(long.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("000…\": zone is not like"), "{error}");
}

#[test]
fn quotes_and_users_may_be_odd() {
    let quote = COMMON.replace("GET /", r#"GET /?q=\"x\\"#);
    assert_eq!(parse(quote.as_bytes()).unwrap().request, r#"GET /?q=\"x\\ HTTP/1.1"#);
    assert_eq!(seconds(&COMMON.replace("- - [", "- Jane Doe [")), AT);
    assert_eq!(seconds(&COMMON.replace("GET / HTTP/1.1", r"\x16\x03\x01")), AT);
    assert_eq!(seconds(&COMMON.replace("\"GET / HTTP/1.1\" 200 2326", "\"\" - -")), AT);
    assert_eq!(seconds(&COMMON.replace("GET /", "GET /[1]")), AT);
}

#[test]
fn faults_are_told_apart() {
    fails("", "empty");
    fails("  \t", "empty");
    fails("hello", "other than client, identity and user before the time");
    fails(&COMMON.replace("- - ", "- "), "other than client, identity and user before the time");
    fails(&format!(" {COMMON}"), "other than client, identity and user before the time");
    // A virtual host in front must not become the client.
    let before = "a field before the client, a virtual host perhaps; cut -d' ' -f2- drops it";
    fails(&format!("example.com:443 {COMMON}"), before);
    fails(&format!("example.com:443 {}", COMMON.replace("- - [", "- Jane Doe [")), before);
    fails(&COMMON.replace("- - [", "- - - ["), "other than client, identity and user before the time");
    fails("a b c d e f", "no time in brackets");
    fails("a b c [d", "no time in brackets");
    fails("a b c [d]", "no time in brackets");
    fails("a b c []", "no time in brackets");
    fails("a b c [10/Oct/2025:13:55:36 +0000", "no time in brackets");
    fails(&COMMON[..52], "no request in quotes after the time");
    fails(&COMMON.replace(" 200", " OK"), "no status of three digits after the request");
    fails(&COMMON.replace(" 200", " 2000"), "no size after the status");
    fails(&COMMON.replace(" 2326", ""), "no size after the status");
    fails(&COMMON.replace(" 2326", " -1"), "no size after the status");
    assert_eq!(parse(b"abc\xff - -"), Err(LineError::NotUtf8(3)));
}

proptest! {
    #[test]
    fn no_bytes_panic(line in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&line);
    }

    #[test]
    fn no_damage_to_a_good_line_panics(
        at in 0..COMMON.len(), cut in 0_usize..8, put in "\\PC{0,4}",
    ) {
        let mut line = COMMON.to_owned();
        line.replace_range(at..(at + cut).min(COMMON.len()), &put);
        let _ = parse(line.as_bytes());
    }

    #[test]
    fn no_damage_to_a_time_panics(at in 0_usize..26, cut in 0_usize..8, put in "[^\\]]{0,4}") {
        let mut time = "10/Oct/2025:13:55:36 +0000".to_owned();
        time.replace_range(at..(at + cut).min(26), &put);
        prop_assert!(!fault(&time).is_empty());
        let _ = unix_ns(&time);
    }

    #[test]
    fn written_lines_read_back(
        client in "[!-Z_a-z0-9é][!-Z_a-z0-9.:é]{0,20}",
        user in "[a-z]{1,8}( [a-z]{1,4})?",
        at in 0_i64..18_446_744_073,
        zone in -720_i32..=840,
        request in r#"([^"\\\r\n]|\\\PC){0,30}"#,
        status in prop::option::of(100_u16..1000),
        bytes in prop::option::of(any::<u64>()),
        tail in prop::sample::select(vec!["", " \"-\" \"Browser/1.0\"", " x"]),
    ) {
        let offset = jiff::tz::Offset::from_seconds(zone * 60).unwrap();
        let local = offset.to_datetime(jiff::Timestamp::from_second(at).unwrap());
        let sign = if zone < 0 { '-' } else { '+' };
        let (hours, minutes) = (zone.abs() / 60, zone.abs() % 60);
        let time = format!("{} {sign}{hours:02}{minutes:02}", local.strftime("%d/%b/%Y:%H:%M:%S"));
        let shown_status = status.map_or("-".to_owned(), |status| status.to_string());
        let shown_bytes = bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
        let line =
            format!("{client} - {user} [{time}] \"{request}\" {shown_status} {shown_bytes}{tail}");
        let at_unix_ns = u64::try_from(at).unwrap() * 1_000_000_000;
        let user = Some(&*user).filter(|user| *user != "-");
        let entry = Entry { client: &client, user, at_unix_ns, request: &request, status, bytes, rest: tail };
        prop_assert_eq!(parse(line.as_bytes()), Ok(entry));
    }
}
