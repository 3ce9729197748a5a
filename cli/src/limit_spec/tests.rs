use super::*;
use proptest::prelude::*;

#[track_caller]
fn fails(spec: &str, at: usize, expected: &str) {
    let error = spec.parse::<LimitSpec>().unwrap_err();
    assert_eq!((error.offset(), error.expected()), (at, expected), "{error}");
}

fn quota(count: u64, period_count: u64, unit: Unit) -> Quota {
    let period = Period { count: period_count, unit };
    Quota { count, period }
}

#[test]
fn the_documented_spellings_parse() {
    assert_eq!("bucket:1/s,5".parse(), Ok(LimitSpec::Bucket { rate: quota(1, 1, Unit::Second), burst: 5 }));
    assert_eq!(
        "bucket:1/10s,10".parse(),
        Ok(LimitSpec::Bucket { rate: quota(1, 10, Unit::Second), burst: 10 })
    );
    assert_eq!(
        "burst-sustain:30/15s,100/300s".parse(),
        Ok(LimitSpec::BurstSustain {
            burst: quota(30, 15, Unit::Second),
            sustain: quota(100, 300, Unit::Second),
        })
    );
    assert_eq!("window:100/60s".parse(), Ok(LimitSpec::Window(quota(100, 60, Unit::Second))));
    assert_eq!("sliding:100/60s".parse(), Ok(LimitSpec::Sliding(quota(100, 60, Unit::Second))));
}

#[test]
fn every_unit_has_its_length() {
    for (period, length) in [
        ("500ms", Duration::from_millis(500)),
        ("s", Duration::from_secs(1)),
        ("m", Duration::from_secs(60)),
        ("h", Duration::from_secs(3_600)),
        ("d", Duration::from_secs(86_400)),
        ("36500d", Period::MAX),
    ] {
        let spec: LimitSpec = format!("window:7/{period}").parse().unwrap();
        let LimitSpec::Window(quota) = spec else {
            panic!("{spec:?} is no window");
        };
        assert_eq!(quota.period.duration(), length, "{period}");
    }
}

#[test]
fn a_limit_remembers_as_long_as_it_takes_to_recover() {
    for (spec, memory_s) in [
        ("bucket:1/10s,10", 100),
        ("bucket:3/s,10", 4),
        ("window:100/60s", 60),
        ("sliding:100/60s", 120),
        ("burst-sustain:30/15s,100/300s", 300),
    ] {
        assert_eq!(spec.parse::<LimitSpec>().unwrap().memory(), Duration::from_secs(memory_s), "{spec}");
    }
}

#[test]
fn errors_point_at_the_place() {
    fails("", 0, KINDS);
    fails("buckets:1/s,5", 0, KINDS);
    fails("bucket:", 7, COUNT);
    fails("bucket:0/s,5", 7, COUNT);
    fails("bucket:99999999999999999999/s,5", 7, COUNT);
    fails("bucket:1", 8, "'/' and a period, as in 30/15s");
    fails("bucket:1/x,5", 9, UNIT);
    fails("bucket:1/10,5", 11, UNIT);
    fails("bucket:1/0s,5", 9, COUNT);
    fails("bucket:1/36501d,5", 9, "a period of at most 36500d");
    fails("bucket:1/18446744073709551615d,5", 9, "a period of at most 36500d");
    fails("bucket:1/s", 10, "a comma and the burst, as in bucket:1/s,5");
    fails("bucket:1/s,five", 11, COUNT);
    fails("bucket:1/s,5 ", 12, "the end of the limit");
    fails("window:100/60s,1", 14, "the end of the limit");
    fails("window:1/€", 9, UNIT);
}

#[test]
fn the_caret_stands_under_the_place() {
    let error = "bucket:1/x,5".parse::<LimitSpec>().unwrap_err();
    assert_eq!(error.to_string(), "expected a unit: ms, s, m, h or d\n\n  bucket:1/x,5\n           ^ here");
}

proptest! {
    #[test]
    fn what_is_printed_parses_to_itself(
        kind in 0_u8..4,
        count in 1_u64..,
        period in 1_u64..36_500,
        unit in 0_usize..5,
        burst in 1_u64..,
    ) {
        let units = [Unit::Millisecond, Unit::Second, Unit::Minute, Unit::Hour, Unit::Day];
        let first = quota(count, period, units[unit]);
        let spec = match kind {
            0 => LimitSpec::Bucket { rate: first, burst },
            1 => LimitSpec::Window(first),
            2 => LimitSpec::Sliding(first),
            _ => LimitSpec::BurstSustain { burst: first, sustain: quota(burst, 1, Unit::Day) },
        };
        prop_assert_eq!(spec.to_string().parse::<LimitSpec>(), Ok(spec));
    }

    #[test]
    fn no_input_panics(spec in "(bucket:|window:|sliding:|burst-sustain:)?\\PC{0,30}") {
        if let Err(error) = spec.parse::<LimitSpec>() {
            let shown = error.to_string();
            prop_assert!(shown.contains('^'));
        }
    }
}
