package main

import (
	"github.com/zkrecipes/recipes/internal/seqname"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// ordered are the names of the znodes whose order a recipe relies on, those of one recipe
// together. Leases have none.
func ordered(sub string) [][]string {
	switch sub {
	case leasesDir:
		return nil
	case gateDir:
		return [][]string{{"lock-"}}
	}
	const kazoo = "__lock__"
	return [][]string{{"lock-", kazoo}, {"__READ__", "__WRIT__", kazoo}, {"latch-"}}
}

// order looks for a queue that the library refuses, as somebody has made up a number.
func (d *doctor) order(dir, sub string, children []string) {
	told := map[string]bool{}
	for _, kinds := range ordered(sub) {
		first, last, apart := seqname.Apart(seqname.Participants(children, kinds))
		if !apart || told[first.Text+"/"+last.Text] {
			continue
		}
		told[first.Text+"/"+last.Text] = true
		d.find("%s and %s: their numbers are too far apart, so nobody acquires the "+
			"lock; delete the one that no lock created: the numbers of the others are "+
			"just below the sequence counter of %s", zkpath.Join(dir, first.Text),
			zkpath.Join(dir, last.Text), dir)
	}
}
