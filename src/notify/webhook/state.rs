//! What whoever sends and an endpoint's task share, under one lock that neither holds for longer than it takes to note something.

use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::endpoint::Endpoint;
use super::payload::{self, Frame};
use super::pending::Pending;
use super::retry::Failure;
use super::settings::Offenders;
use crate::policy::Event;

/// What has been counted since the start, of one endpoint or of all.
///
/// Each event that an endpoint wanted is in `events_taken`, and when it is settled in one of the other four; until then it waits, or its message
/// does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebhookCounts {
    /// Messages that were accepted: answered 2xx.
    pub delivered: u64,
    /// Messages that were tried as often, or as long, as they may be.
    pub given_up: u64,
    /// Messages that were under way when the time of [`stop`](super::Webhooks::stop) was over.
    pub lost_at_stop: u64,
    /// Attempts that failed: answered otherwise than 2xx or 410, or not at all in time.
    pub failed_attempts: u64,
    /// Those of them which were none, because there was no address that may be reached.
    pub refused_addresses: u64,
    /// Endpoints that answered 410 and get nothing more.
    pub gone: u64,
    /// Events that an endpoint wanted.
    pub events_taken: u64,
    /// Events in messages that were accepted.
    pub events_delivered: u64,
    /// Events that found no room before the next message; that tells how many.
    pub events_left_out: u64,
    /// Events in messages that were given up, and all for an endpoint that is gone.
    pub events_undelivered: u64,
    /// Events that had not been accepted when the time of a stop was over, and those that came after it.
    pub events_lost_at_stop: u64,
}

impl AddAssign for WebhookCounts {
    fn add_assign(&mut self, other: Self) {
        self.delivered += other.delivered;
        self.given_up += other.given_up;
        self.lost_at_stop += other.lost_at_stop;
        self.failed_attempts += other.failed_attempts;
        self.refused_addresses += other.refused_addresses;
        self.gone += other.gone;
        self.events_taken += other.events_taken;
        self.events_delivered += other.events_delivered;
        self.events_left_out += other.events_left_out;
        self.events_undelivered += other.events_undelivered;
        self.events_lost_at_stop += other.events_lost_at_stop;
    }
}

/// How one endpoint stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStatus {
    /// Its name.
    pub name: String,
    /// Whether it answered 410, and gets nothing more.
    pub is_gone: bool,
    /// Why the last attempt that failed did; `None` if none did since the last message was accepted. It tells no part of the URL but perhaps its
    /// name.
    pub last_failure: Option<String>,
    /// What was counted.
    pub counts: WebhookCounts,
}

/// A message, the same however often it is tried.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) body: String,
}

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Delivered,
    GivenUp,
    /// Neither, for want of time.
    Lost,
    /// And the endpoint with it.
    Gone,
}

/// What a task has to know before it waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glance {
    /// Since when something is pending; `None`: nothing is.
    pub(super) pending_since: Option<Instant>,
    /// When a stop has begun: when it ends.
    pub(super) stop_by: Option<Instant>,
}

pub(super) struct Shared {
    pub(super) endpoint: Endpoint,
    state: Mutex<State>,
    /// Rung when something is pending that was not before, and when a stop begins.
    bell: Notify,
}

struct State {
    pending: Pending,
    pending_since: Option<Instant>,
    /// Of the message that is tried, if there is one.
    under_way: Option<UnderWay>,
    stop_by: Option<Instant>,
    is_over: bool,
    told_until: Duration,
    undelivered: u64,
    last_failure: Option<String>,
    counts: WebhookCounts,
}

/// What a message tells, for as long as it may be that nobody hears it.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    events: u64,
    /// Of the messages before it.
    undelivered: u64,
    /// Before it was made.
    left_out: u64,
}

fn unix_now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

impl Shared {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let state = State {
            pending: Pending::default(),
            pending_since: None,
            under_way: None,
            stop_by: None,
            is_over: false,
            told_until: unix_now(),
            undelivered: 0,
            last_failure: None,
            counts: WebhookCounts::default(),
        };
        Self { endpoint, state: Mutex::new(state), bell: Notify::new() }
    }

    /// Whatever panicked meanwhile left counts that are off by one at most.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn send(&self, event: &Event) {
        if !self.endpoint.wants(event) {
            return;
        }
        let mut state = self.state();
        state.counts.events_taken += 1;
        if state.is_over {
            state.counts.events_lost_at_stop += 1;
        } else if state.counts.gone > 0 {
            state.counts.events_undelivered += 1;
        } else if !state.pending.add(event) {
            state.counts.events_left_out += 1;
        } else if state.pending_since.is_none() {
            state.pending_since = Some(Instant::now());
            self.bell.notify_one();
        }
    }

    pub(super) fn glance(&self) -> Glance {
        let state = self.state();
        Glance { pending_since: state.pending_since, stop_by: state.stop_by }
    }

    /// Waits until something is pending, or a stop begins. It may also return for no reason.
    pub(super) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Makes a message of what is pending; `None` if nothing is.
    pub(super) fn take(&self, id: String, offenders: Option<&Offenders>) -> Option<Message> {
        // Somebody else's code: outside the lock, and a panic of it ends no task. The panic's hook tells of it.
        let asked = catch_unwind(AssertUnwindSafe(|| offenders.map(|offenders| offenders())));
        let mut worst = asked.ok().flatten().unwrap_or_default();
        worst.retain(|offender| self.endpoint.wants_offender(offender));
        let mut state = self.state();
        let state = &mut *state;
        // The wall clock may have been set back.
        let until = unix_now().max(state.told_until);
        let frame = Frame { since: state.told_until, until, undelivered: state.undelivered };
        let left_out = state.pending.left_out();
        let (body, events) = payload::take(&mut state.pending, &frame, &worst)?;
        let undelivered = std::mem::take(&mut state.undelivered);
        state.under_way = Some(UnderWay { events, undelivered, left_out });
        state.told_until = until;
        state.pending_since = (!state.pending.is_empty()).then(Instant::now);
        Some(Message { id, body })
    }

    pub(super) fn failed(&self, failure: &Failure) {
        let mut state = self.state();
        state.counts.failed_attempts += 1;
        state.counts.refused_addresses += u64::from(failure.is_address_refused);
        state.last_failure = Some(failure.why.clone());
    }

    /// The message that was under way has come to an end.
    pub(super) fn settle(&self, end: End) {
        let mut state = self.state();
        let Some(UnderWay { events, undelivered, left_out }) = state.under_way.take() else {
            return; // The time of a stop was over first: it is counted as lost.
        };
        match end {
            End::Delivered => {
                state.counts.delivered += 1;
                state.counts.events_delivered += events;
                state.last_failure = None;
            }
            End::GivenUp => {
                state.counts.given_up += 1;
                state.counts.events_undelivered += events;
                state.undelivered += undelivered + events;
                state.pending.tell_again(left_out);
            }
            End::Lost => state.lose(events),
            End::Gone => {
                state.counts.gone += 1;
                let events = events + state.pending.clear();
                state.counts.events_undelivered += events;
                state.pending_since = None;
                state.last_failure = Some("answered 410: it wants no more messages".to_owned());
            }
        }
    }

    pub(super) fn stop_by(&self, by: Instant) {
        self.state().stop_by = Some(by);
        self.bell.notify_one();
    }

    /// The task is no more: what it left is lost.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        if let Some(message) = state.under_way.take() {
            state.lose(message.events);
        }
        let pending = state.pending.clear();
        state.counts.events_lost_at_stop += pending;
    }

    pub(super) fn counts(&self) -> WebhookCounts {
        self.state().counts
    }

    pub(super) fn status(&self) -> EndpointStatus {
        let state = self.state();
        EndpointStatus {
            name: self.endpoint.name.clone(),
            is_gone: state.counts.gone > 0,
            last_failure: state.last_failure.clone(),
            counts: state.counts,
        }
    }
}

impl State {
    /// A message with so many events.
    fn lose(&mut self, events: u64) {
        self.counts.lost_at_stop += 1;
        self.counts.events_lost_at_stop += events;
    }
}

/// All endpoints' together.
pub(super) fn sum(endpoints: &[Arc<Shared>]) -> WebhookCounts {
    let mut sum = WebhookCounts::default();
    endpoints.iter().for_each(|endpoint| sum += endpoint.counts());
    sum
}
