//! How messages are sent, whatever the endpoint.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::error::WebhookError;
use crate::policy::Offender;

/// Whoever asks for it is told of the worst offenders.
pub(super) type Offenders = Arc<dyn Fn() -> Vec<Offender> + Send + Sync>;

/// How often and how long a message is tried, and what goes with it.
#[derive(Clone)]
#[must_use = "nothing is sent before webhooks are started with it"]
pub struct WebhookSettings {
    pub(super) attempts_max: u32,
    pub(super) retry_within: Duration,
    pub(super) attempt_timeout: Duration,
    pub(super) backoff: Duration,
    pub(super) backoff_max: Duration,
    pub(super) offenders: Option<Offenders>,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self {
            attempts_max: 8,
            retry_within: Duration::from_secs(15 * 60),
            attempt_timeout: Duration::from_secs(15),
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(2 * 60),
            offenders: None,
        }
    }
}

impl WebhookSettings {
    /// 8 attempts within 15 minutes of the first, 15 s for each, 1 s to 2 s after the first and up to 4 minutes after a later one.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most attempts for one message, the first included: 1 to 100; 8 unless told.
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// No attempt begins later than so long after the first: up to a day; 15 minutes unless told.
    pub fn retry_within(mut self, within: Duration) -> Self {
        self.retry_within = within;
        self
    }

    /// How long an attempt may take, from the look-up of the name to the head of the answer: 1 ms to 5 minutes; 15 s unless told.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = timeout;
        self
    }

    /// The shortest wait after the first attempt, doubled after each, up to `max`; a random part of it, up to all, is added. 1 ms to a day, `max` no
    /// shorter than `first`; 1 s and 2 minutes unless told.
    pub fn backoff(mut self, first: Duration, max: Duration) -> Self {
        (self.backoff, self.backoff_max) = (first, max);
        self
    }

    /// Has each message tell of the worst offenders too, ten at most, of those that its endpoint's patterns choose. The function is called when a
    /// message is made, by the endpoint's task, so it must not block. Where it panics the message tells of no offenders, and is sent nevertheless.
    pub fn offenders(mut self, offenders: impl Fn() -> Vec<Offender> + Send + Sync + 'static) -> Self {
        self.offenders = Some(Arc::new(offenders));
        self
    }

    pub(super) fn check(&self) -> Result<(), WebhookError> {
        let day = Duration::from_secs(86_400);
        let moment = Duration::from_millis(1);
        if !(1..=100).contains(&self.attempts_max) {
            let problem = format_args!("is {}; allowed: 1 to 100", self.attempts_max);
            return Err(WebhookError::of_settings("attempts_max", problem));
        }
        for (field, value, least, most) in [
            ("retry_within", self.retry_within, Duration::ZERO, day),
            ("attempt_timeout", self.attempt_timeout, moment, Duration::from_secs(300)),
            ("backoff", self.backoff, moment, day),
            ("backoff", self.backoff_max, self.backoff, day),
        ] {
            if !(least..=most).contains(&value) {
                let problem = format_args!("is {value:?}; allowed: {least:?} to {most:?}");
                return Err(WebhookError::of_settings(field, problem));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSettings")
            .field("attempts_max", &self.attempts_max)
            .field("retry_within", &self.retry_within)
            .field("attempt_timeout", &self.attempt_timeout)
            .field("backoff", &(self.backoff, self.backoff_max))
            .field("offenders", &self.offenders.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_named() {
        let ms = Duration::from_millis;
        assert_eq!(WebhookSettings::new().check(), Ok(()));
        for (settings, told) in [
            (WebhookSettings::new().attempts_max(0), "attempts_max: is 0; allowed: 1 to 100"),
            (WebhookSettings::new().attempt_timeout(ms(0)), "attempt_timeout: is 0ns; allowed: 1ms to 300s"),
            (
                WebhookSettings::new().retry_within(Duration::MAX),
                "retry_within: is 18446744073709551615.999999999s; allowed: 0ns to 86400s",
            ),
            (WebhookSettings::new().backoff(ms(20), ms(10)), "backoff: is 10ms; allowed: 20ms to 86400s"),
        ] {
            assert_eq!(settings.check().unwrap_err().to_string(), told);
        }
    }
}
