package page

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/zktest"
)

func Run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	loss(ctx, t)
}

func loss(ctx context.Context, t *testing.T) {
	//pages:block
}
