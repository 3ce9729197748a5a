//! Where nothing may go.

use tidegate::notify::{Endpoint, Webhooks};

use super::receiver::{Receiver, Say};
use super::{SECRET, eventually, quick, refusal};

fn to(url: String) -> Endpoint {
    Endpoint::new("ada", url).secret(SECRET).allow_http(true)
}

/// The name is resolved to an address of this machine at each attempt, and no connection is made.
#[tokio::test]
async fn a_name_that_leads_inside_is_refused() {
    let receiver = Receiver::new(vec![Say::status(200)]).await;
    let url = format!("http://localhost:{}/", receiver.address.port());
    let webhooks = Webhooks::start([to(url.clone())], quick()).unwrap();
    webhooks.send(&refusal(1));
    eventually("it is given up", || webhooks.counts().given_up == 1).await;
    let counts = webhooks.counts();
    assert_eq!((counts.refused_addresses, counts.failed_attempts, receiver.count()), (5, 5, 0));
    let why = webhooks.endpoints()[0].last_failure.clone().unwrap();
    assert!(why.contains("localhost, at ") && why.contains("is not public"), "{why}");

    let allowed = to(url).allow_networks(["127.0.0.0/8".parse().unwrap()]);
    let webhooks = Webhooks::start([allowed], quick()).unwrap();
    webhooks.send(&refusal(1));
    eventually("it comes", || receiver.count() == 1).await;
}

#[tokio::test]
async fn an_address_that_leads_inside_is_refused_however_it_is_spelt() {
    let receiver = Receiver::new(vec![Say::status(200)]).await;
    let port = receiver.address.port();
    for host in
        ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "[::1]", "0"]
    {
        let error = Webhooks::start([to(format!("http://{host}:{port}/"))], quick()).unwrap_err();
        assert_eq!((error.endpoint(), error.field()), (Some("ada"), "url"));
        assert!(error.problem().contains("is not public"), "{host}: {error}");
    }
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn two_of_one_name_are_not_started() {
    let of = || Endpoint::new("ada", "https://hooks.example.com").secret(SECRET);
    let error = Webhooks::start([of(), of()], quick()).unwrap_err();
    assert_eq!(error.to_string(), "endpoint \"ada\": name: is another endpoint's too");
    assert_eq!(Webhooks::start([], quick().attempts_max(0)).unwrap_err().field(), "attempts_max");
}

#[test]
fn without_a_runtime_nothing_is_started() {
    let error = Webhooks::start([], quick()).unwrap_err();
    assert_eq!((error.endpoint(), error.field()), (None, "runtime"));
}
