-- SPDX-License-Identifier: MIT
--
-- A table that knows the greatest fence that each of its rows was read or written with.  It is the same for SQLite
-- (sqlite3 stock.db <stock.sql) and PostgreSQL (psql <stock.sql).
CREATE TABLE stock (
    item text PRIMARY KEY,
    amount integer NOT NULL,
    fence bigint NOT NULL DEFAULT 0
);
INSERT INTO stock (item, amount) VALUES ('apples', 10);
