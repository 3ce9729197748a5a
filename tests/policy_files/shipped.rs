//! The policies that come with tidegate, and those on the page about the format.

use tidegate::policy::{OnRefusal, Rules};
use tidegate::{Alignment, Limit, Window};

use super::services::SERVICES;
use super::{root, secs, shipped, toml};

/// The published table, by service: burst in 15 s and sustain in 300 s.
#[test]
fn shipped_policies_are_read_without_a_warning() {
    let shipped = shipped();
    assert_eq!(shipped.len(), 4);
    for (name, text) in shipped {
        let rules = Rules::from_toml(&text, &name).unwrap_or_else(|problems| panic!("{problems}"));
        assert!(rules.warnings().is_empty(), "{name}: {:?}", rules.warnings());
        for rule in &rules.rules {
            assert!(
                rule.sentence().starts_with(&rule.name) && rule.sentence().ends_with('.'),
                "{}",
                rule.sentence()
            );
        }
    }
}

#[test]
fn the_default_policy_is_the_published_table() {
    let rules = Rules::default_policy();
    assert_eq!(rules.rules.len(), SERVICES.len());
    for (rule, (name, burst, sustain)) in rules.rules.iter().zip(SERVICES) {
        let limit = Limit::burst_sustain(Window::new(burst, secs(15)), Window::new(sustain, secs(300)));
        assert_eq!((&*rule.name, &rule.limits[..]), (name, &[limit.align(Alignment::FirstRequest)][..]));
        assert_eq!(format!("{:?}", rule.key), "[user, title]", "{name}");
        assert_eq!(rule.on_refusal, OnRefusal::Count, "{name}");
        assert_eq!(rule.exempt.titles, ["legacy-title-0001"], "{name}");
    }
}

#[test]
fn the_page_shows_policies_that_are_read() {
    let page = std::fs::read_to_string(root().join("docs/policy.md")).unwrap();
    let blocks = |kind: &str| -> Vec<String> {
        let fence = format!("```{kind}\n");
        let starts = page.split(&fence).skip(1);
        starts.map(|block| block.split("```").next().unwrap().to_owned()).collect()
    };
    assert!(blocks("toml").len() >= 4 && blocks("json").len() == 1);
    for block in blocks("toml") {
        assert!(toml(&block).warnings().is_empty(), "{block}");
    }
    Rules::from_json(&blocks("json")[0], "page").unwrap();
    // The message that the page shows is the one that is told.
    let broken = blocks("toml")[0].replace("burst =", "brust =");
    let told = Rules::from_toml(&broken, "limits.toml").unwrap_err().to_string();
    let shown = blocks("text")[0].trim_end().trim_end_matches('…').to_owned();
    assert!(told.lines().any(|line| line.starts_with(&shown)), "{told}\n{shown}");
}
