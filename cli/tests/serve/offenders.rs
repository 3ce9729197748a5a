//! Who is refused most, for who has the token.

use http::{Request, StatusCode};
use serde_json::json;

use crate::served::{Answer, Folder, PATIENCE, Server, THREE};

const TOKEN: &str = "correct-horse-battery-staple";

/// A server with a file that holds this token.
fn start(policy: &str, args: &[&str]) -> Server {
    let folder = Folder::new();
    let file = folder.0.join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    Server::start(policy, &[&["--admin-token-file", file.to_str().unwrap()], args].concat())
}

async fn ask(server: &Server, path: &str, authorization: &[&str]) -> Answer {
    let request = Request::get(path);
    let request =
        authorization.iter().fold(request, |request, value| request.header("authorization", *value));
    server.send(request.body(String::new()).unwrap()).await
}

async fn ask_with_token(server: &Server, path: &str) -> Answer {
    ask(server, path, &[&format!("Bearer {TOKEN}")]).await
}

#[tokio::test]
async fn without_a_token_there_is_no_such_path() {
    let server = Server::start(THREE, &[]);
    server.wait_for_log("offenders=\"off\"");
    let nothing = server.get("/nothing").await;
    for answer in [server.get("/offenders").await, ask_with_token(&server, "/offenders?n=5").await] {
        assert_eq!((answer.status, &answer.body), (StatusCode::NOT_FOUND, &nothing.body));
    }
    let post = Request::post("/offenders").body(String::new()).unwrap();
    assert_eq!(server.send(post).await.status, StatusCode::NOT_FOUND);
    // One that is there and empty is a mistake, not none.
    for (token, says) in [("", "TIDEGATE_ADMIN_TOKEN: it is empty"), ("short", "it has 5 characters")] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let output = command.arg("serve").env("TIDEGATE_ADMIN_TOKEN", token).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && told.contains(says), "{told}");
    }
}

#[tokio::test]
async fn who_has_no_token_or_another_is_told_nothing() {
    let server = start(THREE, &[]);
    server.wait_for_log("offenders=\"with the token\"");
    let right = format!("Bearer {TOKEN}");
    let (longer, shorter) = (format!("{right}x"), &right[..right.len() - 1]);
    let other = right.replace("staple", "stapld");
    let basic = right.replace("Bearer", "Basic");
    let given = "Bearer realm=\"tidegate\", error=\"invalid_token\"";
    let table: [(&[&str], &str); 9] = [
        (&[], "Bearer realm=\"tidegate\""),
        (&[""], "Bearer realm=\"tidegate\""),
        (&[TOKEN], "Bearer realm=\"tidegate\""),
        (&[&basic], "Bearer realm=\"tidegate\""),
        (&[&right, &right], "Bearer realm=\"tidegate\""),
        (&["Bearer "], "Bearer realm=\"tidegate\""),
        (&[&longer], given),
        (&[shorter], given),
        (&[&other], given),
    ];
    for (authorization, asks) in table {
        // What is asked for does not matter before.
        for path in ["/offenders", "/offenders?n=0"] {
            let answer = ask(&server, path, authorization).await;
            assert_eq!(
                (answer.status, answer.field("www-authenticate")),
                (StatusCode::UNAUTHORIZED, asks),
                "{authorization:?}"
            );
            assert!(answer.problem().contains("token"), "{}", answer.body);
        }
    }
    for authorization in [&right, &right.replace("Bearer", "bearer"), &right.replace(' ', "   ")] {
        assert_eq!(
            ask(&server, "/offenders", &[authorization]).await.status,
            StatusCode::OK,
            "{authorization}"
        );
    }
    assert!(!server.log().contains(TOKEN));
    let counted = "tidegate_http_requests_total{endpoint=\"offenders\",status=\"401\"}";
    assert_eq!(server.metric(counted).await, 18.0);
}

#[tokio::test]
async fn what_is_asked_for_is_read_with_care() {
    let server = start(THREE, &[]);
    for (query, field) in [
        ("n=0", "n"),
        ("n=1001", "n"),
        ("n=-1", "n"),
        ("n=", "n"),
        ("n=%31", "n"),
        ("m=1", "query"),
        ("n=1&n=2", "query"),
    ] {
        let answer = ask_with_token(&server, &format!("/offenders?{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(answer.json()["errors"][0]["field"], field, "{query}");
        answer.problem();
    }
    let request = Request::post("/offenders").header("authorization", format!("Bearer {TOKEN}"));
    let answer = server.send(request.body(String::new()).unwrap()).await;
    assert_eq!((answer.status, answer.field("allow")), (StatusCode::METHOD_NOT_ALLOWED, "GET,HEAD"));
    answer.problem();
    let answer = ask_with_token(&server, "/offenders?n=1000").await;
    assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({"offenders": []})));
    assert_eq!(
        (answer.field("content-type"), answer.field("cache-control")),
        ("application/json", "no-store")
    );
}

#[tokio::test]
async fn those_who_are_refused_most_are_told_most_first() {
    let hostile = "\u{1b}[31m\"}]\n\u{202e}</script>é";
    let server = start(THREE, &[]);
    let check = async |user: &str, times: usize| {
        for _ in 0..times {
            server.check(&json!({"api": "x", "user": user}).to_string()).await;
        }
    };
    // Three of each pass.
    check("bob", 5).await;
    check(hostile, 10).await;
    check("ada", 3).await;
    let start = std::time::Instant::now();
    let offenders =
        async |path| ask_with_token(&server, path).await.json()["offenders"].as_array().unwrap().clone();
    while offenders("/offenders").await.len() < 2 {
        assert!(start.elapsed() < PATIENCE);
    }
    let told = offenders("/offenders").await;
    let expected = [(hostile, 7), ("bob", 2)];
    assert_eq!(told.len(), 2, "{told:?}");
    for (told, (key, refused)) in told.iter().zip(expected) {
        assert_eq!((&told["key"], &told["rule"]), (&json!(key), &json!("three")));
        assert_eq!((&told["shadow"], &told["limit_number"]), (&json!(false), &json!(0)));
        assert_eq!((&told["refused_least"], &told["refused_most"]), (&json!(refused), &json!(refused)));
        let fingerprint = told["fingerprint"].as_str().unwrap();
        assert!(u64::from_str_radix(fingerprint, 16).is_ok(), "{fingerprint}");
        // The log tells of the same keys by the same names.
        server.wait_for_log(&format!("fingerprint=\"{fingerprint}\""));
    }
    assert_eq!(offenders("/offenders?n=1").await.len(), 1);
}
