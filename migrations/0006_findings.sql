-- What reading a feed found: what the next look at it is worth is learned from that.
ALTER TABLE feed ADD COLUMN findings TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(findings));
