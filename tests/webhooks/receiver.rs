//! A partner: an HTTP server that notes what it gets and answers what it is told to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::response::Response;
use http::HeaderMap;
use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::net::TcpListener;

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) at: Instant,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Got {
    pub(crate) fn id(&self) -> &str {
        self.headers["webhook-id"].to_str().unwrap()
    }

    /// Whether the library of the specification finds that it was signed with that secret, a moment ago.
    pub(crate) fn is_signed_with(&self, secret: &str) -> bool {
        Webhook::new(secret).unwrap().verify(&self.body, &self.headers).is_ok()
    }

    pub(crate) fn data(&self) -> Value {
        let message: Value = serde_json::from_slice(&self.body).unwrap();
        assert_eq!(message["type"], "tidegate.limits");
        message["data"].clone()
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        let data = self.data();
        let events = data["events"].as_array().unwrap();
        events.iter().map(|event| event["key"].as_str().unwrap().to_owned()).collect()
    }
}

/// What to answer, after how long.
#[derive(Clone)]
pub(crate) struct Say {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) after: Duration,
}

impl Say {
    pub(crate) fn status(status: u16) -> Self {
        Self { status, fields: Vec::new(), after: Duration::ZERO }
    }

    pub(crate) fn field(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.after = wait;
        self
    }
}

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Receiver {
    /// Says one thing after the other, and the last again and again.
    pub(crate) async fn new(says: Vec<Say>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&got);
        let handler = move |request: http::Request<Body>| {
            let (says, noted) = (says.clone(), Arc::clone(&noted));
            async move {
                let (head, body) = request.into_parts();
                let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
                let number = {
                    let mut noted: std::sync::MutexGuard<'_, Vec<Got>> = noted.lock().unwrap();
                    noted.push(Got {
                        at: Instant::now(),
                        path: head.uri.path().to_owned(),
                        headers: head.headers,
                        body,
                    });
                    noted.len() - 1
                };
                let say = &says[number.min(says.len() - 1)];
                tokio::time::sleep(say.after).await;
                let answer = say
                    .fields
                    .iter()
                    .fold(Response::builder().status(say.status), |answer, (name, value)| {
                        answer.header(*name, value)
                    });
                answer.body(Body::from("thank you")).unwrap()
            }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
        Self { address, got }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/limits?from=tidegate", self.address)
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        self.got.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }
}
