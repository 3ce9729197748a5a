//! `tidegate serve`: from the command line to a server.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

use tidegate::http::{Answering, ClientAddress, Dialect, Extractor, Forwarding, OnMissing, Source};
use tidegate::policy::EntityType;

use super::Failure;
use super::policy::{DEFAULT, load_policy};
use crate::args::{
    Color, FieldsArg, ForwardingArg, LogArg, OnMissingArg, OriginalArg, PartArg, PartSource, ServeArgs,
};
use crate::key::printable;
use crate::replay::policy::mapping::Part;
use crate::serve::{AdminToken, Bounds, Given, LogFormat, Original, Reading, Settings, TOKEN_BYTES_MAX, run};

/// Where the token is looked for if no file is named.
const ADMIN_TOKEN: &str = "TIDEGATE_ADMIN_TOKEN";

pub(super) fn serve(args: ServeArgs) -> Result<ExitCode, Failure> {
    let reading = reading(&args).map_err(|why| Failure::Usage("serve", why))?;
    let admin_token =
        admin_token(args.admin_token_file.as_deref()).map_err(|why| Failure::Usage("serve", why))?;
    let rules = load_policy(&args.policy)?.rules;
    let bounds = bounds(&args);
    #[cfg(feature = "webhook")]
    let webhooks = args.webhooks.as_deref().map(webhooks).transpose()?;
    let settings = Settings {
        rules,
        file: (args.policy.as_os_str() != DEFAULT).then_some(args.policy),
        follows: !args.no_watch,
        listen: args.listen,
        answering: Answering::new().dialects(args.fields.iter().map(|family| match family {
            FieldsArg::Draft => Dialect::Draft,
            FieldsArg::XSeconds => Dialect::XSeconds,
            FieldsArg::XEpoch => Dialect::XEpoch,
            FieldsArg::XEnvoy => Dialect::XEnvoy,
        })),
        reading,
        bounds,
        #[cfg(feature = "webhook")]
        webhooks,
        log: match args.log {
            LogArg::Text => LogFormat::Text,
            LogArg::Json => LogFormat::Json,
        },
        is_coloured: is_coloured(args.color),
        logs_keys: args.log_keys,
        admin_token,
    };
    run(settings).map(ExitCode::from).map_err(Failure::Stopped)
}

#[cfg(feature = "webhook")]
fn webhooks(file: &std::path::Path) -> Result<crate::serve::Webhooks, Failure> {
    crate::serve::read_webhooks(file).map_err(|lines| Failure::Policy(lines.join("\n")))
}

fn bounds(args: &ServeArgs) -> Bounds {
    let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    Bounds {
        connections_max: size(args.max_connections),
        streams_max: args.max_streams,
        headers_max: usize::from(args.max_headers),
        header_bytes_max: size(args.max_header_bytes),
        body_bytes_max: size(args.max_body_bytes),
        header_timeout: args.header_timeout,
        idle_timeout: args.idle_timeout,
        request_timeout: args.request_timeout,
        stop_timeout: args.stop_timeout,
        stop_delay: args.stop_delay,
    }
}

/// How requests to `/auth` are read.
fn reading(args: &ServeArgs) -> Result<Reading, String> {
    let forwarding = match args.forwarding {
        ForwardingArg::XForwardedFor => Forwarding::XForwardedFor,
        ForwardingArg::Forwarded => Forwarding::Forwarded,
    };
    let on_missing = match args.on_missing {
        OnMissingArg::Address => OnMissing::Address,
        OnMissingArg::Allow => OnMissing::Allow,
        OnMissingArg::Refuse => OnMissing::Refuse,
    };
    let original = match args.original {
        OriginalArg::Either => Original::Either,
        OriginalArg::XOriginalUri => Original::XOriginal,
        OriginalArg::XForwardedUri => Original::XForwarded,
    };
    let addresses = ClientAddress::behind(args.trust_proxy.iter().copied(), forwarding);
    // axum's routes are those of this server, so the path it is.
    let mut extractor = Extractor::new().api(Source::Path).addresses(addresses).on_missing(on_missing);
    let mut cost = None;
    for (at, PartArg { part, source }) in args.map.iter().enumerate() {
        if args.map[..at].iter().any(|arg| arg.part == *part) {
            return Err(format!("--map: {part} is mapped twice"));
        }
        let source = match source {
            PartSource::Field(name) => Source::Header(name.clone()),
            PartSource::Bearer => Source::Bearer,
            PartSource::Constant(text) => Source::Constant(text.clone().into()),
        };
        match part {
            Part::Api => extractor = extractor.api(source),
            Part::Title => extractor = extractor.title(source),
            Part::Namespace => extractor = extractor.namespace(source),
            Part::User => extractor = extractor.user(source),
            Part::Target => extractor = extractor.target(EntityType::Other, source),
            Part::Attribute(name) => extractor = extractor.attribute(name.clone(), source),
            Part::Cost => cost = Some(source),
            // The reader of the command line lets none of them through.
            Part::Time | Part::CallerType | Part::TargetType | Part::ClientIp | Part::Authenticated => {}
        }
    }
    let given = Given::new(args.map.iter().map(|arg| arg.part.clone()));
    Ok(Reading { extractor, cost, original, given })
}

/// The token of the file, or else of the environment. One that is there and empty is a mistake, not none.
fn admin_token(file: Option<&Path>) -> Result<Option<AdminToken>, String> {
    if let Some(file) = file {
        let name = printable(&file.to_string_lossy());
        let mut text = String::new();
        // White space may stand around it, within reason.
        let most = u64::try_from(TOKEN_BYTES_MAX).unwrap_or(u64::MAX).saturating_mul(2);
        let read = File::open(file).and_then(|file| file.take(most).read_to_string(&mut text));
        read.map_err(|error| format!("--admin-token-file: {name} cannot be read: {error}"))?;
        let token = AdminToken::new(&text);
        return token.map(Some).map_err(|why| format!("--admin-token-file: the token of {name}: {why}"));
    }
    let Some(text) = std::env::var_os(ADMIN_TOKEN) else { return Ok(None) };
    let token = AdminToken::new(text.to_str().ok_or_else(|| format!("{ADMIN_TOKEN}: it is no text"))?);
    token.map(Some).map_err(|why| format!("{ADMIN_TOKEN}: {why}"))
}

fn is_coloured(color: Color) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    }
}
