//! Policies as files: TOML or JSON into [`Rules`], all mistakes of a file told at once, and back.
//!
//! ```text
//! toml_text · json_text   text into values with their places (node)
//! fields                  the table of fields: names, ranges, choices
//! reader                  takes fields off tables, and keeps every problem
//! rules                   the decoder; limits · key · pattern · length are its parts
//! write · schema          rules into text, the table of fields into a schema
//! problem                 what is told of a mistake
//! ```

mod fields;
mod json_text;
mod key;
mod length;
mod limits;
mod node;
mod pattern;
mod problem;
mod reader;
mod rules;
mod schema;
mod tell;
mod toml_text;
mod warn;
mod write;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

pub use problem::{Problem, Problems};
pub use schema::schema;
pub use warn::Warning;
pub use write::Unwritable;

use super::Rules;

/// The longest policy file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The policy that comes with tidegate: the services of a game platform, for each user in each title.
const DEFAULT: &str = include_str!("../../../policies/fgrl.toml");

impl Rules {
    /// What a policy in TOML says; `file_name` is for messages. The format stands in [`files`](super::files).
    ///
    /// # Errors
    /// Everything that is wrong with the text, each with its place.
    ///
    /// ```
    /// use tidegate::policy::Rules;
    ///
    /// let rules = Rules::from_toml(
    ///     r#"
    ///     [[rule]]
    ///     name = "profile"
    ///     key = "user+title"
    ///     limit = { burst = "10/15s", sustain = "30/5m", opens = "first-request" }
    ///     "#,
    ///     "limits.toml",
    /// )?;
    /// assert_eq!(rules.rules[0].max_keys, 100_000);
    /// # Ok::<(), tidegate::policy::Problems>(())
    /// ```
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, Problems> {
        rules::decode(text, file_name, toml_text::parse(text))
    }

    /// What a policy in JSON says: the same fields as in TOML, the rules in a list called `rule`.
    ///
    /// # Errors
    /// Everything that is wrong with the text, each with its place; of what is no JSON, the first.
    ///
    /// ```
    /// use tidegate::policy::Rules;
    ///
    /// let text = r#"{"rule": [{"name": "all", "key": "global", "limit": {"rate": "1000/s", "burst": 2000}}]}"#;
    /// assert_eq!(Rules::from_json(text, "limits.json")?.rules.len(), 1);
    /// # Ok::<(), tidegate::policy::Problems>(())
    /// ```
    pub fn from_json(text: &str, file_name: &str) -> Result<Self, Problems> {
        rules::decode(text, file_name, json_text::parse(text))
    }

    /// What a policy file says; its name ends in `.toml` or `.json`. At most 16 MiB are read.
    ///
    /// # Errors
    /// As [`from_toml`](Self::from_toml); also that the file cannot be read, is no regular file (a pipe is not waited for), is not UTF-8, or has another ending.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, Problems> {
        let path = path.as_ref();
        Self::of_file(path, read_bytes(path))
    }

    /// The same of what was found in the file, or why nothing was.
    pub(super) fn of_file(path: &Path, found: Result<Vec<u8>, String>) -> Result<Self, Problems> {
        let name = path.display().to_string();
        let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
        let parse = match ending.as_deref() {
            Some("toml") => Self::from_toml,
            Some("json") => Self::from_json,
            _ => {
                return Err(unreadable(
                    &name,
                    "the name of a policy file must end in .toml or .json".to_owned(),
                ));
            }
        };
        let text = found.and_then(text).map_err(|why| unreadable(&name, why))?;
        parse(&text, &name)
    }

    /// The policy that comes with tidegate, `policies/fgrl.toml`: the published limits of a game platform's services,
    /// for each user in each title.
    pub fn default_policy() -> Self {
        // A test reads it; here is nobody to tell.
        Self::from_toml(DEFAULT, "fgrl.toml").unwrap_or_default()
    }
}

/// What is in a policy file, or why that cannot be told.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("cannot be read: {error}");
    let file = open(path).map_err(cannot)?;
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err("is no regular file".to_owned());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("is longer than {} MiB, which no policy is", FILE_BYTES_MAX >> 20));
    }
    Ok(bytes)
}

/// Opens a file to read it, and waits for nobody: a pipe without a writer would keep a reader, and a watch with it, forever.
fn open(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    options.open(path)
}

fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        format!("is not UTF-8 in line {line}")
    })
}

fn unreadable(name: &str, why: String) -> Problems {
    Problems::new(vec![Problem::new("", why).stands(&Arc::from(name), None)])
}
