package zkserver

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEmbeddedOptions has no setting that is passed over in silence.
func TestEmbeddedOptions(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"minSessionTimeout=300": 1, "reconfigEnabled=true": 1, "reconfigEnabled=false": 0,
		"-Dzookeeper.extendedTypesEnabled=true": 0, "-Xmx256m": 0,
	} {
		options, err := settings{config: []string{line}}.embeddedOptions()
		require.NoError(t, err, line)
		require.Len(t, options, want, line)
	}
	_, err := settings{jvm: []string{"-Dnonsense=true"}}.embeddedOptions()
	require.EqualError(t, err, "zkserver: zktest does not have -Dnonsense; "+
		"a test that needs it says so with zkserver.Real")
	_, err = settings{config: []string{"minSessionTimeout=x"}}.embeddedOptions()
	require.ErrorContains(t, err, "zkserver: minSessionTimeout=x: strconv.Atoi")
}
