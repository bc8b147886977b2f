package crew_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/crew"
	"github.com/zkrecipes/recipes/bench/internal/load"
)

func TestTheJavaProgramAnswers(t *testing.T) {
	java, err := crew.CompileJava(
		t.Context(), "../../java", filepath.Join(t.TempDir(), "classes"),
	)
	if errors.Is(err, crew.ErrNoCurator) {
		t.Skip(err) // the bench leaves it out, too
	}
	require.NoError(t, err)
	require.NotEmpty(t, java.Curator)
	c := crew.New(map[string][]string{"peer": java.Command("share")}, time.Minute)
	t.Cleanup(c.Close)
	l := load.Load{Shape: "none", Kind: load.Mutex, Paths: 1, Time: time.Second}
	require.Contains(t, one(t, c, "/a").Fault, "no shape")
	require.Contains(t, c.Do(t.Context(), "peer", 1, l)[0].Fault, "no shape: none")
}
