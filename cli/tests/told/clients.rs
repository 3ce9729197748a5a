//! Devices of partners: they ask calmly, or as if nobody had told them to wait.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http2::SendRequest;
use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinSet;

use super::message::Whom;
use super::served::{Answer, Server};

/// Between two requests of a calm device: less than a rule lets it.
const CALM: Duration = Duration::from_millis(1200);
/// Between an answer and the next request of one that storms: nearly 48 times as often.
const STORM: Duration = Duration::from_millis(25);

/// Rules that a calm device meets, and a calm partner of three.
pub(crate) const RULES: &str = r#"
[[rule]]
name = "device"
key = "user"
limit = { rate = "2/s", burst = 5 }

[[rule]]
name = "partner"
key = "title"
limit = { rate = "3/s", burst = 8 }
"#;

/// What was refused to clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(crate) times: u64,
    /// When what was refused first was asked for.
    pub(crate) first_asked: Timestamp,
    /// When it was answered.
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
}

/// The same by the rule that refused and the key that it counts under. A request that two refuse is in both.
pub(crate) type AllRefused = BTreeMap<Whom, Refused>;

pub(crate) struct Device {
    sender: SendRequest<Full<Bytes>>,
    url: String,
    title: String,
    user: String,
    refused: AllRefused,
}

/// How long a device storms.
#[derive(Clone, Copy)]
pub(crate) enum Storm {
    Requests(u32),
    UntilTheServerEnds,
}

impl Device {
    /// Of a partner; it has a connection of its own.
    pub(crate) async fn new(server: &Server, title: &str, user: &str) -> Self {
        Self {
            sender: server.http2().await,
            url: format!("http://{}/check", server.address),
            title: title.to_owned(),
            user: user.to_owned(),
            refused: AllRefused::new(),
        }
    }

    /// Asks once; whether the server still answers.
    async fn ask(&mut self) -> bool {
        let body = json!({"api": "profile", "title": self.title, "user": self.user}).to_string();
        let request = Request::post(&self.url).header("content-type", "application/json");
        let asked = Timestamp::now();
        if self.sender.ready().await.is_err() {
            return false;
        }
        let Ok(response) = self.sender.send_request(request.body(Full::new(body.into())).unwrap()).await
        else {
            return false;
        };
        let answer = Answer::of(response).await;
        if answer.status == StatusCode::SERVICE_UNAVAILABLE {
            return false;
        }
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        for rule in answer.json()["rules"].as_array().unwrap().iter().filter(|rule| rule["refuses"] == true) {
            let name = rule["name"].as_str().unwrap();
            let key = if name == "partner" { &self.title } else { &self.user };
            let now = Timestamp::now();
            let none = Refused { times: 0, first_asked: asked, first: now, last: now };
            let refused = self.refused.entry((name.to_owned(), key.clone())).or_insert(none);
            (refused.times, refused.last) = (refused.times + 1, now);
        }
        true
    }

    async fn calm(&mut self, requests: u32) {
        for _ in 0..requests {
            assert!(self.ask().await);
            tokio::time::sleep(CALM).await;
        }
    }

    /// Calm, storm, and calm again if there is an again. What was refused to it.
    async fn play(mut self, storm: Option<Storm>) -> AllRefused {
        self.calm(1).await;
        match storm {
            None => {}
            Some(Storm::Requests(requests)) => {
                for _ in 0..requests {
                    assert!(self.ask().await);
                    tokio::time::sleep(STORM).await;
                }
            }
            Some(Storm::UntilTheServerEnds) => {
                while self.ask().await {
                    tokio::time::sleep(STORM).await;
                }
                return self.refused;
            }
        }
        self.calm(2).await;
        self.refused
    }
}

/// Three devices of ada and one of bob storm, all at once; one of cem stays calm. What was refused to them, when they are done.
pub(crate) async fn storm(server: &Server, storm: Storm) -> AllRefused {
    let mut playing = JoinSet::new();
    for (title, user) in [("ada", "ada-1"), ("ada", "ada-2"), ("ada", "ada-3"), ("bob", "bob-1")] {
        let device = Device::new(server, title, user).await;
        playing.spawn(device.play(Some(storm)));
    }
    if matches!(storm, Storm::Requests(_)) {
        playing.spawn(Device::new(server, "cem", "cem-1").await.play(None));
    }
    let mut all = AllRefused::new();
    for (whom, refused) in playing.join_all().await.into_iter().flatten() {
        let sum = all.entry(whom).or_insert(Refused { times: 0, ..refused });
        sum.times += refused.times;
        sum.first_asked = sum.first_asked.min(refused.first_asked);
        sum.first = sum.first.min(refused.first);
        sum.last = sum.last.max(refused.last);
    }
    all
}
