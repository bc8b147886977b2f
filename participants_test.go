package recipes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// People look a session up as the server's log has it, and data can hold anything.
func TestParticipantString(t *testing.T) {
	p := recipes.Participant{
		Node: "/l/_c_1-lock-0000000007", Kind: "lock", Data: []byte("10.0.0.1\n\x00"),
		Session: -0x0fff_ffff_ffff_ffff, Since: time.Unix(1700000000, 5000000).UTC(), Holding: true,
	}
	require.Equal(t, `/l/_c_1-lock-0000000007: lock, holding, session 0xf000000000000001, `+
		`since 2023-11-14T22:13:20.005Z, data "10.0.0.1\n\x00"`, p.String())
	p.Holding = false
	require.Contains(t, fmt.Sprint([]recipes.Participant{p}), ": lock, waiting, session 0xf0")
}
