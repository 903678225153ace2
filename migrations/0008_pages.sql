-- What pages ask for, at hand however much there is.

-- What an unlock is worth (USD) and what of the market cap (percent) beside its time, so that the largest of the coming months are
-- found without reading records. Those that have passed are filled in when they are next written: nobody asks for them by size.
ALTER TABLE record ADD COLUMN value REAL;
ALTER TABLE record ADD COLUMN share REAL;
UPDATE record SET
    value = CASE WHEN json_type(body, '$.cliffUnlocks.cliffValue') IN ('integer', 'real') THEN body ->> '$.cliffUnlocks.cliffValue'
                 WHEN json_type(body, '$.cliffUnlocks.totalCliffValue') IN ('integer', 'real') THEN body ->> '$.cliffUnlocks.totalCliffValue' END,
    share = CASE WHEN json_type(body, '$.cliffUnlocks.valueToMarketCap') IN ('integer', 'real') THEN body ->> '$.cliffUnlocks.valueToMarketCap' END
WHERE resource = 'unlock' AND starts_at > 1000 * unixepoch('now', '-32 days');
DROP INDEX record_window;
CREATE INDEX record_window ON record (starts_at, ends_at, token_no, value, share) WHERE resource = 'unlock';

-- How grave an alert is, by its label: 3 critical, 2 warning, 1 everything else.
ALTER TABLE alert ADD COLUMN gravity INTEGER GENERATED ALWAYS AS (
    CASE lower(body ->> '$.labels.severity') WHEN 'critical' THEN 3 WHEN 'page' THEN 3 WHEN 'error' THEN 3 WHEN 'warning' THEN 2 ELSE 1 END) VIRTUAL;
CREATE INDEX alert_gravity ON alert (state, gravity, updated_at);
CREATE INDEX alert_of_token ON alert (token_no, updated_at) WHERE token_no IS NOT NULL;

CREATE INDEX change_of_kind ON change (kind, at);

-- Tokens by what people search and sort them.
ALTER TABLE token ADD COLUMN market_cap REAL GENERATED ALWAYS AS (CAST(item ->> '$.marketCap' AS REAL)) VIRTUAL;
CREATE INDEX token_market_cap ON token (market_cap);
CREATE INDEX token_name ON token (name COLLATE NOCASE, symbol, id);
