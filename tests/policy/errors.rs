//! What cannot be honoured is told by rule, field, value and range.

use tidegate::policy::{KeyPart, Policy, PolicyError, Rule};
use tidegate::{ConfigError, Limit, Rate, Window};

use super::{rule, rules};
use crate::common::secs;

fn error(all: Vec<Rule>) -> PolicyError {
    Policy::new(rules(all)).expect_err("a policy that cannot be built")
}

#[test]
fn an_error_names_rule_field_value_and_range() {
    let limit = Limit::bucket(Rate::per_second(1), 1);
    let good = || rule("good", vec![], &[limit]);
    let bad = || Rule { name: "bad".to_owned(), ..good() };
    let network = |v4_bits, v6_bits| vec![KeyPart::ClientIp { v4_bits, v6_bits }];
    for (rule, told) in [
        (Rule { limits: vec![], ..bad() }, "limits is a list of 0; it must be a list of 1 to 8"),
        (Rule { limits: vec![limit; 9], ..bad() }, "limits is a list of 9; it must be a list of 1 to 8"),
        (Rule { warn_percent: 0, ..bad() }, "warn_percent is 0; it must be 1 to 100"),
        (Rule { warn_percent: 101, ..bad() }, "warn_percent is 101; it must be 1 to 100"),
        (Rule { key: network(33, 64), ..bad() }, "client_ip v4_bits is 33; it must be 0 to 32"),
        (Rule { key: network(32, 129), ..bad() }, "client_ip v6_bits is 129; it must be 0 to 128"),
        (Rule { max_keys: 0, ..bad() }, "limits[1]: max_keys is 0; it must be at least 1"),
        (
            Rule { limits: vec![limit, Limit::window(Window::new(0, secs(1)))], ..bad() },
            "limits[2]: window limit is 0; it must be at least 1",
        ),
    ] {
        let error = error(vec![good(), rule]);
        assert_eq!(error.to_string(), format!("rule \"bad\": {told}"));
        assert_eq!(error.rule(), Some("bad"));
        assert!(told.starts_with(error.field()), "{}", error.field());
    }
    assert_eq!(
        error(vec![good(), good()]).to_string(),
        "rule \"good\": name is that of another rule; it must be unique"
    );
    assert_eq!(
        error(vec![Rule { name: String::new(), ..good() }]).to_string(),
        "rule \"\": name is empty; it must be a text"
    );
    let eight = Rule { limits: vec![limit; 8], ..good() };
    assert!(Policy::new(rules(vec![eight])).is_ok());
    assert!(Policy::new(rules(vec![])).is_ok());
}

#[test]
fn the_limit_s_own_error_is_the_source() {
    let bad = rule("bad", vec![], &[Limit::bucket(Rate::per_second(0), 1)]);
    let error = error(vec![bad]);
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.downcast_ref(), Some(&ConfigError::Zero { field: "rate" }));
}
