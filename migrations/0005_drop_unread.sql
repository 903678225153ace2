-- Prices of each day and credits of each poll were written and pruned, and nobody ever read them. The quota itself is in `credit`.
DROP TABLE valuation;
DROP TABLE credit_log;
