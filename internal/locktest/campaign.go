package locktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
)

// A Campaign is a Run of a selector whose terms the test ends.
type Campaign struct {
	t        *testing.T
	Selector *recipes.LeaderSelector
	Terms    chan *CampaignTerm
	Result   <-chan error
	Stop     context.CancelCauseFunc // of Run's ctx
}

// A CampaignTerm is a call of lead.
type CampaignTerm struct {
	Ctx  context.Context
	Hold *recipes.Hold
	End  chan error // what lead is to return
}

// NewSelector returns a candidate for /election.
func NewSelector(
	t *testing.T, conn recipes.Conn, opts ...recipes.Option,
) *recipes.LeaderSelector {
	t.Helper()
	s, err := recipes.NewLeaderSelector(conn, "/election", opts...)
	require.NoError(t, err)
	return s
}

// StartCampaign begins to Run for /election, and lets it come as far as it comes.
func StartCampaign(t *testing.T, conn recipes.Conn, opts ...recipes.Option) *Campaign {
	t.Helper()
	return StartCampaignOf(t, NewSelector(t, conn, opts...))
}

// StartCampaignOf is [StartCampaign] for a selector of the test's own.
func StartCampaignOf(t *testing.T, selector *recipes.LeaderSelector) *Campaign {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	c := &Campaign{
		t: t, Selector: selector, Terms: make(chan *CampaignTerm, 10), Stop: stop,
	}
	c.Result = Start(func() error { return selector.Run(ctx, c.lead) })
	time.Sleep(Settle)
	return c
}

func (c *Campaign) lead(ctx context.Context, hold *recipes.Hold) error {
	now := &CampaignTerm{ctx, hold, make(chan error, 1)}
	c.Terms <- now
	return <-now.End
}

// Leads waits for the next term.
func (c *Campaign) Leads() *CampaignTerm {
	c.t.Helper()
	now := Within(c.t, c.Terms, "the candidate does not lead")
	require.NoError(c.t, now.Hold.Err(), "it leads without leadership")
	return now
}

// Waits requires that the candidate does not lead.
func (c *Campaign) Waits() {
	c.t.Helper()
	time.Sleep(Settle)
	require.Empty(c.t, c.Terms)
	require.Empty(c.t, c.Result)
}

// Ended returns what Run has returned.
func (c *Campaign) Ended() error {
	c.t.Helper()
	return Within(c.t, c.Result, "Run does not return")
}

// Leaves ends the campaign of a candidate that does not lead.
func (c *Campaign) Leaves() {
	c.t.Helper()
	c.Stop(ErrRetired)
	require.ErrorIs(c.t, c.Ended(), ErrRetired)
}

// ErrRetired is the cause with which a candidate leaves.
var ErrRetired = errors.New("retired")
