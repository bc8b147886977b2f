package report

import (
	"fmt"

	"github.com/zkrecipes/recipes/bench/internal/stats"
)

// A Pair is how often in a second each of two processes had the lock that both wanted.
type Pair struct{ Ours, Theirs float64 }

// Shares are what several rounds gave, by the number of Java users and the Go peer.
type Shares struct {
	peers []string // the first is what the totals are compared with
	users []int
	pairs map[int]map[string][]Pair
}

// NewShares is empty.
func NewShares(peers []string) *Shares {
	return &Shares{peers: peers, pairs: map[int]map[string][]Pair{}}
}

// Add adds one round's pair, of each peer in turn.
func (s *Shares) Add(users int, peer string, p Pair) {
	if s.pairs[users] == nil {
		s.users = append(s.users, users)
		s.pairs[users] = map[string][]Pair{}
	}
	s.pairs[users][peer] = append(s.pairs[users][peer], p)
}

// String is a table.
func (s *Shares) String() string {
	t := newTable("Go process", "Java users", "Go's share", "total, ×", "Java, ×")
	for _, users := range s.users {
		base := s.pairs[users][s.peers[0]]
		for _, peer := range s.peers {
			var shares, totals, theirs []float64
			for i, p := range s.pairs[users][peer] {
				total := p.Ours + p.Theirs
				shares = append(shares, p.Ours/total)
				totals = append(totals, total/(base[i].Ours+base[i].Theirs))
				theirs = append(theirs, p.Theirs/base[i].Theirs)
			}
			t.row(peer, fmt.Sprint(users), shareText(stats.Summarize(shares)),
				rangeText(stats.Summarize(totals), count),
				rangeText(stats.Summarize(theirs), count))
		}
	}
	return t.String()
}
