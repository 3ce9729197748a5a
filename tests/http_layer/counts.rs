//! Many connections and many clones have one count.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use tidegate::http::{Extractor, RateLimitLayer};
use tidegate::{Clock, Manual, Ticking};
use tower::{Layer, ServiceExt, service_fn};

use super::wire::{Connection, Version, serve_axum, serve_hyper};
use super::{EVERYBODY, policy, policy_on};

const CONNECTIONS: usize = 200;

/// One request on each of 200 connections that are all open before the first is sent; how many were served.
async fn served_of_200(server: SocketAddr, version: Version) -> usize {
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(server, version).await);
    }
    let sent: Vec<_> = connections
        .into_iter()
        .map(|mut connection| tokio::spawn(async move { connection.get("/").await.status() }))
        .collect();
    let mut served = 0;
    for answer in sent {
        let status = answer.await.unwrap();
        assert!(matches!(status, StatusCode::OK | StatusCode::TOO_MANY_REQUESTS), "{status}");
        served += usize::from(status == StatusCode::OK);
    }
    served
}

fn counted_app(reached: &Arc<AtomicUsize>) -> Router {
    let reached = reached.clone();
    Router::new().route("/", get(move || async move { _ = reached.fetch_add(1, Ordering::Relaxed) }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_200_connections_to_axum_5_are_served_in_an_instant() {
    for version in [Version::Http1, Version::Http2] {
        let (clock, reached) = (Manual::new(), Arc::new(AtomicUsize::new(0)));
        let layer = RateLimitLayer::new(policy(EVERYBODY, &clock));
        let server = serve_axum(counted_app(&reached).layer(layer)).await;
        assert_eq!(served_of_200(server, version).await, 5, "{version:?}");
        // Two seconds later there are as many as the burst again, and no more.
        clock.advance(Duration::from_secs(2));
        assert_eq!(served_of_200(server, version).await, 5, "{version:?}");
        assert_eq!(reached.load(Ordering::Relaxed), 10);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_200_connections_to_hyper_5_are_served_in_an_instant() {
    for version in [Version::Http1, Version::Http2] {
        let (clock, reached) = (Manual::new(), Arc::new(AtomicUsize::new(0)));
        let handler = service_fn({
            let reached = reached.clone();
            move |_: Request<Incoming>| {
                reached.fetch_add(1, Ordering::Relaxed);
                async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())) }
            }
        });
        let limited = RateLimitLayer::new(policy(EVERYBODY, &clock)).layer(handler);
        let server = serve_hyper(limited).await;
        assert_eq!(served_of_200(server, version).await, 5, "{version:?}");
        assert_eq!(reached.load(Ordering::Relaxed), 5);
    }
}

/// Clones of a service, services of one layer, services of its clones, services of another layer over the same policy.
#[tokio::test]
async fn whatever_is_made_of_one_policy_has_one_count() {
    let policy = policy(EVERYBODY, &Manual::new());
    let extractor = || Extractor::new().without_address();
    let layer = RateLimitLayer::new(policy.clone()).extract(extractor());
    let handler = || {
        service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())) })
    };
    let first = layer.layer(handler());
    let mut served = 0;
    for _ in 0..50 {
        let services = [
            first.clone(),
            layer.layer(handler()),
            layer.clone().layer(handler()),
            RateLimitLayer::new(policy.clone()).extract(extractor()).layer(handler()),
        ];
        for service in services {
            let response = service.oneshot(Request::new(())).await.unwrap();
            served += usize::from(response.status() == StatusCode::OK);
        }
    }
    assert_eq!(served, 5);
}

/// The bound of a bucket, on its real clock: burst + rate · (Δ + lag) + one check a thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_the_real_clock_200_connections_get_burst_and_rate() {
    const THREADS: f64 = 2.0;
    let (clock, reached) = (Ticking::new(), Arc::new(AtomicUsize::new(0)));
    let layer = RateLimitLayer::new(policy_on(EVERYBODY, clock));
    let server = serve_axum(counted_app(&reached).layer(layer)).await;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(server, Version::Http1).await);
    }
    let start = Instant::now();
    let until = start + Duration::from_millis(1_500);
    let busy: Vec<_> = connections
        .into_iter()
        .map(|mut connection| {
            tokio::spawn(async move {
                while Instant::now() < until {
                    _ = connection.get("/").await;
                }
            })
        })
        .collect();
    for client in busy {
        client.await.unwrap();
    }
    let interval = start.elapsed() + clock.lag_max() + Duration::from_millis(1);
    let reached = reached.load(Ordering::Relaxed);
    assert!(reached as f64 <= 5.0 + 5.0 * interval.as_secs_f64() + THREADS, "{reached} in {interval:?}");
    // Five at once and, of the seven that came back in that time, most.
    assert!(reached >= 10, "{reached}");
}
