//! A partner: an HTTP server that verifies and keeps what it gets, and answers as it is told to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use standardwebhooks::Webhook;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::message::Message;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What to answer.
pub(crate) enum Say {
    Status(u16),
    /// 307, to there.
    Redirect(String),
    /// 200, but not before [`Receiver::release`].
    Held,
}

/// A request that came.
#[derive(Clone)]
pub(crate) struct Attempt {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// What it was answered; `None` as long as it is held.
    pub(crate) answered: Option<u16>,
}

impl Attempt {
    pub(crate) fn id(&self) -> &str {
        self.headers["webhook-id"].to_str().unwrap()
    }
}

#[derive(Default)]
struct Seen {
    connections: usize,
    attempts: Vec<Attempt>,
}

pub(crate) struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    released: watch::Sender<bool>,
}

impl Receiver {
    /// One that answers the attempts, numbered from 0, as `say` says.
    pub(crate) async fn start(say: impl Fn(usize) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, released) = (Arc::new(Mutex::new(Seen::default())), watch::Sender::new(false));
        let (noted, held, say) = (Arc::clone(&seen), released.subscribe(), Arc::new(say));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                noted.lock().unwrap().connections += 1;
                let (noted, held, say) = (Arc::clone(&noted), held.clone(), Arc::clone(&say));
                let service = service_fn(move |request| {
                    answer(request, Arc::clone(&noted), held.clone(), Arc::clone(&say))
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, seen, released }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/limits", self.address)
    }

    /// Answers what it holds, and what comes, at once.
    pub(crate) fn release(&self) {
        self.released.send_replace(true);
    }

    pub(crate) fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// All that came, each signed a moment ago with the secret.
    pub(crate) fn attempts(&self) -> Vec<Attempt> {
        let attempts = self.seen.lock().unwrap().attempts.clone();
        for attempt in &attempts {
            let webhook = Webhook::new(SECRET).unwrap();
            assert!(webhook.verify(&attempt.body, &attempt.headers).is_ok(), "{:?}", attempt.headers);
        }
        attempts
    }

    /// What it accepted, in the order in which it came.
    pub(crate) fn accepted(&self) -> Vec<Message> {
        let accepted = |attempt: &Attempt| attempt.answered.is_some_and(|status| status < 300);
        self.attempts().iter().filter(|attempt| accepted(attempt)).map(Message::of).collect()
    }
}

async fn answer(
    request: Request<Incoming>,
    seen: Arc<Mutex<Seen>>,
    mut held: watch::Receiver<bool>,
    say: Arc<impl Fn(usize) -> Say>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let number = {
        let attempts = &mut seen.lock().unwrap().attempts;
        attempts.push(Attempt { method: head.method, headers: head.headers, body, answered: None });
        attempts.len() - 1
    };
    let (status, location) = match say(number) {
        Say::Status(status) => (status, None),
        Say::Redirect(to) => (307, Some(to)),
        Say::Held => {
            // The receiver itself is gone: nobody is there to be told.
            _ = held.wait_for(|released| *released).await;
            (200, None)
        }
    };
    seen.lock().unwrap().attempts[number].answered = Some(status);
    let response = Response::builder().status(status);
    let response = location.into_iter().fold(response, |response, to| response.header("location", to));
    Ok(response.body(Empty::new()).unwrap())
}
