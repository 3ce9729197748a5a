use super::*;
use crate::replay::policy::tally::{KeyCount, RuleCount};
use crate::replay::strips::Counts;
use crate::replay::summary::{RefusedBy, TopClient};

const NS: u64 = 1_000_000_000;
/// 2 March 2026, 09:00 UTC.
const NINE: u64 = 1_772_442_000 * NS;

const LONG: &str = "a-host-with-a-name-that-is-much-longer-than-anybody-would-like.example.org";

/// A replay of so many rules that lasts so many seconds, with these names of keys.
fn policy(rules: usize, seconds: u64, name: &str) -> PolicySummary {
    let titles = (0..rules).map(|rule| format!("{name}-{rule}"));
    let mut summary = PolicySummary {
        strips: Strips::spanning(Some((NINE, NINE + seconds * NS)), titles.clone()),
        keys_refused: 40,
        ..PolicySummary::default()
    };
    summary.about.span = Some(Span { first_unix_ns: NINE, last_unix_ns: NINE + seconds * NS });
    (summary.totals.allowed, summary.totals.refused) = (7, 2_000_000);
    for (rule, title) in titles.enumerate() {
        let strip = &mut summary.strips.strips[rule].slots;
        let last = strip.len() - 1;
        strip[0] = [3, 1, 0, 0, 0, 0, 0];
        strip[last] = [1_234_567, 0, 0, 0, 0, 0, 7 * (rule as u64 % 2)];
        summary.rules.push(RuleCount { rule: title.clone(), ..RuleCount::default() });
        summary
            .headroom
            .push(Headroom::of_rule(&title, vec![10, 50, 90 + 40 * u32::try_from(rule).unwrap()]));
        let key = format!("{title} of {name}");
        let refused = 12_345_678 / (rule as u64 + 1);
        summary.top.push(KeyCount { rule: title, key, refused, passed: 1, ..KeyCount::default() });
    }
    summary
}

/// Every text of a drawing with the box that it needs: left, top, right, bottom.
fn boxes(document: &str) -> Vec<([i32; 4], String)> {
    let document = roxmltree::Document::parse(document).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    let mut boxes = Vec::new();
    for node in texts {
        let text = node.text().unwrap_or_default().trim().to_owned();
        let number = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
        let height = drawing::pixel(number("font-size") * 1.24);
        // Letters are about a quarter narrower than the widest that room is kept for.
        let width = drawing::width_of(&text, height) * 3 / 4;
        let (x, y) = (drawing::pixel(number("x")), drawing::pixel(number("y")));
        let along = match node.attribute("text-anchor") {
            Some("middle") => -width / 2,
            Some("end") => -width,
            _ => 0,
        };
        let down = match node.attribute("dy") {
            Some("0.5ex") => -height / 2,
            Some("0.76em") => 0,
            _ => -height,
        };
        let lies = [x + along, y + down, x + along + width, y + down + height];
        let upright = [x + down, y - width / 2, x + down + height, y + width / 2];
        boxes.push((if node.has_attribute("transform") { upright } else { lies }, text));
    }
    boxes
}

/// Nothing is cut off, and no text stands on another.
fn assert_legible(picture: &Picture<'_>) {
    let document = svg(picture).unwrap();
    let boxes = boxes(&document);
    assert!(boxes.len() > 8);
    for ([left, top, right, bottom], text) in &boxes {
        let inside = *left >= 0 && *top >= 0 && *right <= WIDTH && *bottom <= picture.height();
        assert!(inside, "{text:?} at {:?} of {}", (left, top, right, bottom), picture.height());
    }
    for (at, (one, text)) in boxes.iter().enumerate() {
        for (other, over) in &boxes[..at] {
            let apart =
                one[2] <= other[0] || other[2] <= one[0] || one[3] - 2 <= other[1] || other[3] - 2 <= one[1];
            assert!(apart, "{text:?} {one:?} on {over:?} {other:?}");
        }
    }
}

#[test]
fn drawings_of_any_length_and_number_of_rules_are_legible() {
    for rules in [1, 2, 5, 12] {
        for seconds in [0, 1, 59, 7_200, 86_400, 365 * 86_400] {
            for name in ["pages", LONG, "名前の長い規則と鍵と顧客とその他の多くのもの"]
            {
                assert_legible(&Picture::of_policy(&policy(rules, seconds, name)));
            }
        }
    }
}

#[test]
fn the_drawing_of_a_limit_tells_what_refused() {
    let mut summary = Summary {
        limit: "burst-sustain:10/15s,30/300s".to_owned(),
        source: LONG.to_owned(),
        strips: Strips::spanning(Some((NINE, NINE + 7_200 * NS)), [String::new()]),
        clients_refused: 2,
        headroom: vec![
            Headroom::of_clients("burst limit", vec![10; 1_000]),
            Headroom::of_clients("sustain limit", vec![150; 1_000]),
        ],
        ..Summary::default()
    };
    let by = RefusedBy { burst: 3, sustain: 20, both: 7, ..RefusedBy::default() };
    let client = |name: &str| TopClient { client: name.to_owned(), passed: 9, refused: 30, refused_by: by };
    summary.top = vec![client("203.0.113.17"), client(LONG)];
    summary.strips.strips[0].slots[3] = [40, 0, 3, 20, 7, 0, 0];
    let picture = Picture::of_limit(&summary);
    assert_legible(&picture);
    let document = svg(&picture).unwrap();
    let texts: Vec<String> = boxes(&document).into_iter().map(|(_, text)| text).collect();
    for text in ["passed", "burst only", "sustain only", "both windows", "203.0.113.17", "Refused: 2 clients"]
    {
        assert_eq!(texts.iter().filter(|other| *other == text).count(), 1, "{text}: {texts:?}");
    }
    assert_eq!(texts.iter().filter(|text| *text == "30 (76.9 %)").count(), 2, "{texts:?}");
    for part in &summary.headroom {
        assert!(texts.contains(&part.sentence), "{texts:?}");
    }
    // Each part is an area over time, and one of the legend; bars are areas too.
    let document = roxmltree::Document::parse(&document).unwrap();
    let filled = |colour: RGBColor| {
        let colour = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
        let areas = document.descendants().filter(|node| node.has_tag_name("polygon"));
        areas.filter(|node| node.attribute("fill") == Some(&colour)).count()
    };
    assert_eq!([Part::Passed, Part::Burst, Part::Both].map(|part| filled(looks(part).1)), [2, 4, 4]);
}

#[test]
fn a_replay_of_nothing_is_drawn() {
    assert!(svg(&Picture::of_limit(&Summary::default())).is_ok());
    assert!(svg(&Picture::of_policy(&PolicySummary::default())).is_ok());
}

/// As eyes without red cones, and without green ones, see a colour (Viénot, Brettel and Mollon 1999), in linear light.
fn seen((without_red, RGBColor(red, green, blue)): (bool, RGBColor)) -> [f64; 3] {
    let linear = |channel: u8| (f64::from(channel) / 255.0).powf(2.2);
    let (red, green, blue) = (linear(red), linear(green), linear(blue));
    let both =
        if without_red { 0.112_38 * red + 0.887_62 * green } else { 0.292_75 * red + 0.707_25 * green };
    let blue = if without_red {
        0.004_01 * red - 0.004_01 * green + blue
    } else {
        -0.022_34 * red + 0.022_34 * green + blue
    };
    // Back to what a screen is given, where distances are about as large as they look.
    [both, both, blue.max(0.0)].map(|channel| channel.powf(1.0 / 2.2))
}

#[test]
fn parts_are_told_apart_by_the_colour_blind() {
    let together = [Part::Passed, Part::Burst, Part::Sustain, Part::Both, Part::NoRoom];
    for without_red in [true, false] {
        for (at, one) in together.iter().enumerate() {
            for other in &together[..at] {
                let [one_seen, other_seen] = [one, other].map(|part| seen((without_red, looks(*part).1)));
                let squares = one_seen.iter().zip(other_seen).map(|(one, other)| (one - other).powi(2));
                let distance = squares.sum::<f64>().sqrt();
                assert!(distance > 0.2, "{one:?} and {other:?}: {distance:.2}, {without_red}");
            }
        }
    }
    assert_eq!(Counts::default().len(), Part::ALL.len());
}
