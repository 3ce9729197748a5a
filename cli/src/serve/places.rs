//! Places for requests: how many there may be at a time, and what a single connection may have of them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::bounds::{CHECKS_MAX, PIECE_BYTES, REQUESTS_MAX, SHARE};
use super::connection::Running;
use super::metrics::Endpoint;

/// The places of a server.
pub(super) struct Places {
    checks: Pool,
    others: Pool,
}

/// Places of one kind.
struct Pool {
    free: Arc<Semaphore>,
    size: usize,
}

/// A request's place; some need none.
pub(super) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// That of who needs none, or is told that there is none.
    pub(super) fn none() -> Self {
        Self { _permit: None }
    }
}

impl Places {
    pub(super) fn new() -> Self {
        Self { checks: Pool::new(CHECKS_MAX), others: Pool::new(REQUESTS_MAX) }
    }

    /// A place for a request whose connection has so many under way, itself among them.
    pub(super) fn take(&self, endpoint: Endpoint, of_connection: usize) -> Option<Place> {
        match endpoint {
            // Whoever looks after the server learns how it is, whatever others do to it.
            Endpoint::Health => Some(Place::none()),
            // Its answer is the longest, so no connection has many.
            Endpoint::Metrics => (of_connection <= SHARE).then(Place::none),
            Endpoint::Check => self.checks.take(of_connection),
            Endpoint::Auth | Endpoint::Offenders | Endpoint::Other => self.others.take(of_connection),
        }
    }
}

impl Pool {
    fn new(size: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(size)), size }
    }

    fn take(&self, of_connection: usize) -> Option<Place> {
        let is_scarce = self.free.available_permits() <= self.size / 2;
        if is_scarce && of_connection > SHARE {
            return None;
        }
        Arc::clone(&self.free).try_acquire_owned().ok().map(|permit| Place { _permit: Some(permit) })
    }
}

/// The body of an answer; its request is under way, and has its place, until the client has taken all of it.
///
/// It is given in pieces: HTTP/2 asks for no more than there is room for, but takes what it is given.
pub(super) struct Taken {
    body: Body,
    /// What is left of a frame of it.
    rest: Bytes,
    _held: (Running, Place),
}

impl Taken {
    pub(super) fn new(body: Body, mut running: Running, place: Place) -> Self {
        running.is_answered();
        Self { body, rest: Bytes::new(), _held: (running, place) }
    }
}

impl HttpBody for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let length = this.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(this.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_all_it_wants_of_half_and_eight_of_the_rest() {
        let places = Places::new();
        let checks = |of_connection| places.take(Endpoint::Check, of_connection);
        let mut held: Vec<Place> = (1..=CHECKS_MAX / 2).map(|at| checks(at).unwrap()).collect();
        assert!(checks(SHARE + 1).is_none());
        held.extend((0..CHECKS_MAX / 2).map(|_| checks(SHARE).unwrap()));
        assert!(checks(1).is_none(), "all are taken");
        // The others have places still, and some need none.
        assert!(places.take(Endpoint::Auth, SHARE + 1).is_some());
        assert!(places.take(Endpoint::Health, 1000).is_some());
        assert!(places.take(Endpoint::Metrics, SHARE).is_some());
        assert!(places.take(Endpoint::Metrics, SHARE + 1).is_none());
        held.pop();
        assert!(checks(SHARE).is_some());
        held.truncate(CHECKS_MAX / 2 - 1);
        assert!(checks(100).is_some());
    }

    #[test]
    fn all_requests_together_are_bounded() {
        let places = Places::new();
        let held: Vec<Place> = (0..REQUESTS_MAX).map(|_| places.take(Endpoint::Other, 1).unwrap()).collect();
        assert!(places.take(Endpoint::Auth, 1).is_none());
        assert!(places.take(Endpoint::Check, 1).is_some());
        drop(held);
        assert!(places.take(Endpoint::Auth, 1).is_some());
    }
}
