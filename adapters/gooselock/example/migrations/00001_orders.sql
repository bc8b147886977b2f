-- +goose Up
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, customer TEXT);

-- +goose Down
DROP TABLE IF EXISTS orders;
