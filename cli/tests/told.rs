//! `serve --webhooks` from end to end: storms that clients raise over HTTP, and receivers that take what they are told well or badly.
//!
//! Whatever a receiver gets is verified by the library of the specification, or the test ends.

#![cfg(all(unix, feature = "webhook"))]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "told/clients.rs"]
mod clients;
#[path = "told/message.rs"]
mod message;
#[path = "told/page.rs"]
mod page;
#[path = "told/receiver.rs"]
mod receiver;
mod served;
#[path = "told/stops.rs"]
mod stops;
#[path = "told/storm.rs"]
mod storm;

use receiver::{Receiver, SECRET};
use served::{Folder, Server};

/// What a test asks for: a server whose endpoints are these.
struct Setting {
    /// Of `[[endpoint]]`, after a line each for what goes for all.
    text: String,
    args: Vec<String>,
    policy: &'static str,
}

impl Setting {
    /// `all` is what goes for all endpoints.
    fn new(policy: &'static str, all: &str) -> Self {
        Self { text: format!("{all}\n"), args: Vec::new(), policy }
    }

    /// One more endpoint, at that receiver; `chosen` are lines of its own.
    fn endpoint(mut self, name: &str, receiver: &Receiver, chosen: &str) -> Self {
        self.text += &format!(
            "[[endpoint]]\nname = \"{name}\"\nurl = \"{}\"\nsecrets = [\"{SECRET}\"]\nallow_http = true\n\
             allow_networks = [\"127.0.0.0/8\"]\n{chosen}\n",
            receiver.url()
        );
        self
    }

    fn arg(mut self, name: &str, value: &str) -> Self {
        self.args.extend([name.to_owned(), value.to_owned()]);
        self
    }

    fn start(self) -> Server {
        let folder = Folder::new();
        let file = folder.0.join("webhooks.toml");
        std::fs::write(&file, &self.text).unwrap();
        let args = ["--webhooks", file.to_str().unwrap()];
        let args: Vec<&str> = args.into_iter().chain(self.args.iter().map(String::as_str)).collect();
        Server::start(self.policy, &args)
    }
}
