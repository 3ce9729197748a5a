//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{any, get, post};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};

use super::App;
use super::auth::auth;
use super::check::check;
use super::exposition::TEXT;
use super::offenders::offenders;
use super::problem::{NO_STORE, problem};

/// The routes; there is none that changes anything.
pub(super) fn router(app: Arc<App>) -> Router {
    let router = Router::new()
        .route("/check", post(check))
        .route("/auth", any(auth))
        .route("/auth/", any(auth))
        .route("/auth/{*path}", any(auth))
        .route("/health", get(health))
        .route("/metrics", get(metrics));
    // Where nobody may ask there is no such path, whatever the method.
    let router = if app.admin_token.is_some() { router.route("/offenders", get(offenders)) } else { router };
    router.method_not_allowed_fallback(wrong_method).fallback(unknown).with_state(app)
}

async fn health(State(app): State<Arc<App>>) -> Response<Body> {
    let (status, body) = if *app.announced.borrow() {
        (StatusCode::SERVICE_UNAVAILABLE, "{\"status\":\"stopping\"}\n")
    } else {
        (StatusCode::OK, "{\"status\":\"ready\"}\n")
    };
    let mut response = told(body.to_owned(), "application/json");
    *response.status_mut() = status;
    response
}

async fn metrics(State(app): State<Arc<App>>) -> Response<Body> {
    told(app.metrics.text(&app), TEXT)
}

fn told(body: String, kind: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

/// axum says in `Allow` which methods there are.
async fn wrong_method(request: Request<Body>) -> Response<Body> {
    let detail = format!("{} does not take {}", request.uri().path(), request.method());
    problem(StatusCode::METHOD_NOT_ALLOWED, &detail)
}

async fn unknown() -> Response<Body> {
    problem(StatusCode::NOT_FOUND, "there are /check, /auth, /health and /metrics")
}
