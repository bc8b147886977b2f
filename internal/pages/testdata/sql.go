package page

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/locktest"
)

func Run(t *testing.T) {
	locktest.InBubble(t, func(t *testing.T, b *locktest.Bubble) {
		ctx := recipes.WithOwner(t.Context())
		account := row{"id": 7, "balance": 0, "token": 0}
		db := sql.OpenDB(account)
		defer db.Close()
		require.NoError(t, b.Lock.Acquire(ctx))
		earlier := b.Lock.Hold(ctx)
		require.NoError(t, write(ctx, db, earlier, 10, 7))
		require.NoError(t, write(ctx, db, earlier, 20, 7), "one holder writes twice")
		require.Error(t, write(ctx, db, earlier, 30, 8), "there is no such account")
		require.NoError(t, b.Lock.Release(ctx))

		require.NoError(t, b.Lock.Acquire(ctx))
		later := b.Lock.Hold(ctx)
		require.NoError(t, write(ctx, db, later, 40, 7))
		require.ErrorContains(t, write(ctx, db, earlier, 50, 7), "was not written")
		want := row{"id": 7, "balance": 40, "token": later.FencingToken()}
		require.Equal(t, want, account)
		require.NoError(t, b.Lock.Release(ctx))
	})
}

func write(
	ctx context.Context, db *sql.DB, hold *recipes.Hold, balance, id int64,
) error {
	//pages:block
	return nil
}

// A row is a database of one row of numbers, the table's only one, and the driver of it.
// Of SQL it knows an UPDATE with parameters that are numbered.
type row map[string]int64

var (
	update = regexp.MustCompile(`^UPDATE account SET (.+) WHERE (.+)$`)
	setTo  = regexp.MustCompile(`^(\w+) = \$(\d)$`)
	where  = regexp.MustCompile(`^(\w+) (=|<=|<) \$(\d)$`)
)

func (r row) ExecContext(
	_ context.Context, query string, args []driver.NamedValue,
) (driver.Result, error) {
	arg := func(n string) int64 {
		i, _ := strconv.Atoi(n)
		return args[i-1].Value.(int64)
	}
	parts := update.FindStringSubmatch(strings.Join(strings.Fields(query), " "))
	if parts == nil {
		return nil, errors.New("no UPDATE: " + query)
	}
	for condition := range strings.SplitSeq(parts[2], " AND ") {
		c := where.FindStringSubmatch(condition)
		if c == nil {
			return nil, errors.New("no condition: " + condition)
		}
		has, want := r[c[1]], arg(c[3])
		if has > want || has == want && c[2] == "<" || has < want && c[2] == "=" {
			return driver.RowsAffected(0), nil
		}
	}
	for assignment := range strings.SplitSeq(parts[1], ", ") {
		a := setTo.FindStringSubmatch(assignment)
		if a == nil {
			return nil, errors.New("no assignment: " + assignment)
		}
		r[a[1]] = arg(a[2])
	}
	return driver.RowsAffected(1), nil
}

func (r row) Connect(context.Context) (driver.Conn, error) { return r, nil }

func (row) Driver() driver.Driver               { return nil }
func (row) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (row) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (row) Close() error                        { return nil }
