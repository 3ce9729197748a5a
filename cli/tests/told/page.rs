//! A message has what its page says, and nothing more.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Setting;
use super::clients::{RULES, Storm, storm};
use super::message::Message;
use super::receiver::{Receiver, Say};
use super::served::{page, wait_until};

/// The names in the first column of the table that begins with this.
fn named(page: &str, header: &str) -> BTreeSet<String> {
    let (_, table) = page.split_once(&format!("\n| {header} |")).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| "));
    let cells = rows.map(|row| row.split('|').nth(1).unwrap());
    cells.flat_map(|cell| cell.split(',').map(|name| name.trim().trim_matches('`').to_owned())).collect()
}

/// The names of an object's fields.
fn fields(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

/// The names of fields, and of what kind their values are.
fn shape(object: &Value) -> Vec<(&str, &str)> {
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    object.as_object().unwrap().iter().map(|(name, value)| (name.as_str(), kind(value))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_has_what_its_page_names_and_nothing_more() {
    let page = page("docs/webhooks.md");
    let example = page.split("```json\n").nth(1).unwrap().split("```").next().unwrap();
    let example = Message(serde_json::from_str(example).unwrap());
    let receiver = Receiver::start(|_| Say::Status(200)).await;
    let setting = Setting::new(RULES, "offenders = true").endpoint("all", &receiver, "interval_s = 0.05");
    let server = setting.start();
    let refused = storm(&server, Storm::Requests(140)).await;
    let recovered = || {
        let messages = receiver.accepted();
        let events = messages.iter().flat_map(Message::events);
        events.filter(|event| event["event"] == "recovered").count() >= refused.len()
    };
    wait_until("all have recovered", recovered);

    let of_attempt = named(&page, "field");
    for attempt in receiver.attempts() {
        let names = attempt.headers.keys().map(|name| name.as_str().to_owned());
        let own: BTreeSet<String> = names.filter(|name| name.starts_with("webhook")).collect();
        assert_eq!((attempt.method.as_str(), &own), ("POST", &of_attempt));
        assert_eq!(attempt.headers["content-type"], "application/json");
        assert!(attempt.body.len() < 20_000);
    }
    let (of_data, of_event) = (named(&page, "field of `data`"), named(&page, "field of an event"));
    assert!(of_attempt.len() == 3 && of_data.len() == 7 && of_event.len() == 18, "{of_data:?} {of_event:?}");
    let (mut kinds, mut offenders) = (BTreeSet::new(), 0);
    for message in receiver.accepted() {
        assert_eq!(shape(&message.0), shape(&example.0));
        assert_eq!((shape(message.data()), fields(message.data())), (shape(example.data()), of_data.clone()));
        for offender in message.offenders() {
            assert_eq!(shape(offender), shape(&example.offenders()[0]));
            offenders += 1;
        }
        for event in message.events() {
            assert_eq!(fields(event), of_event);
            let kind = event["event"].as_str().unwrap();
            // A warning is told as a recovery is.
            let like = if kind == "warned" { "recovered" } else { kind };
            let like = example.events().iter().find(|event| event["event"] == like).unwrap();
            assert_eq!(shape(event), shape(like), "{event}");
            kinds.insert(kind.to_owned());
        }
    }
    assert!(offenders > 0);
    let all = ["recovered", "refused", "still_refusing", "warned"];
    assert!(kinds.iter().eq(&all), "{kinds:?}");
}
