//! What answers with pages share: a page that could not be made says why, in the frame of all pages.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use super::HttpError;
use crate::ui::page::ErrorPage;
use store::StoreError;

/// A page, or why there is none.
pub(super) type PageResult = Result<Html<String>, PageError>;

/// A page that could not be made.
pub(super) enum PageError {
    Store(StoreError),
    /// What was asked for in the address cannot be.
    Bad(String),
    NotFound {
        title: String,
        text: String,
        /// What to look for among the tokens instead.
        search: Option<String>,
    },
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<HttpError> for PageError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Store(error) => Self::Store(error),
            HttpError::Bad(text) => Self::Bad(text),
            HttpError::NotFound(text) => Self::NotFound { title: "Nothing here".to_owned(), text, search: None },
            HttpError::Template(error) => {
                tracing::error!(%error, "a template of ours is broken");
                Self::Bad("This page cannot be shown; the log says why.".to_owned())
            }
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let (status, page) = match self {
            PageError::Store(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "a page could not be made");
                let text = "The database cannot be read; the log says why.".to_owned();
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    ErrorPage { title: "This page cannot be made".to_owned(), text, search: None },
                )
            }
            PageError::Bad(text) => {
                (StatusCode::BAD_REQUEST, ErrorPage { title: "That cannot be asked".to_owned(), text, search: None })
            }
            PageError::NotFound { title, text, search } => (StatusCode::NOT_FOUND, ErrorPage { title, text, search }),
        };
        (status, Html(page.render())).into_response()
    }
}

/// Where there is nothing: a page for a browser, a line for everybody else.
pub(super) async fn nothing(headers: HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if !accepts.contains("text/html") {
        return (StatusCode::NOT_FOUND, "there is nothing here\n").into_response();
    }
    let text = "There is no page at this address.".to_owned();
    PageError::NotFound { title: "Nothing here".to_owned(), text, search: Some(String::new()) }.into_response()
}
