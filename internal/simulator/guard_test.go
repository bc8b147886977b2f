package simulator_test

import "testing"

// What ZooKeeper guards accepts nothing of a holder once there is another.
func TestCheckFenceKnowsGuardedWrites(t *testing.T) {
	judge(t, []verdict{
		{name: "by the one who holds", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			21 writing   0/0/0 guarded
			22 written   0/0/0 guarded version=1
			30 releasing 0/0/0
			31 released  0/0/0 ok
			40 called    0/1/0 exclusive
			41 granted   0/1/0 token=2
			42 writing   0/1/0 guarded
			43 written   0/1/0 guarded version=2`},
		{name: "sent before the other had the lock", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			21 writing   0/0/0 guarded
			25 lost      0/0/0
			26 called    0/1/0 exclusive
			40 granted   0/1/0 token=2
			41 written   0/0/0 guarded version=1`},
		{name: "by a zombie, refused", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			25 lost      0/0/0
			26 called    0/1/0 exclusive
			40 granted   0/1/0 token=2
			41 writing   0/0/0 guarded
			42 refused   0/0/0 guarded`},
		{name: "by a zombie, whose answer is lost", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			25 lost      0/0/0
			26 called    0/1/0 exclusive
			40 granted   0/1/0 token=2
			41 writing   0/0/0 guarded
			42 unsure    0/0/0 guarded`},
		{name: "by a zombie, although nobody else has written", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			25 lost      0/0/0
			26 called    0/1/0 exclusive
			40 granted   0/1/0 token=2
			41 writing   0/0/0 guarded
			42 written   0/0/0 guarded version=1`, want: []string{"fence"}},
		{name: "by a zombie whose process was stopped", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			21 paused    0
			26 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			41 resumed   0
			42 writing   0/0/0 guarded
			43 written   0/0/0 guarded version=1
			44 lost      0/0/0`, want: []string{"exclusion", "fence"}},
		{name: "in the wrong order", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			21 writing   0/0/0 guarded
			25 lost      0/0/0
			26 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			41 writing   1/0/0 guarded
			42 written   1/0/0 guarded version=1
			43 written   0/0/0 guarded version=2`, want: []string{"fence"}},
		{name: "of two stores, each with an order of its own", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			21 writing   0/0/0 guarded
			22 written   0/0/0 guarded version=1
			25 lost      0/0/0
			26 called    1/0/0 exclusive
			40 granted   1/0/0 token=2
			41 writing   1/0/0 token=2
			42 written   1/0/0 token=2 version=1`},
		{name: "by the hold of another", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1 node=a
			25 lost      0/0/0
			26 called    0/1/0 exclusive
			40 granted   0/1/0 token=2 node=b
			41 writing   0/0/0 guarded node=b
			42 refused   0/0/0 guarded`, want: []string{"fence"}},
		{name: "refused of the one who holds", text: `
			10 called    0/0/0 exclusive
			20 granted   0/0/0 token=1
			21 writing   0/0/0 guarded
			22 refused   0/0/0 guarded
			30 releasing 0/0/0
			31 released  0/0/0 ok`, want: []string{"fence"}},
	})
}
