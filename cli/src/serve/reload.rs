//! Other rules while requests are decided: when the policy's file changes, and on SIGHUP.

use std::path::Path;
use std::sync::Arc;

use tidegate::policy::{Changes, ReloadError, Watch, watch};

use super::App;
use crate::key::printable;

/// Follows the file until what this returns is dropped; `None`, and a line in the log, if that cannot be.
pub(super) fn follow(app: &Arc<App>, path: &Path) -> Option<Watch> {
    let (told, mut is_first) = (Arc::clone(app), true);
    let watch = watch(Arc::clone(&app.policy), path, move |event| {
        // The first look at the file finds what was read a moment ago.
        let is_as_read = event.as_ref().is_ok_and(changes_nothing);
        if !(std::mem::take(&mut is_first) && is_as_read) {
            tell(&told, &event);
        }
    });
    watch.inspect_err(|error| tracing::warn!("{}; SIGHUP reads it", printable(&error.to_string()))).ok()
}

/// Reads the file again, on SIGHUP.
pub(super) fn again(app: &App, path: Option<&Path>) {
    match path {
        Some(path) => tell(app, &app.policy.reload(path)),
        None => tracing::info!("the default policy has no file to read again"),
    }
}

fn changes_nothing(changes: &Changes) -> bool {
    changes.changed.is_empty() && changes.anew.is_empty() && changes.removed.is_empty()
}

/// Whether nothing is known of what the file says.
fn is_unread(error: &ReloadError) -> bool {
    let ReloadError::File(problems) = error else { return false };
    problems.iter().all(|problem| problem.line().is_none() && problem.says().starts_with("cannot be read"))
}

fn tell(app: &App, event: &Result<Changes, ReloadError>) {
    match event {
        Ok(changes) => {
            app.metrics.reloads.increment(1);
            let list = |names: &[String]| printable(&names.join(", "));
            tracing::info!(
                kept = list(&changes.kept),
                changed = list(&changes.changed),
                anew = list(&changes.anew),
                removed = list(&changes.removed),
                "policy in force"
            );
            app.reading.given.tell(&app.policy.rules());
        }
        Err(error) => {
            app.metrics.reload_failures.increment(1);
            if is_unread(error) {
                let why = printable(&error.to_string());
                tracing::error!(why, "policy cannot be read; the rules before it stay in force");
                return;
            }
            for line in error.to_string().lines() {
                tracing::error!(
                    mistake = printable(line),
                    "policy is wrong; the rules before it stay in force"
                );
            }
        }
    }
}
