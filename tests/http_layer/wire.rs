//! Clients and servers on real connections.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::Router;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tidegate::http::PeerAddress;
use tokio::net::{TcpListener, TcpStream};
use tower::{Service, ServiceExt};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Version {
    Http1,
    Http2,
}

/// One connection of a client.
pub(crate) enum Connection {
    Http1(http1::SendRequest<Empty<Bytes>>),
    Http2(http2::SendRequest<Empty<Bytes>>),
}

impl Connection {
    pub(crate) async fn open(server: SocketAddr, version: Version) -> Self {
        let stream = TokioIo::new(TcpStream::connect(server).await.unwrap());
        match version {
            Version::Http1 => {
                let (sender, connection) = http1::handshake(stream).await.unwrap();
                tokio::spawn(connection);
                Self::Http1(sender)
            }
            Version::Http2 => {
                let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
                tokio::spawn(connection);
                Self::Http2(sender)
            }
        }
    }

    /// Sends a request without a body, and reads the whole response.
    pub(crate) async fn send(&mut self, request: http::request::Builder) -> Response<Bytes> {
        let request = request.header("host", "localhost").body(Empty::new()).unwrap();
        let response = match self {
            Self::Http1(sender) => {
                sender.ready().await.unwrap();
                sender.send_request(request).await.unwrap()
            }
            Self::Http2(sender) => sender.send_request(request).await.unwrap(),
        };
        whole(response).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response<Bytes> {
        let uri = match self {
            Self::Http1(_) => path.to_owned(),
            Self::Http2(_) => format!("http://localhost{path}"),
        };
        self.send(Request::get(uri)).await
    }
}

pub(crate) async fn whole<B>(response: Response<B>) -> Response<Bytes>
where
    B: BodyExt<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (head, body) = response.into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

/// Serves with axum, which tells each request the other end of its connection.
pub(crate) async fn serve_axum(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

/// Serves with hyper, a clone of the service for each connection, whose other end its requests are told.
pub(crate) async fn serve_hyper<S, B>(service: S) -> SocketAddr
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: BodyExt<Data = Bytes> + Send + 'static,
    B::Error: std::error::Error + Send + Sync,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, peer) = listener.accept().await.unwrap();
            let service = service.clone().map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(PeerAddress(peer.ip()));
                request
            });
            let served = async move {
                let server = auto::Builder::new(TokioExecutor::new());
                let service = TowerToHyperService::new(service);
                // A client that is gone is nothing to stop for.
                _ = server.serve_connection(TokioIo::new(stream), service).await;
            };
            tokio::spawn(served);
        }
    });
    address
}
