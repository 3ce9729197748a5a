//! What goes over the wire. The only file that names standardwebhooks and rustls.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};

use super::addresses::Refused;
use super::endpoint::Checked;
use super::retry::{Failure, Outcome, outcome};

/// A secret, ready to sign with.
pub(super) struct Key(Webhook);

impl Key {
    pub(super) fn new(secret: &str) -> Result<Self, String> {
        const ALLOWED: &str = "whsec_ and 24 to 64 bytes in base64";
        let Some(encoded) = secret.strip_prefix("whsec_") else {
            return Err(format!("does not begin with whsec_; allowed: {ALLOWED}"));
        };
        let webhook = Webhook::new(secret).map_err(|_| format!("is no base64; allowed: {ALLOWED}"))?;
        let bytes = encoded.trim_end_matches('=').len() * 3 / 4;
        if !(24..=64).contains(&bytes) {
            return Err(format!("has {bytes} bytes; allowed: 24 to 64 in base64"));
        }
        Ok(Self(webhook))
    }
}

/// The signatures of all keys, the first key's first.
fn signatures(keys: &[Key], id: &str, unix_s: i64, body: &str) -> String {
    let sign = |key: &Key| key.0.sign(id, unix_s, body.as_bytes());
    // It fails only for a body that is no text.
    keys.iter().filter_map(|key| sign(key).ok()).collect::<Vec<_>>().join(" ")
}

/// Makes one attempt.
pub(super) trait Post: Send + Sync + 'static {
    fn post(&self, id: &str, body: &str) -> impl Future<Output = Outcome> + Send;
}

/// Over HTTP.
pub(super) struct Http {
    client: reqwest::Client,
    url: reqwest::Url,
    keys: Vec<Key>,
}

impl Http {
    pub(super) fn new(checked: Checked, timeout: Duration) -> Result<Self, String> {
        let told = |why: &dyn Error| format!("no client can be made: {}", with_causes(why));
        let is_secure = checked.url.scheme() == "https";
        let tls = tls(is_secure).map_err(|why| told(&why))?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .https_only(is_secure)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .dns_resolver(Arc::new(checked.addresses))
            .timeout(timeout)
            .pool_max_idle_per_host(1)
            .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|why| told(&why))?;
        Ok(Self { client, url: checked.url, keys: checked.keys })
    }
}

/// The cryptography is ring's, and the system says whom to trust; where nothing is encrypted nobody is asked for that.
fn tls(is_secure: bool) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = if is_secure {
        config.with_platform_verifier()?
    } else {
        config.with_root_certificates(RootCertStore::empty())
    };
    Ok(config.with_no_client_auth())
}

impl Post for Http {
    async fn post(&self, id: &str, body: &str) -> Outcome {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_s = i64::try_from(unix.as_secs()).unwrap_or(i64::MAX);
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(HEADER_WEBHOOK_ID, id)
            .header(HEADER_WEBHOOK_TIMESTAMP, unix_s)
            .header(HEADER_WEBHOOK_SIGNATURE, signatures(&self.keys, id, unix_s, body))
            .body(body.to_owned());
        match request.send().await {
            // What else the receiver says is not read.
            Ok(response) => {
                let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                outcome(response.status().as_u16(), retry_after, SystemTime::now())
            }
            Err(error) => {
                // The URL may hold a secret.
                let error = error.without_url();
                let is_address_refused = causes(&error).any(|cause| cause.is::<Refused>());
                Outcome::Failed(Failure { why: with_causes(&error), retry_after: None, is_address_refused })
            }
        }
    }
}

fn causes(error: &dyn Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

fn with_causes(error: &dyn Error) -> String {
    let causes = causes(error).map(|cause| format!(": {cause}"));
    error.to_string() + &causes.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::SECRET;
    use super::*;

    /// The vector of the specification's own libraries.
    #[test]
    fn a_signature_is_what_the_specification_says() {
        let key = Key::new(SECRET).unwrap();
        let signed = |keys: &[Key]| {
            signatures(keys, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#)
        };
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signed(&[key]), expected);
        let old = Key::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
        let both = signed(&[old, Key::new(SECRET).unwrap()]);
        let (first, second) = both.split_once(' ').unwrap();
        assert!(first.starts_with("v1,") && first != expected && second == expected, "{both}");
    }

    #[test]
    fn a_secret_has_its_length_and_its_prefix() {
        let of = |bytes: usize| {
            // A group of three zero bytes is AAAA.
            let rest = ["", "AA==", "AAA="][bytes % 3];
            Key::new(&format!("whsec_{}{rest}", "AAAA".repeat(bytes / 3)))
        };
        let fine: Vec<usize> = (0..80).filter(|&bytes| of(bytes).is_ok()).collect();
        assert_eq!(fine, (24..=64).collect::<Vec<_>>());
        assert!(Key::new(&SECRET[6..]).is_err());
    }
}
