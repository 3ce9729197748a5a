//! The bounds of the server. Each is a flag, or a constant here.

use std::time::Duration;

/// What clients may take of the server.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at a time; others wait in the system's queue.
    pub connections_max: usize,
    /// Requests at a time on one HTTP/2 connection.
    pub streams_max: u32,
    /// Fields of a request by HTTP/1.1.
    pub headers_max: usize,
    /// Bytes of the head of a request.
    pub header_bytes_max: usize,
    /// Bytes of the body of a `/check`.
    pub body_bytes_max: usize,
    /// From the first byte of a request's head, or from the beginning of a connection, to the end of the head.
    pub header_timeout: Duration,
    /// Without a request, a connection lasts so long after the last one.
    pub idle_timeout: Duration,
    /// From the end of a request's head to its answer.
    pub request_timeout: Duration,
    /// From the signal to stop until what still runs is cut off.
    pub stop_timeout: Duration,
    /// From the signal to stop until no more connections are accepted.
    pub stop_delay: Duration,
}

/// The smallest head that HTTP/1.1 can be bounded to.
pub const HEADER_BYTES_MIN: usize = 8192;

/// Requests that are under way at a time, but for `/check`, on all connections together; others are answered 503 at once. Each
/// holds its head, and its answer until the client has taken it.
pub(super) const REQUESTS_MAX: usize = 4096;

/// Requests to `/check` that are under way at a time. They alone wait for a body, which they hold too; so they have places of
/// their own, and who sends bodies slowly takes none of the others'.
pub(super) const CHECKS_MAX: usize = 2048;

/// When half of the places are taken, a connection has so many requests at a time and no more.
pub(super) const SHARE: usize = 8;

/// Connections that wait in the system's queue.
pub(super) const BACKLOG: u32 = 1024;

/// Files that are kept for what is no connection: the log, the policy, the watch, the runtime.
pub(super) const FILES_KEPT: u64 = 64;

/// Bytes of one HTTP/2 frame, the least that there is.
pub(super) const FRAME_BYTES_MAX: u32 = 16_384;

/// Bytes of answers that one HTTP/2 stream holds.
pub(super) const SEND_BYTES_MAX: usize = 65_536;

/// Bytes of an answer that are handed on at a time.
pub(super) const PIECE_BYTES: usize = 16_384;

/// HTTP/2 streams that a client may open and reset before they are looked at; more end the connection.
pub(super) const PENDING_RESETS_MAX: usize = 20;

/// HTTP/2 streams that are reset for a client's errors; more end the connection.
pub(super) const ERROR_RESETS_MAX: usize = 64;

/// After a connection was asked to end it has so long.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// A pause after the system could not give a connection: too many files are open, for one.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
