-- SPDX-License-Identifier: MIT
--
-- A table that records the greatest fence that each row was read or written with, for SQLite
-- (sqlite3 stock.db <stock.sql) and PostgreSQL (psql <stock.sql).
CREATE TABLE stock (
    item text PRIMARY KEY,
    amount integer NOT NULL,
    fence bigint NOT NULL DEFAULT 0
);
INSERT INTO stock (item, amount) VALUES ('apples', 10);
