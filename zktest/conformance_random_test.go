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

	"github.com/zkrecipes/recipes/zktest"
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
	needsGenuine(t)
	genuine := mustPlay(t, ordinary.startReal(t), nil)
	playRandom(t, genuine, opponent(t, genuine), drawSteps(nil, kinds), leastRandom)
}

// TestConformanceRandomQuotas does the same below a path with quotas.
func TestConformanceRandomQuotas(t *testing.T) {
	needsGenuine(t)
	genuine := mustPlay(t, ordinary.startReal(t), nil)
	draw := drawSteps([]string{
		"c0 create quota:. null", "c0 create quota:/a null",
		"c0 create quota:/zookeeper_limits count=3,bytes=20",
		"c0 create quota:/zookeeper_stats count=0,bytes=0",
	}, counted)
	playRandom(t, genuine, opponent(t, genuine), draw, leastRandom/5)
}

// TestConformanceRandomSASL does the same with clients that log in.
func TestConformanceRandomSASL(t *testing.T) {
	needsGenuine(t)
	genuine := mustPlay(t, withUsers.startReal(t), nil)
	newFake := func() *player {
		fake, err := zktest.New(zktest.WithTick(tick), zktest.WithMaxSession(usual),
			zktest.WithSASLUsers(users))
		require.NoError(t, err)
		return mustPlay(t, fake.Addrs()[0], fake.Close)
	}
	playRandom(t, genuine, newFake, drawSteps(nil, loggedIn), leastRandom/5)
}

func playRandom(
	t *testing.T, genuine *player, newFake func() *player,
	draw func(*rapid.T) []step, usual int,
) {
	t.Helper()
	seed := fromEnv(t, "CONFORMANCE_SEED", int(time.Now().UnixNano()))
	least := fromEnv(t, "CONFORMANCE_OPERATIONS", usual)
	defer genuine.close()
	differ := func(script []step) string {
		fake := newFake()
		defer fake.close()
		difference, err := compare(genuine, fake, script, below(t, script))
		require.NoError(t, err, "CONFORMANCE_SEED=%d", seed)
		return difference
	}
	scripts := rapid.Custom(draw)
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

// drawSteps draws scripts of steps of these kinds, after a beginning.
func drawSteps(beginning []string, kinds []func(*rapid.T) string) func(*rapid.T) []step {
	return func(t *rapid.T) (script []step) {
		for _, line := range beginning {
			script = append(script, parse(line))
		}
		for range lengthOfOne {
			script = append(script, parse(drawStep(t, kinds)))
		}
		return mend(script)
	}
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

// counted are the steps of scripts with quotas.
var counted = []func(*rapid.T) string{
	drawQuota, drawCreate, drawSet, drawDelete, drawQuota, drawCreate, drawSet, drawMulti,
	drawRead, drawSession, drawCreate, drawDelete, drawSet, drawQuota,
}

// loggedIn are the steps of clients that log in.
var loggedIn = []func(*rapid.T) string{drawLogin, drawLoggedIn, drawLoggedIn, drawLoggedIn}

func drawStep(t *rapid.T, kinds []func(*rapid.T) string) string {
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
			"whoAmI", "getData !/zookeeper/config", "create "+drawPath(t)+" x ephemeral")
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

// drawQuota reads the account of a path more often than it changes one or its limits.
func drawQuota(t *rapid.T) string {
	of := "quota:" + pick(t, "", "", "/a")
	account := func() string {
		return fmt.Sprintf("count=%s,bytes=%s", pick(t, "0", "2", "-1"),
			pick(t, "0", "10", "-1"))
	}
	switch pick(t, "read", "read", "read", "set", "create", "delete", "read") {
	case "set":
		return fmt.Sprintf("set %s/zookeeper_%s %s", of, pick(t, "limits", "stats"),
			account())
	case "create":
		return fmt.Sprintf("create %s/zookeeper_%s %s", of, pick(t, "limits", "stats"),
			account())
	case "delete":
		return fmt.Sprintf("delete %s/zookeeper_%s", of, pick(t, "limits", "stats"))
	}
	return fmt.Sprintf("get %s/zookeeper_%s", of, pick(t, "stats", "stats", "limits"))
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

// drawLogin is for raw packets, too.
func drawLogin(t *rapid.T) string {
	return pick(t, "r0 ", "r1 ", "r2 ") + pick(t, "login bob secret", "login ann hunter2",
		"login bob wrong", "connect", "login bob secret")
}

func drawLoggedIn(t *rapid.T) string {
	who, path := pick(t, "r0 ", "r1 ", "r2 "), drawPath(t)
	acl := func() string {
		return pick(t, "sasl/bob:cdrwa", "sasl/ann:r", "auth:cdrwa", "world:cdrwa",
			"sasl/bob:cdrwa,sasl/ann:cd", "auth:rw,world:r", "sasl/nobody@here:cdrwa")
	}
	switch pick(t, "create", "create", "setACL", "delete", "set", "read", "read") {
	case "create":
		return who + "create " + path + " x persistent " + acl()
	case "setACL":
		return who + "setACL " + path + " " + acl() + " -1"
	case "delete":
		return who + "delete " + path + " -1"
	case "set":
		return who + "setData " + path + " y -1"
	}
	return who + pick(t, "getData ", "getACL ", "getChildren ") + path
}
