//! The envelope of every response, and the body of an error response.

use super::prelude::*;

wire! {
    /// The quota, in `metadata.credit`.
    Credit {
        /// Credits used in the current period.
        used: i64 = "used",
        /// The limit of credits for the period.
        limit: i64 = "limit",
        /// The end of the period.
        reset_at: Timestamp = "resetAt",
    }
}

wire! {
    /// `metadata` of the envelope.
    Metadata {
        /// The time of the request.
        query_date: Timestamp = "queryDate",
        /// The quota, if the request had an API key.
        credit: Credit = "credit",
        /// The page number of a paginated response, counted from 1.
        page: i64 = "page",
        /// The number of items on a page, as the server decided.
        page_size: i64 = "pageSize",
        /// The number of pages.
        total_pages: i64 = "totalPages",
        /// The number of items on all pages.
        total: i64 = "total",
    }
}

wire! {
    /// The body of an error response.
    ErrorBody {
        metadata: Metadata = "metadata",
        status: bool = "status",
        status_code: i64 = "statusCode",
        error_message: Text = "errorMessage",
    }
}
