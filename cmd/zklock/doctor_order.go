package main

import (
	"github.com/zkrecipes/recipes/internal/serve/queues"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

// order looks for a queue that the library refuses, as somebody has made up a number.
func (d *doctor) order(dir, sub string, children []string) {
	for _, two := range queues.Apart(sub, children) {
		d.find("%s and %s: their numbers are too far apart, so nobody acquires the "+
			"lock; delete the one that no lock created: the numbers of the others are "+
			"just below the sequence counter of %s", zkpath.Join(dir, two[0]),
			zkpath.Join(dir, two[1]), dir)
	}
}
