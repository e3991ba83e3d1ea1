//! One spelling for what differs between two runs: UIDs, times, ages, addresses, ports, random parts of names.
//!
//! A text is compared after every row of its table has replaced what it matches.

use std::sync::LazyLock;

use regex::Regex;

/// What is replaced, and by what.
type Row = (&'static str, &'static str);

const UID: Row = (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID");
/// `2026-11-16T06:20:49.094Z`.
const TIME: Row = (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]+Z", "TIME");
/// `7s`, `2m3s`, `120ms`.
const AGE: Row = (r"\b(?:\d+(?:ms|[smhd]))+\b", "AGE");

/// For what the pages show. A number that is just a number is compared: that twenty addresses are programmed is
/// what a page is about.
const OF_PAGES: &[Row] = &[
    UID,
    TIME,
    // `laptop_3038-1a1e290af8d`, a controller's own name.
    (r"\S+_\d+-[0-9a-f]+\b", "PROCESS"),
    AGE,
    // `24 s`, `1 min 3 s`.
    (r"\b\d[\d.]* (?:ms|s|min|h|d)\b(?: \d+ (?:ms|s|min|h|d)\b)*", "TIME"),
    // Operations are counted in the order in which their services come.
    (r"#\d+\b", "#N"),
    // `80:30758/TCP`: the second is the node's, and chosen by the API server.
    (r"\b(\d+):\d+/(TCP|UDP)\b", "$1:PORT/$2"),
    // With its port, if it has one.
    (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "ADDRESS"),
];

/// For the transcript of the kubectl session. Addresses of pods and nodes are those that the session gave them.
const OF_KUBECTL: &[Row] = &[
    UID,
    TIME,
    // `Mon, 16 Nov 2026 06:20:49 +0000`, as `describe` writes times.
    (r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}\b", "TIME"),
    (r#"(Resource Version:|"?resourceVersion"?:)(\s*)"?\d*"?"#, "${1}${2}RV"),
    (r"https://127\.0\.0\.1:\d+", "https://SERVER"),
    // An event is named after its object, a dot, and the time as a hexadecimal number.
    (r"\.[0-9a-f]{16}\b", ".#"),
    // Random names and hashes of Kubernetes have no vowels, so that no word comes out.
    (r"-[bcdfghjklmnpqrstvwxz2456789]{5,10}\b", "-#"),
    (r#"(pod-template-hash[:="]+ ?"?)[bcdfghjklmnpqrstvwxz2456789]{5,10}\b"#, "${1}#"),
    AGE,
    // Not where it is a part of something longer, as in the range of all of them.
    (r"(^|[^-\w.])(?:3[01]\d{3}|32[0-6]\d\d|327[0-5]\d|3276[0-7])($|[^-\w.])", "${1}NODE-PORT${2}"),
    // The range of Services.
    (r"\b10\.(?:9[6-9]|10\d|11[01])\.\d{1,3}\.\d{1,3}\b", "SERVICE-IP"),
    // Columns are two spaces apart, however wide; how far a line is indented says something and stays.
    (r"(\S) {2,}", "$1  "),
];

type Table = LazyLock<Vec<(Regex, &'static str)>>;

static PAGES: Table = LazyLock::new(|| compiled(OF_PAGES));
static KUBECTL: Table = LazyLock::new(|| compiled(OF_KUBECTL));

fn compiled(rows: &[Row]) -> Vec<(Regex, &'static str)> {
    rows.iter().map(|(what, by)| (Regex::new(what).expect("a row is a pattern"), *by)).collect()
}

fn spelled(table: &Table, line: &str) -> String {
    table.iter().fold(line.to_string(), |line, (what, by)| what.replace_all(&line, *by).into_owned())
}

/// The lines of what a page shows, or of what a command printed.
pub(crate) fn of_pages(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).filter(|line| !line.is_empty()).map(|line| spelled(&PAGES, &line)).collect()
}

/// An output of kubectl as it stands in a transcript.
pub(crate) fn of_kubectl(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| spelled(&KUBECTL, line.trim_end()));
    without_repairs(lines.collect()).join("\n")
}

/// The real server's own check of cluster IPs may run before it has heard of an IP that it gave out itself, and
/// then warns of that; whether it does is a matter of milliseconds. Without those warnings, a table that had
/// nothing else is none.
fn without_repairs(lines: Vec<String>) -> Vec<String> {
    const REPAIR: &str = "ClusterIPNotAllocated";
    const EVENTS: [&str; 3] =
        ["Events:", "  Type  Reason  Age  From  Message", "  ----  ------  ----  ----  -------"];
    if !lines.iter().any(|line| line.contains(REPAIR)) {
        return lines;
    }
    let mut lines: Vec<String> = lines.into_iter().filter(|line| !line.contains(REPAIR)).collect();
    if lines.ends_with(&EVENTS.map(String::from)) {
        lines.truncate(lines.len() - EVENTS.len());
        lines.push("Events:  <none>".to_string());
    } else if lines == ["LAST SEEN  TYPE  REASON  OBJECT  MESSAGE"] {
        lines = vec!["No resources found in shop namespace.".to_string()];
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_anew_is_not_compared_and_words_are() {
        let same = [
            (
                "web-0  LoadBalancer 10.96.66.111  80:30758/TCP  75s",
                "web-0 LoadBalancer 10.96.1.1 80:31111/TCP 2m3s",
            ),
            ("up for 24 s.", "up for 1 min 2 s."),
            ("operation #33 done, 198.18.0.1 published", "operation #7 done, 198.18.0.12 published"),
            ("at https://127.0.0.1:23846 answers", "at https://127.0.0.1:80 answers"),
            ("for 127.0.0.1:32899 by", "for 127.0.0.1:1 by"),
            ("2026-11-16T04:14:56.094Z 25 s ago", "2027-01-16T04:14:56Z 1 min ago"),
            ("since 1 min 3 s ago", "since 9 s ago"),
            ("laptop_3038-1a1e290af8d leads", "vm_7-1a leads"),
            ("cluster 02d13f4c-d0c4-417d-bbff-4c0433011b85", "cluster dd78c552-fd9c-4bd5-9349-484e717287a3"),
            (
                "+ registration 77dd9a1c-8f3d-4b8e-bb5c-6cf2f11d7c4d",
                "+ registration 9a1b1f0e-2d0f-4d6e-8f3f-0f6d4e5a3b21",
            ),
        ];
        for (one, two) in same {
            assert_eq!(of_pages(one), of_pages(two));
        }
        for (one, two) in [
            ("Created", "NotStarted"),
            ("✓ a", "✗ a"),
            ("a\nb", "a"),
            ("service/shop/web", "service/shop/api"),
            ("+ addresses 20", "+ addresses 0"),
            ("Created 23 s 198.18.0.1 - 20 0 20 0 23 s ago", "Created 23 s 198.18.0.1 - 20 20 0 7 23 s ago"),
            ("Plan: 48 to create", "Plan: 0 to create"),
            ("10 services and", "9 services and"),
            ("20 wanted, 0 buffered, 20 programmed", "20 wanted, 20 buffered, 0 programmed"),
            ("web-0 80:30758/TCP", "web-0 81:30758/TCP"),
            ("service/shop/web-0", "service/shop/web-1"),
            ("(0.1.0) is leader", "(0.2.0) is leader"),
            ("for 24 s", "for 24"),
        ] {
            assert_ne!(of_pages(one), of_pages(two));
        }
    }

    #[test]
    fn a_repair_that_the_real_server_may_tell_of_is_not_compared() {
        let repair =
            "AGE  Warning  ClusterIPNotAllocated  service/a  Cluster IP [IPv4]: 10.96.0.7 is not allocated";
        let head = "LAST SEEN   TYPE   REASON   OBJECT   MESSAGE";
        let nothing = "No resources found in shop namespace.";
        assert_eq!(of_kubectl(&format!("{head}\n{repair}\n{repair}")), of_kubectl(nothing));
        let other = "3s  Warning  Other  service/a  words";
        assert_eq!(
            of_kubectl(&format!("{head}\n{repair}\n{other}")),
            of_kubectl(&format!("{head}\n{other}"))
        );
        let described = "Name:  a\nEvents:\n  Type     Reason   Age  From  Message\n  ----     ------   ----  ----  -------\n";
        let warned = format!("{described}  Warning  ClusterIPNotAllocated  3s  x  y");
        assert_eq!(of_kubectl(&warned), "Name:  a\nEvents:  <none>");
        assert_ne!(of_kubectl(&format!("{warned}\n  Warning  Other  3s  x  y")), "Name:  a\nEvents:  <none>");
    }

    #[test]
    fn what_is_made_anew_has_one_spelling() {
        for (said, spelt) in [
            ("web-5d4f8c7b9-x2kqz   0/1     Pending   0     7s", "web-#-#  0/1  Pending  0  AGE"),
            ("  uid: 02d13f4c-d0c4-417d-bbff-4c0433011b85", "  uid: UID"),
            ("  creationTimestamp: \"2026-11-16T06:20:49Z\"", "  creationTimestamp: \"TIME\""),
            (
                "web  LoadBalancer  10.96.66.111  80:30758/TCP  2m3s",
                "web  LoadBalancer  SERVICE-IP  80:NODE-PORT/TCP  AGE",
            ),
            ("    \"resourceVersion\": \"812\",", "    \"resourceVersion\": RV,"),
            ("  Resource Version:    812", "  Resource Version:  RV"),
            ("CreationTimestamp:  Mon, 16 Nov 2026 06:20:49 +0000", "CreationTimestamp:  TIME"),
            ("shop  web.187f2a3b4c5d6e7f  x", "shop  web.#  x"),
            ("Labels:  pod-template-hash=5d4f8c7b9", "Labels:  pod-template-hash=#"),
            ("        \"pod-template-hash\": \"5d4f8c7b9\"", "        \"pod-template-hash\": \"#\""),
        ] {
            assert_eq!(of_kubectl(said), spelt);
        }
    }

    #[test]
    fn what_the_session_chose_is_compared() {
        for said in [
            "10.244.7.5",
            "10.240.0.4",
            "node-a",
            "replicas: 3",
            "kube-system",
            "80/TCP",
            "v1.36.3",
            "30000-32767",
        ] {
            assert_eq!(of_kubectl(said), said);
        }
    }
}
