//! What arrived, as a partner reads it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::receiver::Attempt;

/// Whom a rule refuses: its name, and the key.
pub(crate) type Whom = (String, String);

pub(crate) struct Message(pub(crate) Value);

impl Message {
    pub(crate) fn of(attempt: &Attempt) -> Self {
        Self(serde_json::from_slice(&attempt.body).unwrap())
    }

    pub(crate) fn data(&self) -> &Value {
        assert_eq!(self.0["type"], "tidegate.limits");
        &self.0["data"]
    }

    pub(crate) fn events(&self) -> &[Value] {
        self.data()["events"].as_array().unwrap()
    }

    pub(crate) fn offenders(&self) -> &[Value] {
        self.data()["offenders"].as_array().unwrap()
    }

    /// How many events its entries stand for.
    pub(crate) fn times(&self) -> u64 {
        self.events().iter().map(|event| event["times"].as_u64().unwrap()).sum()
    }
}

/// How many events all of them tell of.
pub(crate) fn times(messages: &[Message]) -> u64 {
    messages.iter().map(Message::times).sum()
}

/// What a partner knows of one key when it has read all messages.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// As it was told on the way: first, and period by period.
    pub(crate) refused: u64,
    /// As it was told in the end.
    pub(crate) refused_in_all: u64,
    pub(crate) refused_first_at: Option<Timestamp>,
    pub(crate) recovered_at: Option<Timestamp>,
    pub(crate) events: u64,
}

/// What is told of each key.
pub(crate) fn known(messages: &[Message]) -> BTreeMap<Whom, Known> {
    let mut all = BTreeMap::<Whom, Known>::new();
    for event in messages.iter().flat_map(Message::events) {
        let text = |name: &str| event[name].as_str().unwrap();
        let known = all.entry((text("rule").to_owned(), text("key").to_owned())).or_default();
        let time = |name: &str| text(name).parse::<Timestamp>().unwrap();
        let refused = event["refused"].as_u64().unwrap();
        known.events += event["times"].as_u64().unwrap();
        match text("event") {
            "warned" => assert_eq!(refused, 0),
            "refused" => {
                known.refused += refused;
                known.refused_first_at.get_or_insert(time("first_at"));
            }
            "still_refusing" => known.refused += refused,
            "recovered" => {
                known.refused_in_all += refused;
                known.recovered_at = Some(time("at"));
            }
            other => panic!("{other:?} is no event"),
        }
    }
    all
}

/// Whether they follow each other without a gap, and nothing is missing.
pub(crate) fn assert_whole(messages: &[Message]) {
    for message in messages {
        let data = message.data();
        assert_eq!((data["left_out"].as_u64(), data["undelivered"].as_u64()), (Some(0), Some(0)));
        assert_eq!(message.0["timestamp"], data["until"]);
    }
    for two in messages.windows(2) {
        assert_eq!(two[1].data()["since"], two[0].data()["until"]);
    }
}
