#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "shares of a range, and a test fails by panicking"
)]

use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000_000;
const YEAR: u64 = 366 * 24 * 3600 * SECOND;

/// Rates from 1 in 20 years to 10^10 a second, by numerator and period.
fn asks() -> impl Strategy<Value = Ask> {
    let slow = (1..=1_000_u64, 1..=20 * YEAR);
    let fast = (1..=10_000_000_000_u64, Just(SECOND));
    let odd = (1..=1_000_000_u64, 1_000_000..=3_600 * SECOND);
    prop_oneof![slow, fast, odd].prop_map(|(emissions, period_ns)| Ask {
        emissions,
        period_ns,
        ahead: 1,
        reserve_ns: period_ns,
        value_bits: VALUE_BITS,
    })
}

/// The exact value of `ns` in units, as a fraction of `period_ns`.
fn exact(ask: &Ask, time: &Timebase, ns: u64) -> (u128, u128) {
    let scaled = u128::from(ask.emissions) << time.fraction_bits();
    // ns · n · 2^f may need more than 128 bits: split off whole periods.
    let (whole, rest) = (u128::from(ns / ask.period_ns), u128::from(ns % ask.period_ns));
    let period = u128::from(ask.period_ns);
    let high = rest * u128::from(ask.emissions);
    let (q, r) = (high / period, high % period);
    let fraction = r << time.fraction_bits();
    (whole * scaled + (q << time.fraction_bits()) + fraction / period, fraction % period)
}

proptest! {
    #[test]
    fn units_are_the_exact_value_rounded_down_or_at_most_one_above(ask in asks(), part in 0.0..1.0_f64) {
        prop_assume!(Timebase::new(ask).is_some());
        let time = Timebase::new(ask).unwrap();
        let ns = (part * time.end_ns() as f64) as u64;
        let (floor, rest) = exact(&ask, &time, ns);
        let units = u128::from(time.units(ns));
        prop_assert!(units == floor || (units == floor + 1 && rest > 0), "{units} for {floor} + {rest}");
        if rest == 0 {
            prop_assert_eq!(units, floor);
        }
    }

    #[test]
    fn a_multiplier_has_64_bits_and_is_rounded_up(emissions in 1..=u64::MAX, bits in 0..64_u32, period_ns in 1..=1_u64 << 62) {
        let emissions = (emissions >> bits).max(1);
        let (multiplier, exponent) = normalise(emissions, period_ns);
        prop_assert!(multiplier >= 1 << 63);
        prop_assert_eq!(u128::from(multiplier), (u128::from(emissions) << exponent).div_ceil(u128::from(period_ns)));
    }

    #[test]
    fn whole_periods_land_on_their_tick(ask in asks(), part in 0.0..1.0_f64) {
        prop_assume!(Timebase::new(ask).is_some());
        let time = Timebase::new(ask).unwrap();
        let periods = (part * (time.end_ns() / ask.period_ns) as f64) as u64;
        let units = u128::from(time.units(periods * ask.period_ns));
        prop_assert_eq!(units, (u128::from(periods) * u128::from(ask.emissions)) << time.fraction_bits());
    }

    #[test]
    fn the_first_nanosecond_at_a_unit_is_the_first(ask in asks(), part in 0.0..1.0_f64) {
        prop_assume!(Timebase::new(ask).is_some());
        let time = Timebase::new(ask).unwrap();
        let units = (part * time.units(time.end_ns()) as f64) as u64;
        if let Some(ns) = time.first_ns_at(units) {
            prop_assert!(time.units(ns) >= units);
            prop_assert!(ns == 0 || time.units(ns - 1) < units);
        } else {
            prop_assert!(time.units(time.end_ns()) < units);
        }
    }

    #[test]
    fn the_horizon_leaves_room_for_what_was_asked(ask in asks(), ahead in 1..1_u64 << 40) {
        let ask = Ask { ahead, ..ask };
        prop_assume!(Timebase::new(ask).is_some());
        let time = Timebase::new(ask).unwrap();
        prop_assert!(time.end_ns() >= HORIZON_LEAST_NS + ask.reserve_ns);
        let end = u128::from(time.units(time.end_ns())) + (u128::from(ahead) << time.fraction_bits());
        prop_assert!(end <= u128::from(VALUE_MAX));
        prop_assert_eq!(time.units(u64::MAX), time.units(time.end_ns()));
        prop_assert_eq!(time.first_ns_at(VALUE_MAX), None);
    }
}

fn base(emissions: u64, period_ns: u64) -> Timebase {
    Timebase::new(Ask { emissions, period_ns, ahead: 1, reserve_ns: period_ns, value_bits: VALUE_BITS })
        .unwrap()
}

/// Rounded down, the multiplier puts the start of a 15 s window one unit before it.
#[test]
fn every_window_start_of_36_years_is_exact() {
    let time = base(1, 15 * SECOND);
    for tick in (0..time.end_ns() / (15 * SECOND)).step_by(997) {
        assert_eq!(time.units(tick * 15 * SECOND) >> time.fraction_bits(), tick);
        assert_eq!(time.units((tick + 1) * 15 * SECOND - 1) >> time.fraction_bits(), tick);
    }
}

#[test]
fn horizons_are_decades_for_ordinary_rates_and_seven_years_for_the_highest() {
    for (emissions, period_ns) in [(1, YEAR), (1, 60 * SECOND), (100, SECOND), (1_000_000, SECOND)] {
        assert!(base(emissions, period_ns).end_ns() >= 36 * YEAR);
    }
    assert!(base(10_000_000_000, SECOND).end_ns() >= 7 * YEAR);
    let too_fast = Ask { emissions: u64::MAX, period_ns: 1, ahead: 1, reserve_ns: 1, value_bits: VALUE_BITS };
    assert_eq!(Timebase::new(too_fast), None);
}

#[test]
fn with_fewer_bits_time_lasts_nine_years_and_stays_as_fine() {
    let narrow = |value_bits| {
        let ask = Ask { emissions: 1, period_ns: SECOND, ahead: 1, reserve_ns: SECOND, value_bits };
        (Timebase::new(ask).unwrap(), value_bits)
    };
    let usual = base(1, SECOND);
    for (time, value_bits) in [60, 61].map(narrow) {
        assert_eq!((time.value_bits(), time.value_max()), (value_bits, (1 << value_bits) - 1));
        assert!((9 * YEAR..10 * YEAR).contains(&time.end_ns()), "{value_bits}");
        assert!(time.fraction_bits() >= usual.fraction_bits(), "{value_bits}");
    }
}

#[test]
fn ordinary_rates_tell_nanoseconds_apart() {
    for (emissions, period_ns) in [(1, SECOND), (30, 60 * SECOND), (1, 3600 * SECOND), (7_777, SECOND)] {
        let time = base(emissions, period_ns);
        assert!(time.units(1_000_001) > time.units(1_000_000));
    }
}

#[test]
fn the_extremes_of_rate_and_period_build_or_say_no() {
    for emissions in [1, 2, 3, 1 << 32, u64::MAX / 2, u64::MAX] {
        for period_ns in [1, 2, 3, SECOND, YEAR, 1 << 61, 1 << 62] {
            let ask = Ask { emissions, period_ns, ahead: 1, reserve_ns: period_ns, value_bits: VALUE_BITS };
            if let Some(time) = Timebase::new(ask) {
                let whole = (ask.reserve_ns / period_ns) * period_ns;
                let expected =
                    (u128::from(whole / period_ns) * u128::from(emissions)) << time.fraction_bits();
                assert_eq!(u128::from(time.units(whole)), expected, "{emissions} in {period_ns}");
            }
        }
    }
}

#[test]
fn long_spans_need_more_than_128_bits_and_get_them() {
    // 1 in 20 years with a debt of 2^40: whole units are minutes, and the shift is above 64.
    let time = Timebase::new(Ask {
        emissions: 1,
        period_ns: 20 * YEAR,
        ahead: 1 << 40,
        reserve_ns: YEAR,
        value_bits: VALUE_BITS,
    })
    .unwrap();
    assert!(time.shift > 64);
    let ns = time.first_ns_at(12_345).unwrap();
    assert_eq!((time.units(ns), time.units(ns - 1)), (12_345, 12_344));
    assert_eq!(time.span_ns(VALUE_MAX), u64::MAX);
}
