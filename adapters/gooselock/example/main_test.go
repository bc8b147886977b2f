package main

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheHostsMigrateOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "example.db")
	require.NoError(t, run(t.Context(), file, 3))
	db, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	var applied int
	require.NoError(t, db.QueryRowContext(t.Context(),
		"SELECT count(*) FROM goose_db_version WHERE version_id > 0").Scan(&applied))
	require.Equal(t, 2, applied)
}
