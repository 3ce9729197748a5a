use super::*;
use crate::replay::summary::{SkippedBy, SkippedLine};
use crate::replay::timeline::{Slot, Timeline};

fn plain(summary: &Summary, width: usize) -> String {
    anstream::adapter::strip_str(&text(summary, width)).to_string()
}

fn sample() -> Summary {
    let refused_by = RefusedBy { burst: 20, sustain: 70, both: 10, ..RefusedBy::default() };
    let start_unix_s = 1_772_442_000;
    Summary {
        source: "access.log".to_owned(),
        limit: "burst-sustain:10/15s,30/300s".to_owned(),
        align: Some("clock"),
        refusals_count: Some(true),
        lines: 2_006,
        skipped: 6,
        passed: 1_900,
        refused: 100,
        refused_by,
        clients: 12,
        clients_refused: 1,
        top: vec![TopClient { client: "x".repeat(60), passed: 5, refused: 100, refused_by }],
        span: Some(Span {
            first_unix_ns: start_unix_s * 1_000_000_000,
            last_unix_ns: (start_unix_s + 59) * 1_000_000_000,
        }),
        timeline: Timeline {
            start_unix_s,
            step_s: 30,
            slots: vec![Slot { passed: 1_900, refused: 0 }, Slot { passed: 0, refused: 100 }],
            outside: 0,
        },
        skipped_by: vec![SkippedBy { reason: "empty", lines: 6 }],
        skipped_first: vec![SkippedLine { line: 1_001, reason: "empty".to_owned() }],
        ..Summary::default()
    }
}

#[test]
fn every_part_is_there() {
    let page = plain(&sample(), 80);
    for part in [
        "burst-sustain:10/15s,30/300s on access.log\n",
        "2,000 requests of 12 clients, 02 Mar 2026 09:00:00 to 09:00:59 UTC\n",
        "windows begin at whole periods of Unix time; refused requests count\n",
        "  passed                  1,900   95.0 %  █",
        "    burst only               20    1.0 %  ▍",
        "    both                     10    0.5 %  ▏",
        "passed, at most 1,900 in 30 s\n",
        "Refused: 1 client\n",
        "xxx…",
        "Skipped: 6 lines of 2,006\n",
        "  line 1,001  empty\n",
        "  and 5 more; all of them by reason:\n",
    ] {
        assert!(page.contains(part), "{part:?} is not in:\n{page}");
    }
}

#[test]
fn no_line_is_wider_than_the_page() {
    let mut busy = sample();
    busy.incomplete = Some("reading stopped in line 1,234,567: the gzip data ends early".to_owned());
    busy.refused_by.full = 3;
    busy.timeline.outside = 1_234;
    busy.passed = 123_456_789;
    busy.skipped_first[0].reason = "other than client, identity and user before the time".to_owned();
    busy.skipped_by[0].reason = "other than client, identity and user before the time";
    let mut days = sample();
    days.span = Some(Span { first_unix_ns: 0, last_unix_ns: u64::MAX });
    days.top[0].client = "2001:db8:aaaa:bbbb::/64".to_owned();
    for width in 40..=132 {
        for summary in [sample(), busy.clone(), days.clone()] {
            for line in plain(&summary, width).lines().chain(sample_hint(width).lines()) {
                assert!(line.chars().count() <= width, "{width}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}

#[test]
fn reasons_break_where_they_pause() {
    for reason in [r#"bad time "x: y; z": no such day"#, "one; two; three", "empty"] {
        assert_eq!(phrases(reason).join(" "), reason);
    }
    assert_eq!(phrases(r#"bad time "1 2": no such day"#), [r#"bad time "1 2":"#, "no such day"]);
}

#[test]
fn strays_are_told() {
    assert!(!plain(&sample(), 80).contains("not shown"));
    for (outside, expected) in
        [(1, "  not shown: 1 request at a time far"), (2, "  not shown: 2 requests at times far")]
    {
        let mut summary = sample();
        summary.timeline.outside = outside;
        let page = plain(&summary, 80);
        assert!(page.contains(&format!("{expected} from all others\n")), "{page}");
    }
}

#[test]
fn columns_go_before_addresses_are_cut_and_are_named() {
    let mut summary = sample();
    for (client, width, header, without) in [
        ("2001:db8:aaaa:bbbb::/64", 80, "refused   share  passed  burst  sustain  both\n", None),
        ("2001:db8:aaaa:bbbb::/64", 60, "refused   share  passed\n", Some("burst, sustain, both")),
        ("2001:db8:aaaa:bbbb::/64", 40, "refused\n", Some("share, passed, burst, sustain, both")),
        ("192.0.2.1", 40, "refused   share  passed\n", Some("burst, sustain, both")),
    ] {
        summary.top[0].client = client.to_owned();
        let page = plain(&summary, width);
        assert!(page.contains(header) && page.contains(client), "{page}");
        match without {
            Some(names) => {
                let words: Vec<&str> = page.split_whitespace().collect();
                assert!(words.join(" ").contains(&format!("left out at this width: {names}")), "{page}");
            }
            None => assert!(!page.contains("want of room"), "{page}"),
        }
    }
}

#[test]
fn an_empty_log_has_a_short_report() {
    let summary = Summary { limit: "bucket:1/s,5".to_owned(), source: "x".to_owned(), ..Summary::default() };
    assert_eq!(plain(&summary, 80), "bucket:1/s,5 on x\n  0 requests of 0 clients\n");
}

#[test]
fn what_cannot_be_read_is_said() {
    let incomplete = Some("reading stopped in line 7: gone".to_owned());
    let page = plain(&Summary { incomplete, ..sample() }, 80);
    assert!(page.contains("The log was read only in part: reading stopped in line 7: gone\n"), "{page}");
}

#[test]
fn shares_do_not_round_to_nothing_or_everything() {
    for (part, whole, shown) in [
        (0, 0, "0 %"),
        (0, 5, "0 %"),
        (5, 5, "100 %"),
        (1, 3, "33.3 %"),
        (1, 100_000, "< 0.1 %"),
        (99_999, 100_000, "> 99.9 %"),
        (u64::MAX / 2, u64::MAX, "50.0 %"),
    ] {
        assert_eq!(percent(part, whole), shown, "{part} of {whole}");
    }
}
