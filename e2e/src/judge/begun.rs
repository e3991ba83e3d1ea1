//! What a leader had begun before it froze: the calls that its log has, one line for each as it is sent off.
//!
//! A call is one request and no more, whatever comes back. So of the requests that the emulator saw, each must
//! have a line of its own: that an earlier one of the same name has one excuses nobody.

use std::collections::BTreeMap;

use crate::azure::Request;

/// The requests for which the log has no line that is not some other request's.
pub(crate) fn without_a_line(requests: &[&Request], log: &str) -> Vec<String> {
    let mut lines: BTreeMap<(String, String), usize> = BTreeMap::new();
    for key in log.lines().filter_map(key_of_line) {
        *lines.entry(key).or_default() += 1;
    }
    let mut strange = Vec::new();
    for request in requests {
        let call = request.call.clone().unwrap_or_default();
        match lines.get_mut(&(call, target(&request.path))) {
            Some(left) if *left > 0 => *left -= 1,
            _ => strange.push(request.line()),
        }
    }
    strange
}

/// What a line says is called, and of what: `… method=Put target="/subscriptions/…"`.
fn key_of_line(line: &str) -> Option<(String, String)> {
    let (_, rest) = line.split_once(" method=")?;
    let (call, rest) = rest.split_once(" target=")?;
    let path = rest.split_whitespace().next()?.trim_matches('"');
    Some((call.to_string(), target(path)))
}

/// The path of what is called, without the host and without the word for what is done to it.
fn target(path: &str) -> String {
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => path,
    };
    let path = path.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let words = ["/updateservices", "/updateaddresslocations"];
    words.iter().find_map(|word| path.strip_suffix(word)).unwrap_or(&path).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY: &str = "/subscriptions/s/providers/Microsoft.Network/serviceGateways/gw";
    const POLL: &str = "/subscriptions/s/providers/Microsoft.Network/locations/x/operations/o";

    fn request(number: u64, call: &str, path: &str) -> Request {
        Request {
            number,
            area: "arm".into(),
            method: "POST".into(),
            path: path.into(),
            call: Some(call.into()),
            status: Some(200),
            ..Request::default()
        }
    }

    fn line(call: &str, target: &str) -> String {
        format!(
            "2026 DEBUG sluice_controller::updaters: call call=7 effect=#3 method={call} target=\"{target}\"\n"
        )
    }

    #[test]
    fn a_second_batch_is_not_excused_by_the_line_of_the_first() {
        let path = format!("{GATEWAY}/updateAddressLocations");
        let (first, second) = (request(1, "UpdateLocations", &path), request(2, "UpdateLocations", &path));
        let log = line("UpdateLocations", GATEWAY);
        assert!(without_a_line(&[&first], &log).is_empty());
        let strange = without_a_line(&[&first, &second], &log);
        assert_eq!(strange.len(), 1, "{strange:?}");
        assert!(strange[0].starts_with("#2"), "{strange:?}");
        assert!(without_a_line(&[&first, &second], &log.repeat(2)).is_empty());
    }

    #[test]
    fn a_line_is_for_one_resource_and_one_kind_of_call() {
        let services = request(1, "UpdateServices", &format!("{GATEWAY}/updateServices"));
        assert_eq!(without_a_line(&[&services], &line("UpdateLocations", GATEWAY)).len(), 1);
        let poll = request(2, "Poll", POLL);
        assert!(without_a_line(&[&poll], &line("Poll", &format!("https://127.0.0.1:1{POLL}"))).is_empty());
        let public_ip = request(3, "Put", "/x/publicIPAddresses/u-pip");
        assert_eq!(without_a_line(&[&public_ip], &line("Put", "/x/publicIPAddresses/u")).len(), 1);
    }
}
