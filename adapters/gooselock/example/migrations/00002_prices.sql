-- +goose Up
CREATE TABLE IF NOT EXISTS prices (item TEXT PRIMARY KEY, cents INTEGER);

-- +goose Down
DROP TABLE IF EXISTS prices;
