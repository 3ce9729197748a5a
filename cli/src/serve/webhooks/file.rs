//! The file of `--webhooks`: strict, and everything that is wrong told at once, `file:line:column: what`.

use std::path::Path;
use std::time::Duration;

use ipnet::IpNet;
use tidegate::notify::{Endpoint, WebhookError, WebhookSettings};
use tidegate::policy::Pattern;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::mistakes::{Mistakes, nearest, shown};

/// The longest time that a file can ask for, in seconds: a day.
const SECONDS_MAX: f64 = 86_400.0;

const ROOT: [&str; 5] = ["endpoint", "attempts_max", "retry_within_s", "attempt_timeout_s", "offenders"];
const ENDPOINT: [&str; 10] = [
    "name",
    "url",
    "secrets",
    "secrets_file",
    "secrets_env",
    "rules",
    "keys",
    "interval_s",
    "allow_http",
    "allow_networks",
];

/// What a file says.
#[derive(Debug, Default)]
pub struct Webhooks {
    /// In the order of the file.
    pub endpoints: Vec<Endpoint>,
    /// How messages are sent.
    pub settings: WebhookSettings,
    /// Whether each message tells of the worst offenders.
    pub offenders: bool,
}

/// Reads a file: a line for each mistake.
///
/// # Errors
/// All that is wrong with it, in the order of the file.
pub fn read(path: &Path) -> Result<Webhooks, Vec<String>> {
    let file = path.to_string_lossy();
    let text =
        std::fs::read_to_string(path).map_err(|error| vec![format!("{file} cannot be read: {error}")])?;
    let beside = path.parent().unwrap_or(Path::new(""));
    parse(&text, &file, beside, |name| std::env::var(name).ok())
}

/// `beside` is the folder that names of files begin at.
fn parse(
    text: &str,
    file: &str,
    beside: &Path,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Webhooks, Vec<String>> {
    let mut reader = Reader { beside, env: &env, wrong: Mistakes::new(text, file) };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reader.wrong.add(error.span().map_or(0, |span| span.start), error.message());
    }
    let webhooks = if errors.is_empty() { reader.all(table.get_ref()) } else { Webhooks::default() };
    reader.wrong.or(webhooks)
}

struct Reader<'a> {
    beside: &'a Path,
    env: &'a dyn Fn(&str) -> Option<String>,
    wrong: Mistakes<'a>,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl Reader<'_> {
    /// Tells what is wrong with a value, which is not shown where it may be a secret.
    fn not_allowed(&mut self, name: &str, value: &Value<'_>, allowed: &str) {
        let what = match shown(value.get_ref()) {
            Some(found) if !name.contains("secrets") => format!("{name} is {found}; it must be {allowed}"),
            _ => format!("{name} must be {allowed}"),
        };
        self.wrong.add(value.span().start, what);
    }

    fn only_known(&mut self, table: &DeTable<'_>, known: &[&str], place: &str) {
        for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref().as_ref();
            let near =
                nearest(name, known).map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
            let dot = if near.is_empty() { ";" } else { "" };
            let known = known.join(", ");
            self.wrong
                .add(key.span().start, format!("unknown field \"{name}\"{place}{near}{dot} Known: {known}"));
        }
    }

    fn all(&mut self, root: &DeTable<'_>) -> Webhooks {
        self.only_known(root, &ROOT, "");
        let mut settings = WebhookSettings::new();
        if let Some(value) = get(root, "attempts_max")
            && let Some(attempts) = self.whole("attempts_max", value, 1, 100)
        {
            settings = settings.attempts_max(u32::try_from(attempts).unwrap_or(u32::MAX));
        }
        if let Some(within) = self.seconds(root, "retry_within_s", 0.0, SECONDS_MAX) {
            settings = settings.retry_within(within);
        }
        if let Some(timeout) = self.seconds(root, "attempt_timeout_s", 0.001, 300.0) {
            settings = settings.attempt_timeout(timeout);
        }
        let offenders = self.is_so(root, "offenders");
        let mut endpoints: Vec<(String, Endpoint)> = Vec::new();
        match get(root, "endpoint") {
            None => self.wrong.add(0, "no endpoint; one begins with [[endpoint]]"),
            Some(value) => match value.get_ref().as_array() {
                None => self.not_allowed("endpoint", value, "a list of tables; one begins with [[endpoint]]"),
                Some(list) => {
                    for entry in list.iter() {
                        let Some((name, endpoint)) = self.endpoint(entry) else { continue };
                        if endpoints.iter().any(|(other, _)| *other == name) {
                            self.wrong.add(
                                entry.span().start,
                                format!("name is \"{name}\", which another endpoint has"),
                            );
                        }
                        endpoints.push((name, endpoint));
                    }
                }
            },
        }
        Webhooks {
            endpoints: endpoints.into_iter().map(|(_, endpoint)| endpoint).collect(),
            settings,
            offenders,
        }
    }

    /// Its name too.
    fn endpoint(&mut self, entry: &Value<'_>) -> Option<(String, Endpoint)> {
        let Some(table) = entry.get_ref().as_table() else {
            self.not_allowed("endpoint", entry, "a table, which begins with [[endpoint]]");
            return None;
        };
        let before = self.wrong.len();
        self.only_known(table, &ENDPOINT, " in [[endpoint]]");
        let (name, url) = (self.needed(table, "name", entry), self.needed(table, "url", entry));
        let secrets = self.secrets(table, entry);
        let (rules, keys) = (self.patterns(table, "rules"), self.patterns(table, "keys"));
        let networks = self.networks(table);
        let interval = self.seconds(table, "interval_s", 0.001, SECONDS_MAX);
        let allow_http = self.is_so(table, "allow_http");
        let (Some(name), Some(url)) = (name, url) else { return None };
        let mut endpoint = Endpoint::new(name.clone(), url).rules(rules).keys(keys).allow_networks(networks);
        endpoint = secrets.into_iter().fold(endpoint, Endpoint::secret);
        endpoint = endpoint.allow_http(allow_http);
        if let Some(interval) = interval {
            endpoint = endpoint.interval(interval);
        }
        // What is wrong already would be told twice.
        if self.wrong.len() == before
            && let Err(error) = endpoint.validate()
        {
            self.refused(table, entry, &error);
        }
        Some((name, endpoint))
    }

    /// What the library says of an endpoint, where the file says it.
    fn refused(&mut self, table: &DeTable<'_>, entry: &Value<'_>, error: &WebhookError) {
        let field = match error.field() {
            "secret" => {
                ["secrets", "secrets_file", "secrets_env"].into_iter().find(|name| get(table, name).is_some())
            }
            "interval" => Some("interval_s"),
            other => ENDPOINT.into_iter().find(|name| *name == other),
        };
        let field = field.unwrap_or("endpoint");
        let at = get(table, field).map_or(entry.span().start, |value| value.span().start);
        self.wrong.add(at, format!("{field}: {}", error.problem()));
    }

    fn needed(&mut self, table: &DeTable<'_>, name: &str, entry: &Value<'_>) -> Option<String> {
        let Some(value) = get(table, name) else {
            self.wrong.add(entry.span().start, format!("this endpoint has no {name}"));
            return None;
        };
        let text = value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            self.not_allowed(name, value, "a text");
        }
        text
    }

    /// In the file itself, in another one a line each, or in a variable of the environment with blanks between.
    fn secrets(&mut self, table: &DeTable<'_>, entry: &Value<'_>) -> Vec<String> {
        let given = ["secrets", "secrets_file", "secrets_env"]
            .map(|name| get(table, name).map(|value| (name, value)));
        let mut given = given.into_iter().flatten();
        let (Some((name, value)), None) = (given.next(), given.next()) else {
            self.wrong
                .add(entry.span().start, "this endpoint must have one of secrets, secrets_file, secrets_env");
            return Vec::new();
        };
        if name == "secrets" {
            return self.texts(table, name);
        }
        let Some(place) = value.get_ref().as_str() else {
            self.not_allowed(name, value, "a text");
            return Vec::new();
        };
        let found = if name == "secrets_file" {
            std::fs::read_to_string(self.beside.join(place))
                .map_err(|error| format!("cannot be read: {error}"))
        } else {
            (self.env)(place).ok_or_else(|| "names no variable of the environment".to_owned())
        };
        match found {
            Ok(text) => text.split_whitespace().map(str::to_owned).collect(),
            Err(why) => {
                // Not the place: somebody may have put a secret there.
                self.wrong.add(value.span().start, format!("{name} {why}"));
                Vec::new()
            }
        }
    }

    fn texts(&mut self, table: &DeTable<'_>, name: &str) -> Vec<String> {
        let Some(value) = get(table, name) else { return Vec::new() };
        let texts = value.get_ref().as_array().and_then(|list| {
            list.iter().map(|text| text.get_ref().as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        let texts = texts.filter(|texts| !texts.is_empty());
        if texts.is_none() {
            self.not_allowed(name, value, "a list of texts, at least one");
        }
        texts.unwrap_or_default()
    }

    /// `*` and `?` stand for what they do in a policy.
    fn patterns(&mut self, table: &DeTable<'_>, name: &str) -> Vec<Pattern> {
        let pattern =
            |text: String| if text.contains(['*', '?']) { Pattern::Glob(text) } else { Pattern::Exact(text) };
        self.texts(table, name).into_iter().map(pattern).collect()
    }

    fn networks(&mut self, table: &DeTable<'_>) -> Vec<IpNet> {
        let texts = self.texts(table, "allow_networks");
        let at = get(table, "allow_networks").map_or(0, |value| value.span().start);
        let mut networks = Vec::new();
        for text in texts {
            match text.parse() {
                Ok(network) => networks.push(network),
                Err(_) => self
                    .wrong
                    .add(at, format!("allow_networks has {text:?}; it must be networks, as 10.0.0.0/8")),
            }
        }
        networks
    }

    fn is_so(&mut self, table: &DeTable<'_>, name: &str) -> bool {
        let Some(value) = get(table, name) else { return false };
        if let DeValue::Boolean(yes) = value.get_ref() {
            return *yes;
        }
        self.not_allowed(name, value, "true or false");
        false
    }

    fn whole(&mut self, name: &str, value: &Value<'_>, min: u64, max: u64) -> Option<u64> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.not_allowed(name, value, &format!("a whole number from {min} to {max}"));
        }
        number
    }

    fn seconds(&mut self, table: &DeTable<'_>, name: &str, min: f64, max: f64) -> Option<Duration> {
        let value = get(table, name)?;
        let number = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse::<f64>().ok(),
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            _ => None,
        };
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.not_allowed(name, value, &format!("a number of seconds from {min} to {max}"));
        }
        number.map(Duration::from_secs_f64)
    }
}

fn get<'t, 'a>(table: &'t DeTable<'a>, name: &str) -> Option<&'t Value<'a>> {
    table.iter().find(|(key, _)| key.get_ref().as_ref() == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests;
