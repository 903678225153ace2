//! Limits the size of a result. It stays valid JSON: lists keep their first rows, and notes say what is left out.

use std::collections::BTreeMap;

use serde_json::Value;

use model::phrase;

/// The maximum size of the JSON of a result.
pub(super) const MAX_RESULT_BYTES: usize = 48 * 1024;
/// The depth of objects in which lists are cut.
const MAX_DEPTH: usize = 3;

/// A limit on the rows of one list of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListLimit {
    /// The name of the list.
    pub list: &'static str,
    pub rows: usize,
}

/// Cuts lists until the result is small enough. Returns a note for each list that was cut.
///
/// # Errors
///
/// Fails with a text for the client if the result is too large without its lists.
pub(super) fn shorten(json: &mut Value, limit: Option<ListLimit>) -> Result<Vec<String>, String> {
    shorten_to(json, limit, MAX_RESULT_BYTES)
}

fn shorten_to(json: &mut Value, limit: Option<ListLimit>, max_bytes: usize) -> Result<Vec<String>, String> {
    // The former number of rows of each cut list, by its path.
    let mut cut: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    if let Some(limit) = limit
        && let Some(rows) = json.get_mut(limit.list).and_then(Value::as_array_mut)
        && rows.len() > limit.rows
    {
        cut.insert(vec![limit.list.to_owned()], rows.len());
        rows.truncate(limit.rows);
    }
    while size(json) > max_bytes {
        let Some((path, _)) = largest_list(json, Vec::new()) else {
            return Err(format!("the result is larger than {max_bytes} bytes: ask for less"));
        };
        let Some(rows) = list_at(json, &path) else { break };
        cut.entry(path.clone()).or_insert(rows.len());
        rows.truncate(rows.len() / 2);
    }
    let note = |(path, total): (&Vec<String>, &usize)| {
        let kept = list_at(json, path).map_or(0, |rows| rows.len());
        let of = if path.is_empty() { String::new() } else { format!(" of `{}`", path.join(".")) };
        format!("only the first {kept} of {}{of} are shown: use a filter", phrase::count(*total, "row"))
    };
    Ok(cut.iter().map(note).collect())
}

fn size(json: &Value) -> usize {
    json.to_string().len()
}

/// Returns the path and size of the largest list with rows that can be left out.
fn largest_list(json: &Value, path: Vec<String>) -> Option<(Vec<String>, usize)> {
    match json {
        Value::Array(rows) => (!rows.is_empty()).then(|| (path, size(json))),
        Value::Object(fields) if path.len() < MAX_DEPTH => {
            let lists = fields.iter().filter_map(|(name, value)| {
                let path = path.iter().cloned().chain([name.clone()]).collect();
                largest_list(value, path)
            });
            lists.max_by_key(|(_, size)| *size)
        }
        _ => None,
    }
}

fn list_at<'v>(json: &'v mut Value, path: &[String]) -> Option<&'v mut Vec<Value>> {
    path.iter().try_fold(json, |value, name| value.get_mut(name))?.as_array_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn result_within_the_limit_is_unchanged() {
        let mut json = json!({"rows": [1, 2, 3]});
        assert_eq!(shorten(&mut json, None), Ok(Vec::new()));
        assert_eq!(json, json!({"rows": [1, 2, 3]}));
    }

    #[test]
    fn largest_list_loses_its_last_rows() {
        let mut json = json!({"id": "arbitrum", "records": {"unlock": [1, 2], "burn": (0..1000).collect::<Vec<_>>()}});
        let notes = shorten_to(&mut json, None, 300).expect("it fits");
        assert!(size(&json) <= 300);
        assert_eq!(json["records"]["unlock"], json!([1, 2]));
        let kept = json["records"]["burn"].as_array().expect("a list").len();
        assert!(kept > 10 && json["records"]["burn"][0] == 0, "{json}");
        assert_eq!(notes, [format!("only the first {kept} of 1000 rows of `records.burn` are shown: use a filter")]);
    }

    #[test]
    fn named_list_has_a_limit_of_rows() {
        let mut json = json!({"messages": [1, 2, 3], "summary": [1, 2, 3]});
        let notes = shorten(&mut json, Some(ListLimit { list: "messages", rows: 1 })).expect("it fits");
        assert_eq!(json, json!({"messages": [1], "summary": [1, 2, 3]}));
        assert_eq!(notes, ["only the first 1 of 3 rows of `messages` are shown: use a filter"]);
    }

    #[test]
    fn result_without_lists_can_be_too_large() {
        let mut json = json!({"text": "x".repeat(400)});
        assert!(shorten_to(&mut json, None, 300).is_err());
    }
}
