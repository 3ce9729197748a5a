//! A task on a clock of tokio's that is moved by hand, and a receiver that says what it is told to.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::super::endpoint::Endpoint;
use super::super::made_up::{SECRET, event};
use super::super::state::WebhookCounts;
use super::*;
use crate::policy::EventKind;

const INTERVAL: Duration = Duration::from_secs(60);

/// Answers one outcome after the other, then that it is delivered; each after a while.
struct Script {
    answers: Mutex<VecDeque<Outcome>>,
    takes: Duration,
    begun: Instant,
    seen: Arc<Mutex<Vec<Seen>>>,
}

#[derive(Clone, Debug)]
struct Seen {
    after: Duration,
    id: String,
    body: String,
}

impl Post for Script {
    async fn post(&self, id: &str, body: &str) -> Outcome {
        let seen = Seen { after: self.begun.elapsed(), id: id.to_owned(), body: body.to_owned() };
        self.seen.lock().unwrap().push(seen);
        sleep(self.takes).await;
        self.answers.lock().unwrap().pop_front().unwrap_or(Outcome::Delivered)
    }
}

struct Scene {
    shared: Arc<Shared>,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: JoinHandle<()>,
}

impl Scene {
    fn new(settings: WebhookSettings, takes: Duration, answers: impl IntoIterator<Item = Outcome>) -> Self {
        let endpoint = Endpoint::new("ada", "https://hooks.example.com").secret(SECRET).interval(INTERVAL);
        let (shared, seen) = (Arc::new(Shared::new(endpoint)), Arc::new(Mutex::new(Vec::new())));
        let answers = Mutex::new(answers.into_iter().collect());
        let script = Script { answers, takes, begun: Instant::now(), seen: Arc::clone(&seen) };
        let task = tokio::spawn(Worker::new(Arc::clone(&shared), settings, script).run());
        Self { shared, seen, task }
    }

    fn send(&self, key: u64) {
        self.shared.send(&event(EventKind::Refused, key));
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn counts(&self) -> WebhookCounts {
        self.shared.counts()
    }

    async fn stop(self, within: Duration) -> WebhookCounts {
        let by = Instant::now() + within;
        self.shared.stop_by(by);
        let mut task = self.task;
        if timeout_at(by, &mut task).await.is_err() {
            task.abort();
            _ = task.await;
        }
        self.shared.end();
        self.shared.counts()
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn failed(retry_after: Option<u64>) -> Outcome {
    let retry_after = retry_after.map(secs);
    Outcome::Failed(Failure { why: "answered 503".to_owned(), retry_after, is_address_refused: false })
}

fn settings() -> WebhookSettings {
    WebhookSettings::new().backoff(secs(1), secs(8)).attempts_max(4).retry_within(secs(100))
}

/// Each event is settled as one thing, or still to be told.
fn settled(counts: &WebhookCounts) -> u64 {
    counts.events_delivered + counts.events_left_out + counts.events_undelivered + counts.events_lost_at_stop
}

#[tokio::test(start_paused = true)]
async fn there_is_one_message_an_interval_with_what_happened_since() {
    let scene = Scene::new(settings(), secs(2), []);
    // One a second, for five minutes.
    for key in 0..300 {
        scene.send(key % 7);
        sleep(secs(1)).await;
    }
    let seen = scene.seen();
    let starts: Vec<u128> = seen.iter().map(|message| message.after.as_millis()).collect();
    // 100 ms to gather; then 2 s to be accepted and 60 s of quiet each.
    assert_eq!(starts, [100, 62_100, 124_100, 186_100, 248_100]);
    let told = |message: &Seen| {
        let body: Value = serde_json::from_str(&message.body).unwrap();
        let events = body["data"]["events"].as_array().unwrap();
        events.iter().map(|event| event["times"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(told(&seen[0]), [1]);
    assert_eq!(told(&seen[1]), [9, 9, 9, 9, 9, 9, 8]);
    let ids: std::collections::HashSet<&str> = seen.iter().map(|message| &*message.id).collect();
    assert_eq!(ids.len(), 5);
    let counts = scene.stop(secs(5)).await;
    assert_eq!((counts.delivered, counts.events_delivered, counts.events_lost_at_stop), (6, 300, 0));
}

#[tokio::test(start_paused = true)]
async fn a_message_is_tried_again_with_its_id_and_its_body() {
    let scene = Scene::new(settings(), secs(0), [failed(None), failed(None), failed(None)]);
    scene.send(1);
    sleep(secs(1)).await;
    // It is not in the message that is under way.
    scene.send(2);
    sleep(secs(20)).await;
    let seen = scene.seen();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|attempt| attempt.id == seen[0].id && attempt.body == seen[0].body));
    for (number, least) in [1, 2, 4].into_iter().enumerate() {
        let wait = seen[number + 1].after - seen[number].after;
        assert!(wait >= secs(least) && wait <= secs(2 * least), "{number}: {wait:?}");
    }
    assert!(seen[0].body.contains("user-1") && !seen[0].body.contains("user-2"));
    assert_eq!(
        (scene.counts().delivered, scene.counts().failed_attempts, scene.counts().given_up),
        (1, 3, 0)
    );
    sleep(secs(60)).await;
    assert!(scene.seen()[4].body.contains("user-2") && scene.seen()[4].id != seen[0].id);
}

#[tokio::test(start_paused = true)]
async fn it_is_given_up_after_the_attempts_and_the_next_message_says_so() {
    let scene = Scene::new(settings(), secs(0), (0..4).map(|_| failed(None)));
    scene.send(1);
    scene.send(1);
    sleep(secs(30)).await;
    assert_eq!((scene.seen().len(), scene.counts().given_up, scene.counts().events_undelivered), (4, 1, 2));
    assert_eq!(scene.shared.status().last_failure.as_deref(), Some("answered 503"));
    scene.send(2);
    sleep(secs(60)).await;
    let last = scene.seen().pop().unwrap();
    assert!(last.body.contains("\"undelivered\":2"), "{}", last.body);
    assert_eq!((scene.counts().delivered, scene.shared.status().last_failure), (1, None));
    assert_eq!(settled(&scene.counts()), scene.counts().events_taken);
}

#[tokio::test(start_paused = true)]
async fn it_is_given_up_after_the_time() {
    let settings = settings().attempts_max(100).retry_within(secs(30));
    let scene = Scene::new(settings, secs(1), (0..100).map(|_| failed(None)));
    scene.send(1);
    sleep(secs(55)).await;
    let seen = scene.seen();
    assert!(seen.iter().all(|attempt| attempt.after <= secs(31)) && seen.len() >= 3, "{}", seen.len());
    assert_eq!((scene.counts().given_up, scene.counts().failed_attempts), (1, seen.len() as u64));
}

#[tokio::test(start_paused = true)]
async fn the_receivers_wait_is_kept_by_this_message_and_by_the_next() {
    let scene = Scene::new(settings(), secs(0), [failed(Some(50)), Outcome::Delivered, failed(Some(1_000))]);
    scene.send(1);
    sleep(secs(50)).await;
    assert_eq!(scene.seen().len(), 1);
    sleep(secs(1)).await;
    assert_eq!(scene.seen().len(), 2);
    // Longer than a message may wait: this one is given up, and the next begins when the receiver said.
    scene.send(2);
    sleep(secs(60)).await;
    assert_eq!((scene.seen().len(), scene.counts().given_up), (3, 1));
    scene.send(3);
    sleep(secs(999)).await;
    assert_eq!(scene.seen().len(), 3);
    sleep(secs(1)).await;
    assert_eq!((scene.seen().len(), scene.counts().delivered), (4, 2));
}

#[tokio::test(start_paused = true)]
async fn who_is_gone_is_never_asked_again() {
    let scene = Scene::new(settings(), secs(2), [Outcome::Gone]);
    scene.send(1);
    sleep(secs(1)).await;
    scene.send(2);
    sleep(secs(3)).await;
    scene.send(3);
    sleep(secs(600)).await;
    assert_eq!(scene.seen().len(), 1);
    assert!(scene.shared.status().is_gone && scene.task.is_finished());
    let counts = scene.stop(secs(5)).await;
    assert_eq!((counts.gone, counts.events_taken, counts.events_undelivered), (1, 3, 3));
    assert_eq!((counts.delivered, counts.given_up, counts.lost_at_stop), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_hangs_fills_nothing_without_end() {
    let scene = Scene::new(settings(), secs(10_000), []);
    scene.send(0);
    sleep(secs(1)).await;
    (1..=100_000).for_each(|key| scene.send(key));
    let counts = scene.counts();
    assert_eq!((counts.events_taken, counts.events_left_out), (100_001, 99_900));
    let counts = scene.stop(secs(5)).await;
    assert_eq!((counts.lost_at_stop, counts.events_lost_at_stop, counts.events_left_out), (1, 101, 99_900));
    assert_eq!(settled(&counts), counts.events_taken);
}

#[tokio::test(start_paused = true)]
async fn a_stop_sends_what_is_pending_and_takes_no_longer_than_it_may() {
    // In the middle of the interval; two messages' worth.
    let scene = Scene::new(settings(), secs(1), []);
    scene.send(0);
    sleep(secs(5)).await;
    (1..=90).for_each(|key| scene.send(key));
    let begun = Instant::now();
    let counts = scene.stop(secs(30)).await;
    assert!(begun.elapsed() <= secs(3), "{:?}", begun.elapsed());
    assert_eq!((counts.events_delivered, counts.events_lost_at_stop), (91, 0));
    assert!(counts.delivered >= 3);

    // The second message takes longer than there is time.
    let scene = Scene::new(settings(), secs(4), []);
    let shared = Arc::clone(&scene.shared);
    scene.send(0);
    sleep(secs(5)).await;
    (1..=90).for_each(|key| scene.send(key));
    let begun = Instant::now();
    let counts = scene.stop(secs(6)).await;
    assert_eq!(begun.elapsed(), secs(6));
    assert_eq!((counts.delivered, counts.lost_at_stop, settled(&counts)), (2, 1, 91));
    assert!(counts.events_lost_at_stop > 20, "{counts:?}");
    shared.send(&event(EventKind::Refused, 1));
    assert_eq!(shared.counts().events_lost_at_stop, counts.events_lost_at_stop + 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_tries_once_more_at_once_but_not_before_the_receiver_lets_it() {
    let patient = || settings().backoff(secs(50), secs(50)).retry_within(secs(1_000));
    let scene = Scene::new(patient(), secs(0), [failed(None)]);
    scene.send(1);
    sleep(secs(2)).await;
    let begun = Instant::now();
    let counts = scene.stop(secs(5)).await;
    assert_eq!((counts.delivered, counts.lost_at_stop, begun.elapsed()), (1, 0, secs(0)));

    // Once: what fails then is not hammered.
    let scene = Scene::new(patient(), secs(0), (0..9).map(|_| failed(None)));
    scene.send(1);
    sleep(secs(2)).await;
    let seen = Arc::clone(&scene.seen);
    let counts = scene.stop(secs(5)).await;
    assert_eq!((counts.lost_at_stop, counts.events_lost_at_stop, seen.lock().unwrap().len()), (1, 1, 2));

    let scene = Scene::new(patient(), secs(0), [failed(Some(90))]);
    scene.send(1);
    sleep(secs(2)).await;
    let begun = Instant::now();
    let counts = scene.stop(secs(5)).await;
    assert_eq!((counts.delivered, counts.lost_at_stop, begun.elapsed()), (0, 1, secs(0)));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_there_is_nothing_to_tell() {
    let scene = Scene::new(settings(), secs(0), []);
    sleep(secs(10_000)).await;
    assert!(scene.seen().is_empty());
    let counts = scene.stop(secs(5)).await;
    assert_eq!(counts, WebhookCounts::default());
}
