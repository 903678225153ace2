-- Keys are found by the beginning of their hash; the whole hash is then compared in constant time.
CREATE INDEX api_key_prefix ON api_key (substr(hash, 1, 8)) WHERE revoked_at IS NULL;
