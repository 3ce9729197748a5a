//! Receivers that speak TLS, with a certificate that `made_up_authority` has signed. Its own key is no more.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use tidegate::notify::{Endpoint, Webhooks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{SECRET, eventually, quick, refusal};

const CERTIFICATE: &[u8] = include_bytes!("made_up_authority/localhost.pem");
const KEY: &[u8] = include_bytes!("made_up_authority/localhost.key.pem");

/// A receiver that accepts everything, and tells the first line of what it got. Its port.
async fn receiver() -> (u16, mpsc::UnboundedReceiver<String>) {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, tell) = (acceptor.clone(), tell.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut buffer = vec![0; 4096];
                let read = stream.read(&mut buffer).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
                tell.send(text.lines().next().unwrap_or("").to_owned()).unwrap();
                _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
                _ = stream.shutdown().await;
            });
        }
    });
    (port, told)
}

fn to(port: u16) -> Webhooks {
    let endpoint = Endpoint::new("ada", format!("https://localhost:{port}/limits")).secret(SECRET);
    Webhooks::start([endpoint.allow_networks(["127.0.0.0/8".parse().unwrap()])], quick()).unwrap()
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_refused() {
    if std::env::var_os("SSL_CERT_FILE").is_some() {
        return;
    }
    let (port, mut told) = receiver().await;
    let webhooks = to(port);
    webhooks.send(&refusal(1));
    eventually("it is given up", || webhooks.counts().given_up == 1).await;
    let why = webhooks.endpoints()[0].last_failure.clone().unwrap();
    assert!(why.contains("certificate") && webhooks.counts().refused_addresses == 0, "{why}");
    assert!(told.try_recv().is_err(), "nothing is sent to a stranger");
}

/// On Linux a variable of the environment says whom the system trusts; so a process of its own is asked.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_certificate_that_the_system_trusts_is_accepted() {
    let authority =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/webhooks/made_up_authority/authority.pem");
    if std::env::var_os("SSL_CERT_FILE") != Some(authority.clone().into_os_string()) {
        let name = "tls::a_certificate_that_the_system_trusts_is_accepted";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env("SSL_CERT_FILE", &authority)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let (port, mut told) = receiver().await;
    let webhooks = to(port);
    webhooks.send(&refusal(1));
    assert_eq!(told.recv().await.as_deref(), Some("POST /limits HTTP/1.1"));
    eventually("it is accepted", || webhooks.counts().delivered == 1).await;
    assert_eq!(webhooks.counts().failed_attempts, 0);
}
