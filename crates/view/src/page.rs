//! A part of a long list, and what is said when there is nothing to show.

use serde::{Deserialize, Serialize};

/// A part of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// When this was written; RFC 3339, in UTC.
    pub at: String,
    /// How many there are that the filter lets through, on all pages.
    pub total: u64,
    /// Those of this page, in order.
    pub items: Vec<T>,
    /// Given back as `?continue=`, it brings the next page; nothing on the last one.
    #[serde(rename = "continue", default)]
    pub next: Option<String>,
}

/// Why there is no answer, and where there would be one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A fixed word.
    pub error: String,
    /// What happened and what to do, in a sentence or two.
    pub message: String,
    /// What there is to see instead.
    #[serde(default)]
    pub see: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_page_has_no_next_one() {
        let page: Page<u8> = serde_json::from_str(r#"{"at": "", "total": 1, "items": [7]}"#).unwrap();
        assert_eq!(page.next, None);
        let page = Page { next: Some("shop/web".into()), ..page };
        assert_eq!(serde_json::to_value(&page).unwrap()["continue"], "shop/web");
    }
}
