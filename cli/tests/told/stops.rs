//! A stop in the middle of a storm.

use std::time::{Duration, Instant};

use super::Setting;
use super::clients::{RULES, Storm, storm};
use super::message::{assert_whole, known, times};
use super::receiver::{Receiver, Say};
use super::served::PATIENCE;

/// Long enough for refusals that no message has told.
const MEANWHILE: Duration = Duration::from_millis(700);

/// Waits until there is one, and lets the storm go on meanwhile.
async fn first_message(receiver: &Receiver) {
    let start = Instant::now();
    while receiver.attempts().is_empty() {
        assert!(start.elapsed() < PATIENCE, "no message comes");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_refused_until_the_end_is_told() {
    let receiver = Receiver::start(|_| Say::Status(200)).await;
    // After the first message the next one would come in an hour.
    let all = Setting::new(RULES, "").endpoint("all", &receiver, "interval_s = 3600");
    let mut server = all.arg("--stop-timeout", "15").start();
    let (refused, told) = tokio::join!(storm(&server, Storm::UntilTheServerEnds), async {
        first_message(&receiver).await;
        tokio::time::sleep(MEANWHILE).await;
        server.signal("-TERM");
        receiver.attempts().len()
    });
    assert_eq!(told, 1, "the rest is still to be told");
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    let messages = receiver.accepted();
    assert_whole(&messages);
    let known = known(&messages);
    let told: Vec<_> =
        known.iter().map(|(whom, known)| (whom, known.refused)).filter(|told| told.1 > 0).collect();
    let expected: Vec<_> = refused.iter().map(|(whom, refused)| (whom, refused.times)).collect();
    assert_eq!(told, expected);
    assert!(known.values().all(|known| known.recovered_at.is_none()), "nobody has recovered: {known:?}");
    server.wait_for_log("webhooks stopped messages_delivered=");
    assert!(!server.log().contains("lost"), "{}", server.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_hangs_delays_the_end_for_no_longer_than_it_may_and_what_is_lost_is_told() {
    const STOP_S: u64 = 2;
    let hangs = Receiver::start(|_| Say::Held).await;
    let answers = Receiver::start(|_| Say::Status(200)).await;
    let both = Setting::new(RULES, "attempt_timeout_s = 300")
        .endpoint("hangs", &hangs, "interval_s = 0.05")
        .endpoint("answers", &answers, "interval_s = 0.05");
    let mut server = both.arg("--stop-timeout", &STOP_S.to_string()).start();
    let (_, asked) = tokio::join!(storm(&server, Storm::UntilTheServerEnds), async {
        first_message(&hangs).await;
        tokio::time::sleep(MEANWHILE).await;
        let now = Instant::now();
        server.signal("-TERM");
        now
    });
    // It ends within the time for connections, that for webhooks, and the patience for all that a test waits for; by itself it
    // would wait for five minutes.
    assert_eq!(server.ended(), Some(0), "{}", server.log());
    assert!(asked.elapsed() >= Duration::from_secs(STOP_S), "it has its time: {:?}", asked.elapsed());
    assert_eq!(hangs.attempts().len(), 1);
    // Both are told of the same: what one accepted the other has lost, what it has in hand too.
    let accepted = answers.accepted();
    assert_whole(&accepted);
    server.wait_for_log(&format!(
        "webhooks stopped; what was not accepted in time is lost messages_delivered={} events_lost={}\n",
        accepted.len(),
        times(&accepted)
    ));
}
