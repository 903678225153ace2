//! Notes of users on alerts, and the people who take care of alerts.

use serde::Serialize;

use crate::silence::{MAX_AUTHOR, MAX_COMMENT};
use crate::text::{harmless, plain_lines};
use crate::{AlertId, Timestamp};

/// The maximum number of notes on an alert.
pub const MAX_NOTES: u32 = 200;

/// A note on an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertNote {
    pub at: Timestamp,
    pub author: String,
    pub text: String,
}

/// The person who takes care of an alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    pub assignee: String,
    /// The user that assigned it.
    pub author: String,
    pub at: Timestamp,
}

/// A note or an assignment that is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    #[error("the name of the author is missing, or has more than {MAX_AUTHOR} characters")]
    Author,
    #[error("the name of the assignee has more than {MAX_AUTHOR} characters")]
    Assignee,
    #[error("the note is empty, or has more than {MAX_COMMENT} characters")]
    Text,
}

/// Checks the author and the text of a note on an alert.
///
/// # Errors
///
/// Fails if one of them is missing or too long.
pub fn checked_note(alert: AlertId, author: &str, text: &str) -> Result<NewNote, NoteError> {
    let text = plain_lines(text.trim()).into_owned();
    if text.is_empty() || text.chars().count() > MAX_COMMENT {
        return Err(NoteError::Text);
    }
    Ok(NewNote { alert, author: checked_name(author).filter(|name| !name.is_empty()).ok_or(NoteError::Author)?, text })
}

/// Checks the author and the assignee of an alert. An empty assignee removes the present one.
///
/// # Errors
///
/// Fails if the author is missing, or if a name is too long.
pub fn checked_assignment(alert: AlertId, author: &str, assignee: &str) -> Result<NewAssignment, NoteError> {
    let assignee = Some(checked_name(assignee).ok_or(NoteError::Assignee)?).filter(|name| !name.is_empty());
    let author = checked_name(author).filter(|name| !name.is_empty()).ok_or(NoteError::Author)?;
    Ok(NewAssignment { alert, author, assignee })
}

/// Returns a name as one line. `None` if it is too long.
fn checked_name(name: &str) -> Option<String> {
    let name = harmless(name.trim());
    (name.chars().count() <= MAX_AUTHOR).then_some(name)
}

/// A checked note. It is also the body of its event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewNote {
    pub alert: AlertId,
    pub author: String,
    pub text: String,
}

/// A checked assignment. It is also the body of its event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewAssignment {
    pub alert: AlertId,
    pub author: String,
    /// `None` removes the present one.
    pub assignee: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_needs_an_author_and_a_text_of_limited_length() {
        let checked = |author: &str, text: &str| checked_note("al_1".into(), author, text);
        let note = checked(" ann\n", "  first\nsecond  ").expect("valid");
        assert_eq!((note.author.as_str(), note.text.as_str()), ("ann", "first\nsecond"));
        assert_eq!(checked("", "x"), Err(NoteError::Author));
        assert_eq!(checked(&"x".repeat(MAX_AUTHOR + 1), "x"), Err(NoteError::Author));
        assert_eq!(checked("ann", " \n"), Err(NoteError::Text));
        assert_eq!(checked("ann", &"x".repeat(MAX_COMMENT + 1)), Err(NoteError::Text));
    }

    #[test]
    fn empty_assignee_removes_the_present_one() {
        let checked = |author: &str, assignee: &str| checked_assignment("al_1".into(), author, assignee);
        assert_eq!(checked("ann", " ").expect("valid").assignee, None);
        assert_eq!(checked("ann", "bob ").expect("valid").assignee.as_deref(), Some("bob"));
        assert_eq!(checked(" ", "bob"), Err(NoteError::Author));
        assert_eq!(checked("ann", &"x".repeat(MAX_AUTHOR + 1)), Err(NoteError::Assignee));
    }
}
