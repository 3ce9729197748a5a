//! What an `Extractor` knows of a request, and what becomes of one that lacks a part.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::net::{IpAddr, SocketAddr};

use http::{HeaderName, Request, StatusCode};
use tidegate::http::{
    ClientAddress, Extract, Extractor, Facts, Forwarding, Head, Missing, OnBroken, OnMissing, PeerAddress,
    Source,
};
use tidegate::policy::{EntityType, KeyPart, Policy, Rule, Rules};
use tidegate::{Limit, Manual, Rate};

fn header(name: &'static str) -> Source {
    Source::Header(HeaderName::from_static(name))
}

fn get(uri: &str) -> http::request::Builder {
    Request::get(uri).extension(PeerAddress("192.0.2.7".parse().unwrap()))
}

fn facts(extractor: &Extractor, request: http::request::Builder) -> Result<Facts<'static>, Missing> {
    let request = request.body(()).unwrap();
    extractor.extract(Head::of(&request)).map(Facts::into_owned)
}

#[test]
fn by_itself_it_knows_the_path_the_method_and_the_address() {
    let expected = Facts {
        client_ip: Some("192.0.2.7".parse().unwrap()),
        ..Facts::new("/users/7").attribute("method", "GET")
    };
    assert_eq!(facts(&Extractor::new(), get("/users/7?page=2")).unwrap(), expected);
}

#[test]
fn no_spelling_of_a_path_is_another_api() {
    for path in
        ["/users/7/", "//users//7", "/%75sers/7", "/./users/x/../7", "/users/%37?a=b", "http://host/users/7"]
    {
        assert_eq!(facts(&Extractor::new(), get(path)).unwrap().api, "/users/7", "{path}");
    }
    // By rule: who spells a path otherwise is counted in the same rule.
    let policy = Policy::new(
        Rules::from_toml(
            r#"rule = [{ name = "login", match = { api = "/login" }, key = "client_ip", limit = { window = "2/1h" } }]"#,
            "limits.toml",
        )
        .unwrap(),
    )
    .unwrap();
    let passes = |path| {
        let facts = facts(&Extractor::new(), get(path)).unwrap();
        facts.with_request(|request| policy.check(request).is_allowed())
    };
    assert_eq!(["/login", "//login", "/%6Cogin", "/login/"].map(passes), [true, true, false, false]);
}

#[test]
fn every_part_is_read_where_it_was_told() {
    let extractor = Extractor::new()
        .api(header("x-api"))
        .title(Source::Constant("chess".into()))
        .namespace(header("x-namespace"))
        .caller(EntityType::Title, header("x-title"))
        .target(EntityType::Character, header("x-target"))
        .attribute("plan", header("x-plan"))
        .attribute("verb", Source::Method)
        .attribute_if_any("beta", header("x-beta"))
        .attribute("host", Source::function(|head| head.uri.host().map(Into::into)));
    let request = || {
        get("http://example.com/")
            .header("x-api", "profile")
            .header("x-namespace", "games")
            .header("x-title", "123")
            .header("x-target", "25254A5AC4AEBA55")
            .header("x-plan", "free")
    };
    let facts_ = facts(&extractor, request()).unwrap();
    let expected = Facts {
        title: Some("chess".into()),
        namespace: Some("games".into()),
        caller: Some((EntityType::Title, "123".into())),
        target: Some((EntityType::Character, "25254A5AC4AEBA55".into())),
        client_ip: Some("192.0.2.7".parse().unwrap()),
        is_authenticated: true,
        ..Facts::new("profile")
            .attribute("plan", "free")
            .attribute("verb", "GET")
            .attribute("host", "example.com")
            .attribute("method", "GET")
    };
    assert_eq!(facts_, expected);
    assert!(!facts(&extractor.authenticated(false), request()).unwrap().is_authenticated);
}

#[test]
fn a_user_has_proved_it_and_a_stand_in_has_not() {
    let extractor = Extractor::new().user(header("x-user"));
    let named = facts(&extractor, get("/").header("x-user", "ada")).unwrap();
    assert_eq!(named.caller, Some((EntityType::TitlePlayerAccount, "ada".into())));
    assert!(named.is_authenticated);
    let nameless = facts(&extractor, get("/")).unwrap();
    assert_eq!(nameless.caller, Some((EntityType::TitlePlayerAccount, "⟨192.0.2.7⟩".into())));
    assert!(!nameless.is_authenticated);
}

/// The digits by `printf %s s3cret | sha256sum`.
#[test]
fn a_bearer_token_is_told_by_its_digest() {
    let extractor = Extractor::new().user(Source::Bearer).on_missing(OnMissing::Refuse);
    let id = |value: &str| {
        let facts = facts(&extractor, get("/").header("authorization", value)).ok()?;
        facts.caller.map(|(_, id)| id.into_owned())
    };
    let expected = Some("1ec1c26b50d5d3c5".to_owned());
    assert_eq!(id("Bearer s3cret"), expected);
    assert_eq!(id("bearer  s3cret "), expected);
    assert_ne!(id("Bearer S3cret"), expected);
    for odd in ["Bearer", "Bearer ", "Basic s3cret", "s3cret", ""] {
        assert_eq!(id(odd), None, "{odd:?}");
    }
    let twice = get("/").header("authorization", "Bearer a").header("authorization", "Bearer b");
    assert_eq!(facts(&extractor, twice), Err(Missing::refused("user")));
}

/// Absent: empty, given twice, no visible ASCII, or with the look of an address that stands in.
#[test]
fn what_is_no_text_of_one_field_is_absent() {
    let extractor = Extractor::new().user(header("x-user")).on_missing(OnMissing::Refuse);
    let missing = Err(Missing::refused("user"));
    assert_eq!(facts(&extractor, get("/")), missing);
    assert_eq!(facts(&extractor, get("/").header("x-user", "")), missing);
    assert_eq!(facts(&extractor, get("/").header("x-user", "ada").header("x-user", "bob")), missing);
    assert_eq!(facts(&extractor, get("/").header("x-user", b"\xff".as_slice())), missing);
    assert_eq!(facts(&extractor, get("/").header("x-user", "⟨192.0.2.9⟩")), missing);
    let by_query = Source::function(|head| head.uri.query().map(|_| "⟨192.0.2.9⟩".into()));
    assert_eq!(facts(&extractor.user(by_query), get("/?x")), missing);
}

#[test]
fn an_address_stands_in_for_what_is_missing() {
    let extractor = Extractor::new()
        .title(header("x-title"))
        .namespace(header("x-namespace"))
        .target(EntityType::Group, header("x-group"))
        .attribute("api_key", header("x-api-key"))
        .attribute_if_any("plan", header("x-plan"));
    let of = |peer: &str| {
        let request = Request::get("/").extension(SocketAddr::new(peer.parse().unwrap(), 80));
        facts(&extractor, request).unwrap()
    };
    for (peer, part) in [
        ("192.0.2.7", "⟨192.0.2.7⟩"),
        ("::ffff:192.0.2.7", "⟨192.0.2.7⟩"),
        ("2001:db8:1:2:3:4:5:6", "⟨2001:db8:1:2::/64⟩"),
        ("2001:db8:1:2::9", "⟨2001:db8:1:2::/64⟩"),
    ] {
        let facts = of(peer);
        assert_eq!((facts.title.as_deref(), facts.namespace.as_deref()), (Some(part), Some(part)));
        assert_eq!(facts.attributes[0], ("api_key".into(), part.into()));
        // Whom it is about, and what it may well lack, nothing stands in for.
        assert_eq!((facts.target, facts.attributes.len()), (None, 2));
    }
}

#[test]
fn who_leaves_a_part_out_has_one_count_with_its_neighbours() {
    let limit = Limit::bucket(Rate::per_second(1), 3);
    let rules =
        Rules { rules: vec![Rule::new("user", vec![KeyPart::User], vec![limit])], ..Rules::default() };
    let policy = Policy::builder(rules).clock(Manual::new()).build().unwrap();
    let extractor = Extractor::new().user(header("x-user"));
    let passes = |peer: &str, user: &str| {
        let peer = PeerAddress(peer.parse().unwrap());
        let request = Request::get("/").extension(peer).header("x-user", user);
        let facts = facts(&extractor, request).unwrap();
        facts.with_request(|request| policy.check(request).is_allowed())
    };
    let nameless =
        [("192.0.2.7", ""), ("192.0.2.7", ""), ("192.0.2.7", ""), ("192.0.2.7", ""), ("192.0.2.8", "")];
    assert_eq!(nameless.map(|(peer, user)| passes(peer, user)), [true, true, true, false, true]);
    // Nobody takes that name to use up what they have, or to have another's.
    assert!(passes("192.0.2.7", "192.0.2.7"));
    assert!(passes("192.0.2.9", "ada"));
}

#[test]
fn what_is_missing_is_allowed_or_refused_as_told() {
    let extractor = |on_missing| Extractor::new().user(header("x-user")).on_missing(on_missing);
    assert_eq!(facts(&extractor(OnMissing::Refuse), get("/")), Err(Missing::refused("user")));
    assert_eq!(facts(&extractor(OnMissing::Allow), get("/")), Err(Missing::uncounted("user")));
    let attribute = Extractor::new().attribute("api_key", header("x-api-key")).on_missing(OnMissing::Refuse);
    assert_eq!(facts(&attribute, get("/")), Err(Missing::refused("attribute:api_key")));

    // An address is no API: no rule would be about it.
    for on_missing in [OnMissing::Address, OnMissing::Refuse] {
        let extractor = Extractor::new().api(header("x-api")).on_missing(on_missing);
        assert_eq!(facts(&extractor, get("/")), Err(Missing::refused("api")));
    }
}

/// Nothing fails open where no address is known.
#[test]
fn a_server_that_tells_no_address_is_told_so() {
    for on_missing in [OnMissing::Address, OnMissing::Allow, OnMissing::Refuse] {
        let extractor = Extractor::new().on_missing(on_missing);
        let missing = facts(&extractor, Request::get("/")).unwrap_err();
        assert_eq!(missing, Missing::unknown_to_server("client_ip"));
        assert_eq!(missing.refusal().unwrap().status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
    let extractor = Extractor::new().without_address();
    assert_eq!(facts(&extractor, Request::get("/")).unwrap().client_ip, None);
    assert_eq!(facts(&extractor, get("/")).unwrap().client_ip, None);
    // Then nothing stands in for a user.
    assert_eq!(facts(&extractor.user(header("x-user")), get("/")), Err(Missing::refused("user")));
}

#[test]
fn a_broken_chain_is_the_proxys_address_or_a_missing_part() {
    let addresses = ClientAddress::behind(["192.0.2.0/24".parse().unwrap()], Forwarding::XForwardedFor);
    let request = || get("/").header("x-forwarded-for", "unknown");
    let extractor = Extractor::new().addresses(addresses.clone());
    let proxy: IpAddr = "192.0.2.7".parse().unwrap();
    assert_eq!(facts(&extractor, request()).unwrap().client_ip, Some(proxy));
    let extractor = extractor.addresses(addresses.on_broken(OnBroken::Missing));
    assert_eq!(facts(&extractor, request()), Err(Missing::refused("client_ip")));
    let extractor = extractor.on_missing(OnMissing::Allow);
    assert_eq!(facts(&extractor, request()), Err(Missing::uncounted("client_ip")));
}

#[test]
fn a_refusal_names_the_part_and_is_not_stored() {
    let response = Missing::refused("user").refusal().unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.body(), "the request has no user, or more than one\n");
    assert!(Missing::uncounted("user").refusal().is_none());
}

#[test]
fn of_all_that_tell_the_other_end_ours_is_the_first() {
    let [a, b]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|it| it.parse().unwrap());
    let peer = |request: http::request::Builder| Head::of(&request.body(()).unwrap()).peer();
    assert_eq!(peer(Request::get("/")), None);
    assert_eq!(peer(Request::get("/").extension(SocketAddr::new(b, 1))), Some(b));
    assert_eq!(peer(Request::get("/").extension(SocketAddr::new(b, 1)).extension(PeerAddress(a))), Some(a));
    #[cfg(feature = "axum")]
    {
        let info = axum::extract::ConnectInfo(SocketAddr::new(b, 1));
        assert_eq!(peer(Request::get("/").extension(info)), Some(b));
        assert_eq!(peer(Request::get("/").extension(info).extension(PeerAddress(a))), Some(a));
    }
}

#[test]
fn a_function_is_an_extract() {
    fn by_host<'r>(head: Head<'r>) -> Result<Facts<'r>, Missing> {
        Ok(Facts::new(head.uri.host().ok_or(Missing::refused("api"))?))
    }
    let extract: &dyn Extract = &by_host;
    let request = get("http://shop.example/").body(()).unwrap();
    assert_eq!(extract.extract(Head::of(&request)).unwrap().api, "shop.example");
}
