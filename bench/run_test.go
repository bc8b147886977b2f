package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/bench/internal/plan"
)

func TestWhatIsAskedForIsThere(t *testing.T) {
	p, err := (&runCommand{}).newPlan()
	require.NoError(t, err)
	require.Equal(t, plan.Peers, p.Peers)
	require.Equal(t, plan.Scenarios, p.Scenarios)
	p, err = (&runCommand{Peers: []string{plan.Curator}}).newPlan()
	require.NoError(t, err)
	require.Len(t, p.Peers, 1, "curator-each is another one")
	for what, c := range map[string]runCommand{
		"nobody": {Peers: []string{"nobody"}},
		"S77":    {Scenarios: []string{"S77"}},
		"1.5ms":  {Delays: []time.Duration{1500 * time.Microsecond}},
		"-1ms":   {Delays: []time.Duration{-time.Millisecond}},
	} {
		_, err := c.newPlan()
		require.ErrorContains(t, err, what)
	}
}

func TestTheShortRoundNeedsNoMoreThanZooKeeper(t *testing.T) {
	c := runCommand{Short: true}
	c.shorten()
	p, err := c.newPlan()
	require.NoError(t, err)
	require.NotEmpty(t, p.Scenarios)
	for _, of := range p.Peers {
		require.False(t, inJava(of))
		require.Equal(t, plan.Peers[0].Service, of.Service)
	}
}
