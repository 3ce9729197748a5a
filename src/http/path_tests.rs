use proptest::prelude::*;

use super::*;

#[test]
fn every_spelling_of_a_path_is_one() {
    let cases = [
        ("/", "/"),
        ("", "/"),
        ("//", "/"),
        ("*", "*"),
        ("/a", "/a"),
        ("//a", "/a"),
        ("/a/", "/a"),
        ("/a//b///", "/a/b"),
        ("/%61", "/a"),
        ("/%61%62/c", "/ab/c"),
        ("/a/./b/../c", "/a/c"),
        ("/..", "/"),
        ("/../../a", "/a"),
        ("/x/%2e%2E/a", "/a"),
        ("/%2e", "/"),
        // An encoded stroke is one, as nginx has it; an encoded per cent sign none that begins an octet.
        ("/a%2fb", "/a/b"),
        ("/%2Fa", "/a"),
        ("/x%2F..%2Fa%2f", "/a"),
        ("/a%2Fb", "/a/b"),
        ("/%252Fa", "/%252Fa"),
        ("/%2561", "/%2561"),
        ("/k%C3%B6ln", "/köln"),
        ("/k%c3%b6ln", "/köln"),
        ("/%C3", "/%C3"),
        ("/%c3%28", "/%C3("),
        ("/%00%7f%0a", "/%00%7F%0A"),
        ("/%2Bx%40y", "/+x@y"),
        ("/%", "/%25"),
        ("/%6", "/%256"),
        ("/%zz%61", "/%25zza"),
        ("/%%655", "/%25e5"),
        ("/%é", "/%25é"),
        ("/A", "/A"),
        ("/a;v=1", "/a;v=1"),
        ("/...", "/..."),
    ];
    for (path, expected) in cases {
        assert_eq!(normal(path), expected, "{path}");
    }
    assert!(matches!(normal("/a/b.c/d"), Cow::Borrowed(_)));
}

proptest! {
    #[test]
    fn whatever_is_written_twice_is_the_same(path in "[/.%a2fF5eE6é ]{0,24}") {
        let once = normal(&path).into_owned();
        prop_assert_eq!(normal(&once), once.as_str());
    }

    /// Every character of a path may be written as octets, every stroke several times, without another path coming of it.
    #[test]
    fn no_spelling_is_another_path(
        segments in prop::collection::vec("[a-z0-9+@ ö~-]{1,6}", 0..5),
        choices in prop::collection::vec(any::<bool>(), 64),
    ) {
        let plain = format!("/{}", segments.join("/"));
        let mut choices = choices.into_iter().cycle();
        let mut odd = String::new();
        for character in plain.chars() {
            let is_odd = choices.next().is_some_and(|choice| choice);
            match character {
                '/' if is_odd => odd.push_str("/./"),
                '/' => odd.push('/'),
                _ if is_odd => encode(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut odd),
                _ => odd.push(character),
            }
        }
        prop_assert_eq!(normal(&odd), plain.as_str());
    }
}
