package zktest_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	// leastRandom is how many random operations a run plays at least;
	// CONFORMANCE_OPERATIONS asks for more.
	leastRandom = 10_000
	// lengthOfOne is how many steps one random script has.
	lengthOfOne = 130
)

// TestConformanceRandom plays random scripts on zktest and on a real server. One that
// comes out differently is made as short as possible, and shown. CONFORMANCE_SEED plays
// that of an earlier run first.
func TestConformanceRandom(t *testing.T) {
	seed := fromEnv(t, "CONFORMANCE_SEED", int(time.Now().UnixNano()))
	least := fromEnv(t, "CONFORMANCE_OPERATIONS", leastRandom)
	genuine := mustPlay(t, realServer(t), nil)
	defer genuine.close()
	newFake := opponent(t, genuine)
	differ := func(script []step) string {
		fake := newFake()
		defer fake.close()
		_, difference, err := compare(genuine, fake, script, below(t, script))
		require.NoError(t, err, "CONFORMANCE_SEED=%d", seed)
		return difference
	}
	scripts := rapid.Custom(drawScript)
	played := 0
	for ; played < least; seed++ {
		script := scripts.Example(seed)
		played += len(script)
		if differ(script) != "" {
			script = shorten(script, func(s []step) bool { return differ(s) != "" })
			t.Fatalf("CONFORMANCE_SEED=%d: %s", seed, differ(script))
		}
	}
	t.Logf("%d random operations came out the same", played)
}

func fromEnv(t *testing.T, name string, usual int) int {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return usual
	}
	n, err := strconv.Atoi(value)
	require.NoError(t, err, name)
	return n
}

func drawScript(t *rapid.T) []step {
	var script []step
	for range lengthOfOne {
		script = append(script, parse(rapid.Custom(drawStep).Draw(t, "step")))
	}
	return mend(script)
}

// mend makes a script of any steps: a client that is down gives no answers until it is up
// again.
func mend(script []step) []step {
	var mended []step
	down := map[string]bool{}
	for _, s := range script {
		switch {
		case down[s.who]:
			s = parse(s.who + " up")
			down[s.who] = false
		case s.verb == "up":
			continue
		case s.verb == "down":
			down[s.who] = true
		}
		mended = append(mended, s)
	}
	return mended
}

// shorten leaves out what a script fails without, half of it at first and single steps at
// last. (What rapid does to a script is to make it simpler, step by step, which takes
// many times as long.)
func shorten(script []step, fails func([]step) bool) []step {
	for size := len(script) / 2; size > 0; {
		shorter := script
		for at := 0; at < len(shorter); {
			without := mend(
				slices.Concat(shorter[:at], shorter[min(at+size, len(shorter)):]),
			)
			if fails(without) {
				shorter = without
			} else {
				at += size
			}
		}
		if size > 1 || len(shorter) == len(script) {
			size /= 2
		}
		script = shorter
	}
	return script
}

// kinds are the steps of random scripts, the more usual ones more than once. (rapid
// prefers both ends of a list.)
var kinds = []func(*rapid.T) string{
	drawCreate, drawWatch, drawDelete, drawCreate, drawWatch, drawCreate,
	drawRead, drawRead, drawRead, drawRead,
	drawSet, drawSet, drawSet,
	drawMulti, drawMulti, drawMulti,
	drawRights, drawRights,
	drawSession, drawPersistent, drawPersistent,
	drawDelete, drawCreate, drawWatch, drawDelete, drawWatch, drawCreate,
}

func drawStep(t *rapid.T) string {
	step := rapid.SampledFrom(kinds).Draw(t, "kind")(t)
	if strings.HasPrefix(step, "r") {
		return step
	}
	return pick(t, "c0", "c1", "c2") + " " + step
}

// drawPersistent is for what go-zookeeper's client does not ask: raw packets.
func drawPersistent(t *rapid.T) string {
	who := pick(t, "r0 ", "r1 ")
	switch pick(t, "add", "add", "once", "remove", "check", "ask", "again") {
	case "add":
		return who + "addWatch " + drawBase(t) + " " + pick(t, "0", "1")
	case "once":
		return who + pick(t, "getData", "getChildren", "exists") + " " + drawBase(t) +
			" watch"
	case "remove":
		return who + "removeWatches " + drawBase(t) + " " + pick(t, "3", "1", "2")
	case "ask":
		return who + pick(t, "getEphemerals "+drawBase(t), "countChildren "+drawBase(t),
			"whoAmI", "create "+drawPath(t)+" x ephemeral")
	case "check":
		return who + "checkWatches " + drawBase(t) + " " + pick(t, "3", "1", "2")
	}
	return fmt.Sprintf("%ssetWatches2 %s %s %s %s %s %s", who, pick(t, "100", "0", "10"),
		drawPath(t), drawPath(t), drawPath(t), drawBase(t), drawBase(t))
}

func pick(t *rapid.T, choices ...string) string {
	return rapid.SampledFrom(choices).Draw(t, "choice")
}

// drawPath knows few names, so that the same nodes are met again and again; also those of
// the first sequential nodes.
func drawPath(t *rapid.T) string {
	path := ""
	for range rapid.SampledFrom([]int{1, 1, 2, 3, 1, 2, 1, 1}).Draw(t, "depth") {
		path += "/" + pick(
			t, "a", "b", "a", "s-0000000000", "s-0000000001", "a", "b", "a",
		)
	}
	return path
}

func drawVersion(t *rapid.T) string { return pick(t, "-1", "-1", "-1", "0", "1", "2") }

func drawACL(t *rapid.T) string {
	if pick(t, "usual", "usual", "usual", "special") == "usual" {
		return "world:cdrwa"
	}
	return pick(
		t, "world:cdra", "world:cdwa", "bob:cdrwa", "none", "auth:cdrwa",
		"bob:cdrwa,world:r",
	)
}

func drawCreate(t *rapid.T) string {
	switch pick(
		t, "plain", "plain", "plain", "ephemeral", "ephemeral", "sequence", "sequence",
		"container", "ttl",
	) {
	case "ephemeral":
		return fmt.Sprintf("create %s x ephemeral %s", drawPath(t), drawACL(t))
	case "sequence":
		parent := pick(t, "", "/a", "/b", "/a/b")
		return fmt.Sprintf(
			"create %s/s- x %s", parent, pick(t, "sequence", "ephemeralSequence"),
		)
	case "container":
		return fmt.Sprintf("container %s x", drawPath(t))
	case "ttl":
		return fmt.Sprintf("ttl %s x 3600000", drawPath(t))
	}
	return fmt.Sprintf("create %s x persistent %s", drawPath(t), drawACL(t))
}

func drawDelete(t *rapid.T) string {
	return fmt.Sprintf("delete %s %s", drawPath(t), drawVersion(t))
}

func drawSet(t *rapid.T) string {
	return fmt.Sprintf(
		"set %s %s %s", drawPath(t), pick(t, "y", `""`, "null", "longer"), drawVersion(t),
	)
}

func drawRead(t *rapid.T) string {
	return pick(t, "get", "exists", "children", "sync") + " " + drawBase(t)
}

func drawWatch(t *rapid.T) string {
	return pick(t, "getW", "childrenW", "existsW") + " " + drawBase(t)
}

// drawBase knows the base node, too.
func drawBase(t *rapid.T) string {
	if pick(t, "node", "node", "base", "node") == "base" {
		return "."
	}
	return drawPath(t)
}

func drawMulti(t *rapid.T) string {
	var ops []string
	for range rapid.IntRange(0, 4).Draw(t, "operations") {
		switch pick(t, "create", "create", "delete", "set", "check") {
		case "create":
			ops = append(ops, fmt.Sprintf(
				"create %s x %s", drawPath(t),
				pick(t, "persistent", "ephemeral", "sequence", "ephemeralSequence"),
			))
		case "delete":
			ops = append(ops, drawDelete(t))
		case "set":
			ops = append(ops, drawSet(t))
		case "check":
			ops = append(ops, fmt.Sprintf("check %s %s", drawPath(t), drawVersion(t)))
		}
	}
	return "multi " + strings.Join(ops, " ; ")
}

func drawRights(t *rapid.T) string {
	switch pick(t, "getACL", "setACL", "auth", "getACL", "setACL", "auth", "super") {
	case "setACL":
		return fmt.Sprintf("setACL %s %s %s", drawPath(t), drawACL(t), drawVersion(t))
	case "auth":
		return "auth digest bob:" + password
	case "super":
		return "auth digest super:" + password
	}
	return "getACL " + drawPath(t)
}

func drawSession(t *rapid.T) string { return pick(t, "close", "down", "down", "expire") }
