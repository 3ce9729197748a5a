//! Whatever is in a policy file: read without a panic in either spelling, refused with places that are in the text, or
//! understood so that it is written out, read and written the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate::policy::{Problems, Rules};

/// Every problem has a line of the text and prints as one line.
fn assert_told(text: &str, problems: &Problems) {
    let lines = text.split('\n').count();
    for problem in problems {
        let line = problem.line().expect("a text has lines");
        assert!((1..=lines).contains(&line), "{text:?}: {problem}");
        assert!(problem.column() >= Some(1));
        assert_eq!(problem.to_string().lines().count(), 1, "{text:?}: {problem:?}");
    }
}

fn assert_kept(text: &str, rules: &Rules) {
    let written = rules.to_toml().expect("no file has functions");
    let read =
        Rules::from_toml(&written, "f").unwrap_or_else(|problems| panic!("{text:?}\n{written}\n{problems}"));
    assert_eq!(read.to_toml().expect("the same"), written, "{text:?}");
    let json = rules.to_json().expect("no file has functions");
    let read = Rules::from_json(&json, "f").unwrap_or_else(|problems| panic!("{text:?}\n{json}\n{problems}"));
    assert_eq!(read.to_toml().expect("the same"), written, "{text:?}");
    for rule in &rules.rules {
        assert!(rule.sentence().ends_with('.'));
    }
    let _ = rules.warnings();
}

fuzz_target!(|text: &str| {
    for read in [Rules::from_toml(text, "f"), Rules::from_json(text, "f")] {
        match read {
            Ok(rules) => assert_kept(text, &rules),
            Err(problems) => assert_told(text, &problems),
        }
    }
});
