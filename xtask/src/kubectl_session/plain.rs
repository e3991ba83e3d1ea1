//! One spelling for what is made anew each time: UIDs, times, ages, addresses, ports, random parts of names,
//! resourceVersions, and how wide a column became because of them.

/// A text as it can be compared.
pub(super) fn plain(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| squeezed(&line_of(line)));
    without_repairs(lines.collect()).join("\n")
}

/// The real server's own look for cluster IPs may run before it has heard of an IP that it gave out itself, and
/// then warns of that; whether it does is a matter of milliseconds. Without those, a table that had nothing else
/// is none.
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

fn line_of(line: &str) -> String {
    let line = dates(line);
    for key in ["Resource Version:  ", "resourceVersion: ", "\"resourceVersion\": ", "\"resourceVersion\":"] {
        if let Some((before, after)) = line.split_once(key) {
            let rest = after.trim_start().trim_start_matches(|c: char| c.is_ascii_digit() || c == '"');
            return format!("{}{key}RV{}", words(before), words(rest));
        }
    }
    let line = words(&line);
    let Some((before, after)) = line.split_once(HASH) else { return line };
    let value = after.trim_start_matches([':', '=', '"', ' ']);
    let hash: String = value.chars().take_while(char::is_ascii_alphanumeric).collect();
    let between = &after[..after.len() - value.len()];
    format!("{before}{HASH}{between}{}{}", if is_random(&hash) { "#" } else { &hash }, &value[hash.len()..])
}

/// The label that tells the ReplicaSets of a Deployment apart.
const HASH: &str = "pod-template-hash";

/// `Mon, 16 Nov 2026 06:20:49 +0000`, as `describe` writes times.
fn dates(line: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    let is_date = |at: &[&str]| {
        at[0].len() == 4
            && at[0].ends_with(',')
            && at[4].matches(':').count() == 2
            && at[5].starts_with(['+', '-'])
    };
    while let Some(at) = words.windows(6).position(is_date) {
        words.splice(at..at + 6, ["TIME"]);
    }
    words.join(" ")
}

/// Word by word; what parts words is kept.
fn words(line: &str) -> String {
    let mut text = String::new();
    let mut word = String::new();
    for c in line.chars() {
        if c.is_whitespace() || "\\\"'()[]{},;=<>".contains(c) {
            text.push_str(&word_of(&word));
            text.push(c);
            word.clear();
        } else {
            word.push(c);
        }
    }
    text + &word_of(&word)
}

fn word_of(word: &str) -> String {
    if is_age(word) {
        return "AGE".to_string();
    }
    if is_time(word) {
        return "TIME".to_string();
    }
    if let Some(rest) = word.strip_prefix("https://127.0.0.1:") {
        return format!("https://SERVER{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    let parts = word.split_inclusive(['/', ':']).map(|part| {
        let (bare, end) = match part.strip_suffix(['/', ':']) {
            Some(bare) => (bare, &part[bare.len()..]),
            None => (part, ""),
        };
        format!("{}{end}", part_of(bare))
    });
    parts.collect()
}

fn part_of(part: &str) -> String {
    if is_uid(part) {
        return "UID".to_string();
    }
    if part.parse::<u32>().is_ok_and(|number| (30_000..32_768).contains(&number)) {
        return "NODE-PORT".to_string();
    }
    // The range of Services; pods and nodes of the session have addresses that it gave them.
    if let Ok(address) = part.parse::<std::net::Ipv4Addr>()
        && address.octets()[0] == 10
        && (96..112).contains(&address.octets()[1])
    {
        return "SERVICE-IP".to_string();
    }
    // An event is named after its object, a dot, and the time as a hexadecimal number.
    if let Some((object, time)) = part.rsplit_once('.')
        && time.len() == 16
        && time.chars().all(|c| c.is_ascii_hexdigit())
    {
        return format!("{}.#", part_of(object));
    }
    let mut pieces = part.split('-');
    let first = pieces.next().unwrap_or("").to_string();
    pieces.fold(first, |name, piece| format!("{name}-{}", if is_random(piece) { "#" } else { piece }))
}

/// The letters that Kubernetes makes random names and hashes from: no vowels, so that no word comes out.
fn is_random(piece: &str) -> bool {
    (5..=10).contains(&piece.len()) && piece.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
}

fn is_uid(word: &str) -> bool {
    let lengths: Vec<usize> = word.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

/// `7s`, `2m3s`, `120ms`.
fn is_age(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h', 'd'])
        && word.chars().all(|c| c.is_ascii_digit() || "smhd".contains(c))
}

/// `2026-11-16T06:20:49Z`, with or without parts of a second.
fn is_time(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 20 && bytes[4] == b'-' && bytes[10] == b'T' && bytes[13] == b':' && word.ends_with('Z')
}

/// Columns are two spaces apart, however wide; how far a line is indented says something and stays.
fn squeezed(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let mut text = line[..indent].to_string();
    let columns = line.trim().split("  ").map(str::trim).filter(|column| !column.is_empty());
    text.push_str(&columns.collect::<Vec<_>>().join("  "));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repair_that_the_real_server_may_tell_of_is_not_compared() {
        let repair =
            "AGE  Warning  ClusterIPNotAllocated  service/a  Cluster IP [IPv4]: 10.96.0.7 is not allocated";
        let head = "LAST SEEN   TYPE   REASON   OBJECT   MESSAGE";
        let nothing = "No resources found in shop namespace.";
        assert_eq!(plain(&format!("{head}\n{repair}\n{repair}")), plain(nothing));
        let other = "3s  Warning  Other  service/a  words";
        assert_eq!(plain(&format!("{head}\n{repair}\n{other}")), plain(&format!("{head}\n{other}")));
        let described = "Name:  a\nEvents:\n  Type     Reason   Age  From  Message\n  ----     ------   ----  ----  -------\n";
        let warned = format!("{described}  Warning  ClusterIPNotAllocated  3s  x  y");
        assert_eq!(plain(&warned), "Name:  a\nEvents:  <none>");
        assert_ne!(plain(&format!("{warned}\n  Warning  Other  3s  x  y")), "Name:  a\nEvents:  <none>");
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
            assert_eq!(plain(said), spelt);
        }
    }

    #[test]
    fn what_the_session_chose_is_compared() {
        for said in ["10.244.7.5", "10.240.0.4", "node-a", "replicas: 3", "kube-system", "80/TCP", "v1.36.3"]
        {
            assert_eq!(plain(said), said);
        }
    }
}
