//! One connection: HTTP/1.1 or HTTP/2 by its first bytes, and an end when its client is too slow.
//!
//! What a connection is about its [`Activity`] says, which three tell: the stream that bytes come in, each request that it begins, and
//! that it has been answered.
//!
//! ```text
//! accepted             -> the head of a request within header_timeout
//! bytes while nothing runs -> the rest of the head within header_timeout
//! answered, no bytes   -> idle_timeout
//! something runs       -> that has a limit of its own
//! answers not taken    -> the oldest within request_timeout
//! ```

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use http::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::bounds::{Bounds, ERROR_RESETS_MAX, FRAME_BYTES_MAX, LINGER, PENDING_RESETS_MAX, SEND_BYTES_MAX};

/// Whether the server stops.
pub(super) type Stopping = watch::Receiver<bool>;

/// What a connection does.
#[derive(Clone)]
pub(super) struct Activity(Arc<Mutex<State>>);

struct State {
    /// Requests that are not answered, or whose answer has not been taken.
    running: usize,
    /// When the answers were made that have not been taken. In no order; the same times are worth the same.
    answered: Vec<Instant>,
    /// Whether there was any.
    has_asked: bool,
    /// When the last was answered, or the connection began.
    idle_since: Instant,
    /// When the bytes came of which no request has been made.
    head_since: Option<Instant>,
}

impl Activity {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let state = State {
            running: 0,
            answered: Vec::new(),
            has_asked: false,
            idle_since: now,
            head_since: Some(now),
        };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that can panic is done with it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests that are under way.
    pub(super) fn running(&self) -> usize {
        self.state().running
    }

    /// A request has begun; it ends when what this returns is dropped.
    pub(super) fn begin(&self) -> Running {
        let mut state = self.state();
        state.running += 1;
        state.has_asked = true;
        state.head_since = None;
        Running { activity: self.clone(), answered: None }
    }

    fn bytes_came(&self) {
        let mut state = self.state();
        if state.running == 0 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// When the connection ends unless something happens, and whether that is for a client that is too slow.
    fn deadline(&self, bounds: &Bounds) -> (Instant, bool) {
        let state = self.state();
        // Others of its requests may go on: who leaves a single answer untaken for so long has it held here, and more.
        if let Some(oldest) = state.answered.iter().min() {
            return (*oldest + bounds.request_timeout, true);
        }
        match state.head_since {
            _ if state.running > 0 => (Instant::now() + bounds.request_timeout, false),
            Some(since) => (since + bounds.header_timeout, true),
            None => (state.idle_since + bounds.idle_timeout, false),
        }
    }
}

/// A request that is under way: until its answer has been taken.
pub(super) struct Running {
    activity: Activity,
    answered: Option<Instant>,
}

impl Running {
    /// From now on it waits for its client alone.
    pub(super) fn is_answered(&mut self) {
        let now = Instant::now();
        self.answered = Some(now);
        self.activity.state().answered.push(now);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.running -= 1;
        state.idle_since = Instant::now();
        if let Some(at) = state.answered.iter().position(|answered| Some(*answered) == self.answered) {
            state.answered.swap_remove(at);
        }
    }
}

/// A stream that tells when bytes come.
struct Watched {
    stream: TcpStream,
    activity: Activity,
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            this.activity.bytes_came();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// What reads and writes HTTP, within bounds.
pub(super) fn builder(bounds: &Bounds) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_headers(bounds.headers_max).max_buf_size(bounds.header_bytes_max);
    let window = u32::try_from(bounds.body_bytes_max).unwrap_or(u32::MAX).clamp(FRAME_BYTES_MAX, 1 << 30);
    builder
        .http2()
        .max_concurrent_streams(bounds.streams_max)
        .max_header_list_size(u32::try_from(bounds.header_bytes_max).unwrap_or(u32::MAX))
        .max_frame_size(FRAME_BYTES_MAX)
        .max_send_buf_size(SEND_BYTES_MAX)
        .initial_stream_window_size(window)
        .initial_connection_window_size(window)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_local_error_reset_streams(ERROR_RESETS_MAX);
    builder
}

/// Waits until the server stops.
async fn told(stopping: &mut Stopping) {
    // That nobody can say it any more is the end of the server too.
    _ = stopping.wait_for(|stops| *stops).await;
}

/// Serves a connection to its end; whether that was a good one.
pub(super) async fn serve<S, F>(
    builder: &Builder<TokioExecutor>,
    bounds: &Bounds,
    stream: TcpStream,
    activity: Activity,
    answer: S,
    mut stopping: Stopping,
) -> bool
where
    S: Fn(Request<hyper::body::Incoming>) -> F + Send + Sync,
    F: Future<Output = Result<Response<Body>, std::convert::Infallible>> + Send + 'static,
{
    let io = TokioIo::new(Watched { stream, activity: activity.clone() });
    let mut connection = pin!(builder.serve_connection(io, hyper::service::service_fn(answer)));
    let mut is_told = false;
    loop {
        // What comes meanwhile may bring the deadline nearer, so it is looked at from time to time.
        let wake = activity.deadline(bounds).0.min(Instant::now() + bounds.header_timeout);
        tokio::select! {
            result = connection.as_mut() => return result.is_ok(),
            () = told(&mut stopping), if !is_told => {
                is_told = true;
                connection.as_mut().graceful_shutdown();
            }
            () = tokio::time::sleep_until(wake.into()) => {
                let (deadline, is_too_slow) = activity.deadline(bounds);
                if deadline > Instant::now() {
                    continue;
                }
                if is_too_slow {
                    return false;
                }
                connection.as_mut().graceful_shutdown();
                return tokio::time::timeout(LINGER, connection).await.is_ok_and(|result| result.is_ok());
            }
        }
    }
}
