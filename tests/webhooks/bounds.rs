//! How much, how often, and how long.

use std::time::{Duration, Instant};

use tidegate::notify::Webhooks;
use tidegate::policy::Pattern;

use super::receiver::{Got, Receiver, Say};
use super::{LONG, endpoint, eventually, quick, refusal};

#[tokio::test]
async fn a_flood_of_keys_stays_below_twenty_kilobytes() {
    let receiver = Receiver::new(vec![Say::status(200)]).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick()).unwrap();
    for key in 0..10_000 {
        let mut event = refusal(key);
        event.key = Some(format!("{key}{}", "\"\\\n".repeat(31)).into());
        webhooks.send(&event);
    }
    let counts = webhooks.stop(LONG).await;
    let got = receiver.got();
    assert!(got.iter().all(|message| message.body.len() < 20_000 && message.is_signed_with(super::SECRET)));
    let told: u64 = got.iter().map(|message| message.keys().len() as u64).sum();
    let left_out: u64 = got.iter().map(|message| message.data()["left_out"].as_u64().unwrap()).sum();
    assert_eq!((told, counts.events_taken), (counts.events_delivered, 10_000));
    assert_eq!((left_out, told + left_out), (counts.events_left_out, 10_000));
    assert!(told >= 100 && got.len() > 1);
}

#[tokio::test]
async fn there_is_at_most_one_message_an_interval() {
    const INTERVAL: Duration = Duration::from_millis(200);
    let receiver = Receiver::new(vec![Say::status(200)]).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver).interval(INTERVAL)], quick()).unwrap();
    let mut sent = 0;
    while receiver.count() < 4 {
        webhooks.send(&refusal(sent % 3));
        sent += 1;
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    let got = receiver.got();
    assert!(got.windows(2).all(|pair| pair[1].at - pair[0].at >= INTERVAL));
    // Each tells what happened since the one before.
    assert!(got.windows(2).all(|pair| pair[1].data()["since"] == pair[0].data()["until"]));
    let counts = webhooks.stop(LONG).await;
    assert_eq!((counts.events_delivered, counts.events_left_out), (sent, 0));
    let times = |message: &Got| {
        let data = message.data();
        data["events"].as_array().unwrap().iter().map(|event| event["times"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(receiver.got().iter().map(times).sum::<u64>(), sent);
}

#[tokio::test]
async fn a_receiver_that_hangs_holds_up_nobody_and_fills_nothing() {
    let receiver = Receiver::new(vec![Say::status(200).after(10 * LONG)]).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick()).unwrap();
    webhooks.send(&refusal(0));
    eventually("it hangs", || receiver.count() == 1).await;
    // No waiting: this is no async function.
    let sender = std::thread::scope(|scope| {
        scope.spawn(|| (1..=50_000).for_each(|key| webhooks.send(&refusal(key)))).join()
    });
    sender.unwrap();
    let counts = webhooks.counts();
    assert_eq!((counts.events_taken, counts.events_left_out), (50_001, 49_900));
    let within = Duration::from_millis(300);
    let begun = Instant::now();
    let counts = webhooks.stop(within).await;
    assert!(begun.elapsed() >= within);
    assert_eq!((counts.lost_at_stop, counts.events_lost_at_stop, counts.delivered), (1, 101, 0));
    webhooks.send(&refusal(1));
    assert_eq!((webhooks.counts().events_lost_at_stop, receiver.count()), (102, 1));
}

/// The stated time bounds the whole stop, however many hang: their waits are not added.
#[tokio::test]
async fn a_stop_waits_for_all_at_once() {
    let mut receivers = Vec::new();
    for _ in 0..20 {
        receivers.push(Receiver::new(vec![Say::status(200).after(10 * LONG)]).await);
    }
    let answers = Receiver::new(vec![Say::status(200)]).await;
    let endpoints =
        receivers.iter().enumerate().map(|(number, receiver)| endpoint(&number.to_string(), receiver));
    let patient = endpoint("patient", &answers).interval(LONG);
    let webhooks = Webhooks::start(endpoints.chain([patient]), quick()).unwrap();
    webhooks.send(&refusal(1));
    eventually("the first is there", || answers.count() == 1).await;
    eventually("it is settled", || webhooks.endpoints()[20].counts.delivered == 1).await;
    // In the middle of an interval of a minute.
    webhooks.send(&refusal(2));
    let within = Duration::from_secs(3);
    let begun = Instant::now();
    let counts = webhooks.stop(within).await;
    // One after the other they would take a minute.
    assert!(begun.elapsed() < 10 * within, "{:?}", begun.elapsed());
    assert_eq!((counts.delivered, counts.lost_at_stop, counts.events_lost_at_stop), (2, 20, 40));
    assert_eq!(answers.got()[1].keys(), ["user-2"]);
}

#[tokio::test]
async fn each_partner_hears_of_its_own_keys() {
    let (ada, everybody) =
        (Receiver::new(vec![Say::status(200)]).await, Receiver::new(vec![Say::status(200)]).await);
    let of_ada = endpoint("ada", &ada).keys([Pattern::Exact("user-1".to_owned())]);
    let webhooks = Webhooks::start([of_ada, endpoint("everybody", &everybody)], quick()).unwrap();
    (0..9).for_each(|key| webhooks.send(&refusal(key)));
    let counts = webhooks.stop(LONG).await;
    assert_eq!((counts.events_taken, counts.events_delivered), (10, 10));
    let keys = |receiver: &Receiver| receiver.got().iter().flat_map(Got::keys).count();
    assert_eq!((ada.got()[0].keys(), keys(&ada), keys(&everybody)), (vec!["user-1".to_owned()], 1, 9));
}

/// Threads that send while messages are made: each event is told once, or counted as left out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_that_send_at_once_lose_nothing() {
    const THREADS: u64 = 4;
    const EACH: u64 = 20_000;
    let receiver = Receiver::new(vec![Say::status(500), Say::status(200)]).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick()).unwrap();
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let webhooks = &webhooks;
                scope.spawn(move || {
                    (0..EACH).for_each(|at| webhooks.send(&refusal((at * THREADS + thread) % 150)))
                });
            }
        });
    });
    let counts = webhooks.stop(LONG).await;
    assert_eq!((counts.events_taken, counts.events_lost_at_stop), (THREADS * EACH, 0));
    assert_eq!(counts.events_delivered + counts.events_left_out, THREADS * EACH);
    // The first was tried twice, with one id.
    let mut told: Vec<Got> = receiver.got();
    told.dedup_by_key(|got| got.id().to_owned());
    let sum =
        |field: &dyn Fn(&serde_json::Value) -> u64| told.iter().map(|got| field(&got.data())).sum::<u64>();
    let times = |data: &serde_json::Value| {
        data["events"].as_array().unwrap().iter().map(|event| event["times"].as_u64().unwrap()).sum()
    };
    let refused = |data: &serde_json::Value| {
        data["events"].as_array().unwrap().iter().map(|event| event["refused"].as_u64().unwrap()).sum()
    };
    assert_eq!((sum(&times), sum(&refused)), (counts.events_delivered, counts.events_delivered));
    assert_eq!(sum(&|data| data["left_out"].as_u64().unwrap()), counts.events_left_out);
}

/// Nobody hears the first message: what it told of the flood the next one tells.
#[tokio::test]
async fn what_was_left_out_is_told_by_a_message_that_is_accepted() {
    let receiver = Receiver::new([500, 204].map(Say::status).to_vec()).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick().attempts_max(1)).unwrap();
    (0..110).for_each(|key| webhooks.send(&refusal(key)));
    eventually("all is settled", || {
        let counts = webhooks.counts();
        counts.events_delivered + counts.events_undelivered + counts.events_left_out == 110
    })
    .await;
    let number = |got: &Got, name: &str| got.data()[name].as_u64().unwrap();
    let got = receiver.got();
    assert_eq!((number(&got[0], "left_out"), number(&got[1], "left_out")), (10, 10));
    let told = |got: &Got| got.keys().len() as u64 + number(got, "left_out") + number(got, "undelivered");
    assert_eq!(got[1..].iter().map(told).sum::<u64>(), 110);
}

/// From one attempt to the next, where they fail.
const PAUSE: Duration = Duration::from_millis(50);

async fn one_that_is_tried_again_and_again() -> (Receiver, Webhooks) {
    let receiver = Receiver::new(vec![Say::status(500)]).await;
    let settings = quick().backoff(PAUSE, PAUSE).attempts_max(100);
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], settings).unwrap();
    webhooks.send(&refusal(1));
    eventually("it is tried", || receiver.count() > 0).await;
    (receiver, webhooks)
}

/// Whether nothing comes for as long as many attempts take.
async fn is_quiet(receiver: &Receiver) -> bool {
    // What was on its way may arrive yet.
    tokio::time::sleep(PAUSE).await;
    let before = receiver.count();
    tokio::time::sleep(20 * PAUSE).await;
    receiver.count() == before
}

/// A timeout around a stop, shorter than the time of the stop itself: nothing is sent after it, dropped or not.
#[tokio::test]
async fn a_stop_that_is_let_go_sends_nothing_more() {
    let (receiver, webhooks) = one_that_is_tried_again_and_again().await;
    webhooks.send(&refusal(2));
    assert!(tokio::time::timeout(2 * PAUSE, webhooks.stop(LONG)).await.is_err());
    let counts = webhooks.counts();
    assert_eq!((counts.lost_at_stop, counts.events_lost_at_stop), (1, 2));
    webhooks.send(&refusal(3));
    assert_eq!(webhooks.stop(LONG).await.events_lost_at_stop, 3);
    drop(webhooks);
    assert!(is_quiet(&receiver).await);
}

/// A second stop neither waits nor takes the time from the first.
#[tokio::test]
async fn a_stop_beside_another_ends_nothing() {
    let receiver = Receiver::new(vec![Say::status(200).after(10 * PAUSE)]).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick()).unwrap();
    webhooks.send(&refusal(1));
    eventually("it is under way", || receiver.count() == 1).await;
    webhooks.send(&refusal(2));
    let beside = async {
        tokio::time::sleep(PAUSE).await;
        webhooks.stop(LONG).await
    };
    let (first, second) = tokio::join!(webhooks.stop(LONG), beside);
    assert_eq!((first.events_delivered, first.events_lost_at_stop), (2, 0));
    assert_eq!((second.events_taken, second.events_lost_at_stop), (2, 0));
}

#[tokio::test]
async fn what_is_dropped_sends_nothing_more() {
    let (receiver, webhooks) = one_that_is_tried_again_and_again().await;
    drop(webhooks);
    assert!(is_quiet(&receiver).await);
}
