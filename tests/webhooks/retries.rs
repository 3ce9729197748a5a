//! What is answered, and what comes of it.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use tidegate::notify::Webhooks;

use super::receiver::{Got, Receiver, Say};
use super::{LONG, OLD_SECRET, SECRET, endpoint, eventually, quick, refusal};

#[tokio::test]
async fn what_fails_at_first_comes_again_as_the_same_message() {
    let says = [503, 500, 404, 204].map(Say::status).to_vec();
    let receiver = Receiver::new(says).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick()).unwrap();
    webhooks.send(&refusal(1));
    eventually("it is delivered", || webhooks.counts().delivered == 1).await;
    let got = receiver.got();
    assert_eq!(got.len(), 4);
    for attempt in &got {
        assert!(attempt.is_signed_with(SECRET) && !attempt.is_signed_with(OLD_SECRET));
        assert_eq!((attempt.id(), &attempt.body), (got[0].id(), &got[0].body));
        assert_eq!(
            (attempt.path.as_str(), &attempt.headers["content-type"]),
            ("/limits", &"application/json".parse().unwrap())
        );
    }
    let counts = webhooks.stop(LONG).await;
    assert_eq!((counts.failed_attempts, counts.given_up, counts.events_delivered), (3, 0, 1));
    assert_eq!(receiver.count(), 4);
}

#[tokio::test]
async fn every_attempt_has_its_own_time_and_signature() {
    let says = vec![Say::status(429).field("retry-after", "2"), Say::status(200)];
    let receiver = Receiver::new(says).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick()).unwrap();
    webhooks.send(&refusal(1));
    eventually("it comes again", || receiver.count() == 2).await;
    let got = receiver.got();
    let wait = got[1].at - got[0].at;
    assert!(wait >= Duration::from_secs(2), "{wait:?}");
    let field = |name: &str| [got[0].headers[name].clone(), got[1].headers[name].clone()];
    let [first, second] = field("webhook-timestamp");
    let seconds = |value: &http::HeaderValue| value.to_str().unwrap().parse::<i64>().unwrap();
    assert!(seconds(&second) >= seconds(&first) + 2);
    let [first, second] = field("webhook-signature");
    assert_ne!(first, second);
    assert!(got.iter().all(|attempt| attempt.is_signed_with(SECRET)));
}

#[tokio::test]
async fn a_date_to_come_back_at_is_kept() {
    // A date has whole seconds: this one is between one and two seconds from now.
    let date = SystemTime::now() + Duration::from_secs(2);
    let says = vec![Say::status(503).field("retry-after", httpdate::fmt_http_date(date)), Say::status(200)];
    let receiver = Receiver::new(says).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick()).unwrap();
    webhooks.send(&refusal(1));
    eventually("it comes again", || receiver.count() == 2).await;
    let whole = Duration::from_secs(date.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
    assert!(SystemTime::now() >= SystemTime::UNIX_EPOCH + whole);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_never_asked_again() {
    let (gone, stays) =
        (Receiver::new(vec![Say::status(410)]).await, Receiver::new(vec![Say::status(200)]).await);
    let webhooks = Webhooks::start([endpoint("gone", &gone), endpoint("stays", &stays)], quick()).unwrap();
    for key in 0..5 {
        webhooks.send(&refusal(key));
        eventually("the other is told", || webhooks.endpoints()[1].counts.events_delivered > key).await;
    }
    eventually("it is gone", || webhooks.counts().gone == 1).await;
    assert_eq!(gone.count(), 1);
    let status = webhooks.endpoints();
    assert!(status[0].is_gone && status[0].name == "gone" && !status[1].is_gone);
    let counts = webhooks.stop(LONG).await;
    assert_eq!((counts.events_undelivered, counts.events_delivered, counts.failed_attempts), (5, 5, 0));
}

#[tokio::test]
async fn a_redirect_is_followed_by_nobody() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Receiver::new(vec![Say::status(200)]).await;
        let receiver = Receiver::new(vec![Say::status(status).field("location", elsewhere.url())]).await;
        let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick()).unwrap();
        webhooks.send(&refusal(1));
        eventually("it is given up", || webhooks.counts().given_up == 1).await;
        assert_eq!((receiver.count(), elsewhere.count()), (5, 0));
        let why = webhooks.endpoints()[0].last_failure.clone();
        assert_eq!(why, Some(format!("answered {status}, a redirect")));
    }
}

#[tokio::test]
async fn old_and_new_secret_verify_while_one_is_changed() {
    let receiver = Receiver::new(vec![Say::status(200)]).await;
    let both = endpoint("ada", &receiver).secret(OLD_SECRET);
    let webhooks = Webhooks::start([both], quick()).unwrap();
    webhooks.send(&refusal(1));
    eventually("it comes", || receiver.count() == 1).await;
    let got = &receiver.got()[0];
    assert!(got.is_signed_with(SECRET) && got.is_signed_with(OLD_SECRET));
    let signatures: Vec<&str> = got.headers["webhook-signature"].to_str().unwrap().split(' ').collect();
    assert_eq!(signatures.len(), 2);
    assert!(signatures.iter().all(|signature| signature.starts_with("v1,")));
}

#[tokio::test]
async fn a_slow_receiver_delays_no_other() {
    let slow = Receiver::new(vec![Say::status(200).after(10 * LONG)]).await;
    let quick_one = Receiver::new(vec![Say::status(200)]).await;
    let webhooks =
        Webhooks::start([endpoint("slow", &slow), endpoint("quick", &quick_one)], quick()).unwrap();
    for key in 0..10 {
        webhooks.send(&refusal(key));
        eventually("the quick one is told", || webhooks.endpoints()[1].counts.events_delivered == key + 1)
            .await;
    }
    assert_eq!((slow.count(), quick_one.count()), (1, 10));
    let ids: HashSet<String> = quick_one.got().iter().map(|got| got.id().to_owned()).collect();
    assert_eq!(ids.len(), 10);
    let order: Vec<String> = quick_one.got().iter().flat_map(Got::keys).collect();
    assert_eq!(order, (0..10).map(|key| format!("user-{key}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_given_up() {
    let says = vec![Say::status(200).after(10 * LONG), Say::status(200)];
    let receiver = Receiver::new(says).await;
    let settings = quick().attempt_timeout(Duration::from_millis(300));
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], settings).unwrap();
    webhooks.send(&refusal(1));
    eventually("the next one is accepted", || webhooks.counts().delivered == 1).await;
    let counts = webhooks.counts();
    assert!(counts.failed_attempts >= 1 && receiver.count() >= 2, "{counts:?}");
}

#[tokio::test]
async fn nobody_at_home_is_a_failure() {
    let receiver = Receiver::new(vec![Say::status(200)]).await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = tidegate::notify::Endpoint::new("ada", format!("http://{nobody}/T0KEN"));
    let endpoint = endpoint.secret(SECRET).allow_http(true).allow_networks(["127.0.0.1/32".parse().unwrap()]);
    let webhooks = Webhooks::start([endpoint, super::endpoint("bob", &receiver)], quick()).unwrap();
    webhooks.send(&refusal(1));
    eventually("it is given up", || webhooks.counts().given_up == 1).await;
    let status = webhooks.endpoints().remove(0);
    assert_eq!((status.counts.failed_attempts, status.counts.refused_addresses), (5, 0));
    let why = status.last_failure.unwrap();
    assert!(why.contains("onnect") && !why.contains("T0KEN"), "{why}");
}

#[tokio::test]
async fn every_event_that_was_given_up_is_told() {
    let receiver = Receiver::new([500, 500, 204, 204].map(Say::status).to_vec()).await;
    let webhooks = Webhooks::start([endpoint("ada", &receiver)], quick().attempts_max(1)).unwrap();
    for number in 1..=4 {
        webhooks.send(&refusal(number));
        let settled = || webhooks.counts().given_up + webhooks.counts().delivered == number;
        eventually("it is settled", settled).await;
    }
    assert_eq!(webhooks.counts().events_undelivered, 2);
    // The third is the first that is accepted: it tells of both, and the fourth of none.
    let told = |got: &Got| got.data()["undelivered"].as_u64().unwrap();
    assert_eq!(receiver.got().iter().map(told).collect::<Vec<_>>(), [0, 1, 2, 0]);
}
