//! A storm that passes, and partners of every temper.

use std::collections::BTreeSet;

use http::Request;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::Setting;
use super::clients::{AllRefused, RULES, Storm, storm};
use super::message::{Message, assert_whole, known, times};
use super::receiver::{Receiver, Say};
use super::served::{Folder, Server, wait_until};

const TOKEN: &str = "correct-horse-battery-staple";
/// What a time that is told may be off: by what the server's clock ticks, and by how the machine's is set meanwhile.
const SLACK: SignedDuration = SignedDuration::from_secs(1);

/// One of each temper.
struct Partners {
    fine: Receiver,
    /// It fails once.
    moody: Receiver,
    /// It holds its answers.
    slow: Receiver,
    /// It sends all to elsewhere.
    moved: Receiver,
    elsewhere: Receiver,
    gone: Receiver,
}

impl Partners {
    async fn start() -> Self {
        let elsewhere = Receiver::start(|_| Say::Status(200)).await;
        let to = elsewhere.url();
        Self {
            fine: Receiver::start(|_| Say::Status(204)).await,
            moody: Receiver::start(|number| Say::Status(if number == 0 { 500 } else { 200 })).await,
            slow: Receiver::start(|_| Say::Held).await,
            moved: Receiver::start(move |_| Say::Redirect(to.clone())).await,
            elsewhere,
            gone: Receiver::start(|_| Say::Status(410)).await,
        }
    }

    fn server(&self) -> Server {
        let folder = Folder::new();
        let token = folder.0.join("token");
        std::fs::write(&token, TOKEN).unwrap();
        let often = "interval_s = 0.05";
        Setting::new(RULES, "attempts_max = 2\nattempt_timeout_s = 300")
            .endpoint("fine", &self.fine, &format!("rules = [\"partner\"]\nkeys = [\"ada\"]\n{often}"))
            .endpoint("moody", &self.moody, &format!("rules = [\"device\"]\nkeys = [\"ada-*\"]\n{often}"))
            .endpoint("slow", &self.slow, &format!("rules = [\"device\"]\nkeys = [\"bob-?\"]\n{often}"))
            .endpoint("moved", &self.moved, &format!("keys = [\"ada-1\"]\n{often}"))
            .endpoint("gone", &self.gone, &format!("rules = [\"part*\"]\nkeys = [\"ada\"]\n{often}"))
            .arg("--admin-token-file", token.to_str().unwrap())
            .start()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_is_told_to_each_partner_whatever_the_others_answer() {
    let partners = Partners::start().await;
    let mut server = partners.server();
    let refused = storm(&server, Storm::Requests(80)).await;
    let keys: Vec<&str> = refused.keys().map(|(_, key)| key.as_str()).collect();
    assert_eq!(
        keys,
        ["ada-1", "ada-2", "ada-3", "bob-1", "ada", "bob"],
        "the storm has the shape that it should have"
    );
    assert!(refused.values().all(|refused| refused.times >= 10), "{refused:?}");
    the_worst_is_known(&server, &refused).await;

    // Those who answer know all of it while one of them still has the first message in hand.
    all_is_known(&partners.fine, &refused, "partner", "ada");
    all_is_known(&partners.moody, &refused, "device", "ada-");
    assert_eq!(partners.slow.attempts().len(), 1);
    assert_eq!(partners.slow.attempts()[0].answered, None);
    partners.slow.release();
    all_is_known(&partners.slow, &refused, "device", "bob-");

    failed_once_and_then_accepted(&partners.moody);
    let lost_to_moved = known(&partners.moody.accepted())[&whom("device", "ada-1")].events;
    counts_are_right(&server, &partners, lost_to_moved).await;
    server.wait_for_log("webhook answered 410: it gets nothing more until the next start endpoint=\"gone\"");
    server.wait_for_log("why=\"answered 307, a redirect\"");
    server.signal("-TERM");
    assert_eq!(server.ended(), Some(0));
    server.wait_for_log("webhooks stopped messages_delivered=");
    assert!(!server.log().contains("lost") && !server.log().contains("ada"), "{}", server.log());
    // Not later either.
    assert_eq!((partners.gone.attempts().len(), partners.elsewhere.connections()), (1, 0));
}

fn whom(rule: &str, key: &str) -> (String, String) {
    (rule.to_owned(), key.to_owned())
}

/// Waits until a partner has been told that each of its keys has recovered; then it knows by which rule, who, how often, from when and until when.
fn all_is_known(receiver: &Receiver, refused: &AllRefused, rule: &str, keys: &str) {
    let own = refused.iter().filter(|((of, key), _)| of == rule && key.starts_with(keys));
    let own: AllRefused = own.map(|(whom, refused)| (whom.clone(), *refused)).collect();
    let is_over = || {
        let known = known(&receiver.accepted());
        own.iter()
            .all(|(whom, refused)| known.get(whom).is_some_and(|known| known.refused_in_all == refused.times))
    };
    wait_until(&format!("{own:?} is told"), is_over);
    let messages = receiver.accepted();
    assert_whole(&messages);
    let known = known(&messages);
    assert!(known.keys().eq(own.keys()), "nobody else's: {known:?}");
    for (whom, refused) in own {
        let known = &known[&whom];
        assert_eq!((known.refused, known.refused_in_all), (refused.times, refused.times), "{whom:?}");
        let (first, recovered) = (known.refused_first_at.unwrap(), known.recovered_at.unwrap());
        let range = refused.first_asked - SLACK..=refused.first + SLACK;
        assert!(range.contains(&first), "{whom:?}: {first} is not in {range:?}");
        let range = refused.last - SLACK..=Timestamp::now() + SLACK;
        assert!(range.contains(&recovered), "{whom:?}: {recovered} is not in {range:?}");
    }
}

fn failed_once_and_then_accepted(moody: &Receiver) {
    let attempts = moody.attempts();
    let answered: Vec<_> = attempts.iter().map(|attempt| attempt.answered.unwrap()).collect();
    assert!(answered[0] == 500 && answered[1..].iter().all(|status| *status == 200), "{answered:?}");
    assert_eq!((attempts[0].id(), &attempts[0].body), (attempts[1].id(), &attempts[1].body));
    let ids: BTreeSet<&str> = attempts.iter().map(|attempt| attempt.id()).collect();
    assert_eq!(ids.len(), attempts.len() - 1, "each other message has an id of its own");
}

/// The partner's own key is refused more often than any of its devices, for they are many.
async fn the_worst_is_known(server: &Server, refused: &AllRefused) {
    let request = Request::get("/offenders").header("authorization", format!("Bearer {TOKEN}"));
    let told = server.send(request.body(String::new()).unwrap()).await.json();
    let told = told["offenders"].as_array().unwrap();
    let mut expected: Vec<_> = refused.iter().collect();
    expected.sort_by_key(|(_, refused)| std::cmp::Reverse(refused.times));
    assert_eq!(expected[0].0, &whom("partner", "ada"));
    assert_eq!(told.len(), expected.len(), "{told:?}");
    for offender in told {
        let text = |name: &str| offender[name].as_str().unwrap();
        let times = refused[&whom(text("rule"), text("key"))].times;
        assert_eq!((&offender["refused_least"], &offender["refused_most"]), (&json!(times), &json!(times)));
    }
    assert_eq!((&told[0]["rule"], &told[0]["key"]), (&json!("partner"), &json!("ada")));
}

/// The counts of /metrics are what the partners have seen.
async fn counts_are_right(server: &Server, partners: &Partners, lost_to_moved: u64) {
    let count = async |series: String| {
        let count = server.metric(&format!("tidegate_webhook_{series}")).await;
        // A count of a test is small.
        format!("{count}").parse::<u64>().unwrap()
    };
    let start = std::time::Instant::now();
    let undelivered = "events_total{endpoint=\"moved\",outcome=\"undelivered\"}";
    while count(undelivered.to_owned()).await < lost_to_moved {
        assert!(start.elapsed() < super::served::PATIENCE, "what is redirected is given up");
    }
    let moved = partners.moved.attempts();
    let given_up: BTreeSet<&str> = moved.iter().map(|attempt| attempt.id()).collect();
    assert_eq!(moved.len(), 2 * given_up.len(), "two attempts for each");
    let accepted = [&partners.fine, &partners.moody, &partners.slow].map(|receiver| receiver.accepted());
    let [fine, moody, slow] = accepted.each_ref().map(|messages| messages.len() as u64);
    let events = accepted.each_ref().map(|messages: &Vec<Message>| times(messages));
    for (endpoint, delivered, given_up, failed, is_gone, events_delivered, events_undelivered) in [
        ("fine", fine, 0, 0, 0, events[0], 0),
        ("moody", moody, 0, 1, 0, events[1], 0),
        ("slow", slow, 0, 0, 0, events[2], 0),
        ("moved", 0, given_up.len() as u64, moved.len() as u64, 0, 0, lost_to_moved),
        // It was told of the same keys as the one that is fine.
        ("gone", 0, 0, 0, 1, 0, events[0]),
    ] {
        let of = |name: &str, outcome: &str| {
            format!("{name}_total{{endpoint=\"{endpoint}\",outcome=\"{outcome}\"}}")
        };
        for (series, expected) in [
            (of("messages", "delivered"), delivered),
            (of("messages", "given_up"), given_up),
            (of("messages", "lost"), 0),
            (of("events", "delivered"), events_delivered),
            (of("events", "undelivered"), events_undelivered),
            (of("events", "left_out"), 0),
            (of("events", "lost"), 0),
            (format!("failed_attempts_total{{endpoint=\"{endpoint}\"}}"), failed),
            (format!("gone{{endpoint=\"{endpoint}\"}}"), is_gone),
        ] {
            assert_eq!(count(series.clone()).await, expected, "{series}");
        }
    }
    for none in ["tidegate_events_dropped_total", "tidegate_refusals_unseen_total"] {
        assert!(server.metric(none).await.abs() < f64::EPSILON, "{none}");
    }
}
