package simulator_test

import "testing"

// lostWithAMargin is a holder who loses the lock at 100, and has 50 left to stop in.
const lostWithAMargin = `
	10 called    0/0/0 exclusive
	20 granted   0/0/0 token=1 session=7 node=/p/a margin=50
	30 called    1/0/0 exclusive`

func TestCheckMargins(t *testing.T) {
	margins := []string{"margins"}
	judge(t, []verdict{
		{name: "another once it is over", text: lostWithAMargin + `
			100 lost      0/0/0
			150 granted   1/0/0 token=2`},
		{name: "another within it", text: lostWithAMargin + `
			100 lost      0/0/0
			148 granted   1/0/0 token=2`, want: margins},
		{name: "whoever has released", text: lostWithAMargin + `
			100 lost      0/0/0
			105 releasing 0/0/0
			110 released  0/0/0 lock-lost
			120 granted   1/0/0 token=2`, want: margins},
		{name: "a loss behind the release", text: lostWithAMargin + `
			 90 releasing 0/0/0
			100 lost      0/0/0
			120 granted   1/0/0 token=2`},
		{name: "the same owner", text: lostWithAMargin + `
			100 lost      0/0/0
			105 releasing 0/0/0
			106 released  0/0/0 lock-lost
			110 called    0/0/1 exclusive
			120 granted   0/0/1 token=2`},
		{name: "a session that was ended", text: lostWithAMargin + `
			100 lost      0/0/0
			110 expired   session=7
			120 granted   1/0/0 token=2`},
		{name: "a client that was closed", text: lostWithAMargin + `
			 99 closing   0 session=7
			100 lost      0/0/0
			120 granted   1/0/0 token=2`},
		{name: "a znode that was deleted", text: lostWithAMargin + `
			 99 removing  node=/p/a
			100 lost      0/0/0
			120 granted   1/0/0 token=2`},
		{name: "a process that was stopped", text: lostWithAMargin + `
			 40 paused    0
			 99 resumed   0
			100 lost      0/0/0
			120 granted   1/0/0 token=2`},
		{name: "one who only joins", text: lostWithAMargin + `
			100 lost      0/0/0
			110 failed    1/0/0 timed-out`},
	})
}
