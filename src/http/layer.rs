//! The layer for tower: a service that asks a policy before each request.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::HeaderName;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::answering::{Answering, Fields};
use super::extract::{Extract, Extractor};
use super::facts::Facts;
use super::head::Head;
use crate::policy::Policy;
use crate::time::{Clock, Ticking};

/// What a request has cost, as an extension of the response: it is charged on top of what the check counted. See [`Charge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost(pub u64);

/// Where a response tells what the request has cost, for a cost that is known only afterwards: tokens of an answer, bytes sent.
///
/// It is charged on top of what the check counted, to every limit that counts the request, whether or not it fits (see
/// [`Policy::charge`]); the fields of the response then tell how things stand after it. A response that tells no cost, or none that
/// is a whole number below 2^64, or 0, is charged nothing more; neither is a request whose service fails, or whose client is gone before
/// the response begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Charge {
    /// The extension [`Cost`].
    Extension,
    /// This field of the response, which is taken out of it.
    Field(HeaderName),
    /// This field of the response, which clients see too.
    FieldKept(HeaderName),
}

impl Charge {
    fn cost<B>(&self, response: &mut Response<B>) -> Option<u64> {
        let (name, is_kept) = match self {
            Self::Extension => return response.extensions().get::<Cost>().map(|cost| cost.0),
            Self::Field(name) => (name, false),
            Self::FieldKept(name) => (name, true),
        };
        let cost = response.headers().get(name)?.to_str().ok().and_then(|text| text.trim().parse().ok());
        if !is_kept {
            response.headers_mut().remove(name);
        }
        cost
    }
}

/// A [`Layer`] that asks a policy before each request: one that may go on reaches the service behind it, and its response gets the
/// fields that tell the client how it stands; one that may not is answered without it.
///
/// Everything that is made of one layer, and every clone of that, counts in the one policy. Nothing waits for another request, and
/// an admitted one allocates no more than its fields and what its [`Extract`] does.
///
/// ```
/// use std::sync::Arc;
/// use axum::{Router, routing::get};
/// use tidegate::http::RateLimitLayer;
/// use tidegate::policy::{Policy, Rules};
///
/// let rules = r#"rule = [{ name = "address", key = "client_ip", limit = { rate = "5/s", burst = 20 } }]"#;
/// let policy = Arc::new(Policy::new(Rules::from_toml(rules, "limits.toml")?)?);
/// let app = Router::<()>::new().route("/", get(|| async { "hello" })).layer(RateLimitLayer::new(policy));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Serve it with `into_make_service_with_connect_info::<SocketAddr>()`: an [`Extractor`] wants to know the connection's other end.
pub struct RateLimitLayer<C = Ticking, E = Extractor> {
    policy: Arc<Policy<C>>,
    extract: Arc<E>,
    answering: Answering,
    charge: Option<Charge>,
}

impl<C> RateLimitLayer<C> {
    /// Asks this policy, about what an [`Extractor`] knows by itself of a request.
    pub fn new(policy: Arc<Policy<C>>) -> Self {
        Self { policy, extract: Arc::default(), answering: Answering::default(), charge: None }
    }
}

impl<C, E> RateLimitLayer<C, E> {
    /// What the policy is told of a request.
    #[must_use]
    pub fn extract<F: Extract>(self, extract: F) -> RateLimitLayer<C, F> {
        let Self { policy, answering, charge, .. } = self;
        RateLimitLayer { policy, extract: Arc::new(extract), answering, charge }
    }

    /// What clients are told.
    #[must_use]
    pub fn answering(mut self, answering: Answering) -> Self {
        self.answering = answering;
        self
    }

    /// Charges what a response says its request has cost. What is known of the request is then copied, to be there after it.
    #[must_use]
    pub fn charge(mut self, charge: Charge) -> Self {
        self.charge = Some(charge);
        self
    }
}

impl<C, E> Clone for RateLimitLayer<C, E> {
    fn clone(&self) -> Self {
        let Self { policy, extract, answering, charge } = self;
        Self {
            policy: policy.clone(),
            extract: extract.clone(),
            answering: answering.clone(),
            charge: charge.clone(),
        }
    }
}

impl<C, E> fmt::Debug for RateLimitLayer<C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answering, charge, .. } = self;
        f.debug_struct("RateLimitLayer")
            .field("answering", answering)
            .field("charge", charge)
            .finish_non_exhaustive()
    }
}

impl<S, C, E> Layer<S> for RateLimitLayer<C, E> {
    type Service = RateLimit<S, C, E>;

    fn layer(&self, inner: S) -> RateLimit<S, C, E> {
        RateLimit { inner, layer: Arc::new(self.clone()) }
    }
}

/// A service behind a policy: what [`RateLimitLayer`] makes.
///
/// It is ready when the service behind it is. A request that is refused leaves that one ready for the next: it keeps what it has
/// reserved for a request (a place under `ConcurrencyLimit`, say) until then, or until this is dropped.
pub struct RateLimit<S, C = Ticking, E = Extractor> {
    inner: S,
    layer: Arc<RateLimitLayer<C, E>>,
}

impl<S: Clone, C, E> Clone for RateLimit<S, C, E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<S: fmt::Debug, C, E> fmt::Debug for RateLimit<S, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

/// What an admitted request takes along.
struct Admitted<C, E> {
    fields: Fields,
    charging: Option<Box<Charging<C, E>>>,
}

/// What is needed to charge a request after its response.
struct Charging<C, E> {
    layer: Arc<RateLimitLayer<C, E>>,
    charge: Charge,
    /// `None` of a request that nothing counts.
    facts: Option<Facts<'static>>,
}

impl<C: Clock + Clone + 'static, E: Extract> RateLimitLayer<C, E> {
    /// Decides a request and counts it. Not inlined: a verdict is large, and is gone before the service behind is called.
    #[inline(never)]
    fn decide(self: &Arc<Self>, head: Head<'_>) -> Result<Admitted<C, E>, Box<Response<Bytes>>> {
        let facts = match self.extract.extract(head) {
            Ok(facts) => facts,
            Err(missing) => {
                // Nothing counts it, and its client is not told its cost either.
                let uncounted = Admitted { fields: Fields::default(), charging: self.charging(None) };
                return missing.refusal().map_or(Ok(uncounted), |response| Err(Box::new(response)));
            }
        };
        let verdict = facts.with_request(|request| self.policy.check(request));
        if !verdict.is_allowed() {
            return Err(Box::new(self.answering.refusal(&verdict, head.headers)));
        }
        Ok(Admitted { fields: self.answering.fields(&verdict), charging: self.charging(Some(facts)) })
    }

    /// What is needed after the response, if that may tell a cost.
    fn charging(self: &Arc<Self>, facts: Option<Facts<'_>>) -> Option<Box<Charging<C, E>>> {
        let charge = self.charge.clone()?;
        Some(Box::new(Charging { layer: self.clone(), charge, facts: facts.map(Facts::into_owned) }))
    }
}

impl<C: Clock + Clone + 'static, E> Charging<C, E> {
    /// Charges what the response tells; the fields as they are then, if it tells anything.
    fn charge<B>(&self, response: &mut Response<B>) -> Option<Fields> {
        let cost = self.charge.cost(response).filter(|&cost| cost > 0)?;
        let verdict = self.facts.as_ref()?.with_request(|request| self.layer.policy.charge(request, cost));
        Some(self.layer.answering.fields(&verdict))
    }
}

impl<S, C, E, B, R> Service<Request<B>> for RateLimit<S, C, E>
where
    S: Service<Request<B>, Response = Response<R>>,
    C: Clock + Clone + 'static,
    E: Extract,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, C, E>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let state = match self.layer.decide(Head::of(&request)) {
            // The service that was asked whether it is ready, not a clone of it.
            Ok(Admitted { fields, charging }) => {
                State::Admitted { response: self.inner.call(request), fields, charging }
            }
            Err(response) => State::Refused { response: Some(response) },
        };
        ResponseFuture { state }
    }
}

pin_project! {
    /// The response to come of a [`RateLimit`].
    pub struct ResponseFuture<F, C = Ticking, E = Extractor> {
        #[pin]
        state: State<F, C, E>,
    }
}

pin_project! {
    #[project = StateNow]
    enum State<F, C, E> {
        Admitted {
            #[pin]
            response: F,
            fields: Fields,
            charging: Option<Box<Charging<C, E>>>,
        },
        Refused { response: Option<Box<Response<Bytes>>> },
    }
}

impl<F, C, E, R, Error> Future for ResponseFuture<F, C, E>
where
    F: Future<Output = Result<Response<R>, Error>>,
    C: Clock + Clone + 'static,
{
    type Output = Result<Response<ResponseBody<R>>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateNow::Admitted { response, fields, charging } => {
                let mut response = ready!(response.poll(context))?;
                let charged = charging.take().and_then(|charging| charging.charge(&mut response));
                charged.unwrap_or_else(|| std::mem::take(fields)).apply(response.headers_mut());
                Poll::Ready(Ok(response.map(ResponseBody::behind)))
            }
            StateNow::Refused { response } => {
                let response = response.take().expect("a future is not polled after it was ready");
                Poll::Ready(Ok(response.map(ResponseBody::refusal)))
            }
        }
    }
}

impl<F, C, E> fmt::Debug for ResponseFuture<F, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

pin_project! {
    /// The body of a response: what the service behind made, or what a refusal says.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindNow]
    #[derive(Debug)]
    enum Kind<B> {
        Behind { #[pin] body: B },
        // Empty once it is read.
        Refusal { text: Bytes },
    }
}

impl<B> ResponseBody<B> {
    fn behind(body: B) -> Self {
        Self { kind: Kind::Behind { body } }
    }

    fn refusal(text: Bytes) -> Self {
        Self { kind: Kind::Refusal { text } }
    }
}

impl<B: Body> Body for ResponseBody<B>
where
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project().kind.project() {
            KindNow::Behind { body } => body.poll_frame(context),
            KindNow::Refusal { text } if text.is_empty() => Poll::Ready(None),
            KindNow::Refusal { text } => Poll::Ready(Some(Ok(Frame::data(std::mem::take(text).into())))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Behind { body } => body.is_end_stream(),
            Kind::Refusal { text } => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Behind { body } => body.size_hint(),
            Kind::Refusal { text } => SizeHint::with_exact(text.len() as u64),
        }
    }
}
