//! The envelope of every answer, and the body of a refusal.

use super::prelude::*;

wire! {
    /// State of the quota, in `metadata.credit`.
    Credit {
        /// Credits used so far in the current period.
        used: i64 = "used",
        /// Allowance for the period.
        limit: i64 = "limit",
        /// When the quota resets.
        reset_at: Timestamp = "resetAt",
    }
}

wire! {
    /// `metadata` of the envelope.
    Metadata {
        /// Time of the query.
        query_date: Timestamp = "queryDate",
        /// Quota state, on authenticated answers.
        credit: Credit = "credit",
        /// 1-based page, on paginated answers.
        page: i64 = "page",
        /// Items on a page, as the server decided.
        page_size: i64 = "pageSize",
        /// Pages of the whole list.
        total_pages: i64 = "totalPages",
        /// Items of the whole list.
        total: i64 = "total",
    }
}

wire! {
    /// Body of a refusal.
    ErrorBody {
        metadata: Metadata = "metadata",
        status: bool = "status",
        status_code: i64 = "statusCode",
        error_message: Text = "errorMessage",
    }
}
