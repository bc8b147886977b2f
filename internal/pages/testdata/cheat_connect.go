package page

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

func Run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := connect(ctx) // nobody is at the names of the page
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.True(t, strings.Contains(err.Error(), "zk1:2181"), err)
}

func connect(ctx context.Context) error {
	//pages:block
	return errors.New("connected")
}
