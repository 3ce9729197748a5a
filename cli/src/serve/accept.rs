//! Connections as they come.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use tidegate::http::PeerAddress;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

use super::App;
use super::bounds::{ACCEPT_PAUSE, BACKLOG};
use super::connection::{self, Activity};
use super::metrics::Endpoint;
use super::places::{Place, Taken};
use super::problem::problem;

/// Listens at an address.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is started again may listen at once. (Elsewhere the option lets others take the port.)
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections until it is dropped; each takes a place of `places`, and while there is none the next waits in the
/// system's queue, which costs this process nothing.
pub(super) async fn accept(app: Arc<App>, router: Router, listener: TcpListener, places: Arc<Semaphore>) {
    let builder = Arc::new(connection::builder(&app.bounds));
    let mut complained: Option<Instant> = None;
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are one write each.
                _ = stream.set_nodelay(true);
                app.metrics.accepted.increment(1);
                let (app, router, builder) = (Arc::clone(&app), router.clone(), Arc::clone(&builder));
                tokio::spawn(async move {
                    let open = Open::new(Arc::clone(&app), place);
                    let activity = Activity::new();
                    let answer = {
                        let (app, activity) = (Arc::clone(&app), activity.clone());
                        move |request| {
                            answer(Arc::clone(&app), router.clone(), activity.clone(), peer, request)
                        }
                    };
                    let stopping = app.stopping.clone();
                    if !connection::serve(&builder, &app.bounds, stream, activity, answer, stopping).await {
                        app.metrics.broken.increment(1);
                    }
                    drop(open);
                });
            }
            Err(error) => {
                app.metrics.accept_errors.increment(1);
                // Told once a second at most: it may go on for hours.
                if complained.is_none_or(|last| last.elapsed().as_secs() >= 1) {
                    tracing::warn!("no connection accepted: {error}");
                    complained = Some(Instant::now());
                }
                // Of too many open files nothing is better in the next moment; those that are open are served meanwhile.
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// A connection that is counted as open.
struct Open {
    app: Arc<App>,
    _place: OwnedSemaphorePermit,
}

impl Open {
    fn new(app: Arc<App>, place: OwnedSemaphorePermit) -> Self {
        app.metrics.connections.add();
        Self { app, _place: place }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.app.metrics.connections.remove();
    }
}

async fn answer(
    app: Arc<App>,
    mut router: Router,
    activity: Activity,
    peer: SocketAddr,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let running = activity.begin();
    let endpoint = Endpoint::of(request.uri().path());
    let has_connection = request.version() < Version::HTTP_2;
    request.extensions_mut().insert(PeerAddress(peer.ip()));
    let Some(place) = app.places.take(endpoint, activity.running()) else {
        let response = problem(StatusCode::SERVICE_UNAVAILABLE, "too many requests are under way");
        app.metrics.answered(endpoint, response.status());
        return Ok(response.map(|body| Body::new(Taken::new(body, running, Place::none()))));
    };
    // A router of axum's is ready at any time.
    let answered = router.call(request.map(Body::new));
    let response = match tokio::time::timeout(app.bounds.request_timeout, answered).await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => {
            let mut response = problem(StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
            if has_connection {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
    };
    app.metrics.answered(endpoint, response.status());
    Ok(response.map(|body| Body::new(Taken::new(body, running, place))))
}
