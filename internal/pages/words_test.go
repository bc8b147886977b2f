package pages_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wordLimits are how many words a page has at most, as "wc -w" counts them: code, and
// the bars of tables, among them. A page grows only by moving its limit.
var wordLimits = map[string]int{
	"README.md":                           1680,
	"CHANGELOG.md":                        348,
	"CONTRIBUTING.md":                     2430,
	"SECURITY.md":                         150,
	"bench/README.md":                     1350,
	"cmd/zklock/README.md":                2225,
	"docs/caching.md":                     687,
	"docs/README.md":                      350,
	"docs/leader-service.md":              622,
	"docs/many-small-locks.md":            526,
	"cmd/zktest/README.md":                271,
	"otelrecipes/README.md":               312,
	"docs/compatibility.md":               392,
	"docs/llms.txt":                       305,
	"docs/connections.md":                 641,
	"docs/correctness.md":                 677,
	"docs/costs.md":                       1053,
	"docs/design.md":                      777,
	"docs/election.md":                    516,
	"docs/fencing.md":                     635,
	"docs/appendix/zktest-java-python.md": 603,
	"docs/guarantees.md":                  1064,
	"docs/appendix/hazards.md":            3470,
	"docs/holds.md":                       179,
	"docs/kerberos.md":                    607,
	"docs/migrating.md":                   522,
	"docs/migrating-curator.md":           1265,
	"docs/appendix/curator-tests.md":      448,
	"docs/migrating-elections.md":         382,
	"docs/migrating-kazoo.md":             192,
	"docs/migrating-zk-lock.md":           368,
	"docs/multi-lock.md":                  232,
	"docs/mutex.md":                       345,
	"docs/options.md":                     460,
	"docs/messages.md":                    1016,
	"docs/operations.md":                  1342,
	"docs/owners.md":                      208,
	"docs/appendix/planted-defects.md":    964,
	"docs/read-write-lock.md":             208,
	"docs/prove.md":                       714,
	"docs/registration.md":                534,
	"docs/scope.md":                       801,
	"docs/security.md":                    1234,
	"docs/secure-cluster.md":              615,
	"docs/semaphore.md":                   519,
	"docs/servers.md":                     686,
	"docs/testing.md":                     647,
	"docs/appendix/track-record.md":       1212,
	"docs/serve.md":                       1150,
	"docs/appendix/README.md":             232,
	"docs/appendix/caching-shares.md":     276,
	"docs/appendix/large-fleets.md":       544,
	"docs/appendix/mechanisms.md":         742,
	"docs/appendix/models.md":             449,
	"docs/appendix/servers-tested.md":     315,
	"docs/appendix/kerberos-login.md":     249,
	"docs/appendix/guarantees.md":         164,
	"docs/appendix/observers.md":          445,
	"docs/appendix/wire.md":               230,
	"examples/README.md":                  349,

	"adapters/gocronlock/README.md": 950,
	"adapters/gooselock/README.md":  1120,
}

// newPageLimit is that of a page that is not in the list yet.
const newPageLimit = 600

func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		limit, ok := wordLimits[filepath.ToSlash(p.name)]
		if !ok {
			limit = newPageLimit
		}
		words := len(strings.Fields(strings.Join(p.lines, "\n")))
		if words > limit {
			t.Errorf("%s: %d words, limit %d", p.name, words, limit)
		}
	}
}

// A term is one that readers stumble over, and what to say instead.
type term struct{ avoid, say string }

var glossary = []term{
	{`all or none`, "all or nothing"},
	{`anew`, "again; recreated; starts over; rejoins"},
	{`asks? (nothing|little|for little|ZooKeeper)`, "sends no, or few, requests"},
	{`at the (most|least)`, "at most, at least"},
	{"bare `…`", "plain `*zk.Conn`"},
	{`beside`, "next to; concurrently with"},
	{`can bear|bears?`, "tolerates"},
	{`(came|comes?) to differ`, "diverge"},
	{`could not be asked`, "could not be reached"},
	{`a cut|the cuts?|cuts that`, "a network outage"},
	{`director(y|ies) of (a )?locks?|lock's directory`, "parent znode, lock path"},
	{`does no harm|no more harm`, "is safe"},
	{`ends? by (itself|themselves)`, "expires"},
	{`for ever`, "forever"},
	{`for nothing`, "without requests"},
	{`for want of`, "for lack of"},
	{`free (lock|lease|semaphore)`, "uncontended"},
	{`g[ai]ves? (back|up)|given (back|up)|giving (back|up)`, "release; relinquish"},
	{`hands? on|handed on`, "hand over"},
	{`hang(s|ing)?( [^u]\w*|[.,;:]|$)`, "is stuck"},
	{`heeds?`, "acts on, respects"},
	{`held up`, "delayed"},
	{`in the end`, "eventually"},
	{`is at it`, "holds the lock"},
	{`is away`, "is unreachable"},
	{`is none any more`, "has left"},
	{`kept place|place that is kept|keeps? (a|no) place`, "a cached queue entry"},
	{`let(s)? in`, "admitted"},
	{`lock that excludes`, "exclusive lock"},
	{`ma(kes?|de) (a|an|its|their) znodes?`, "creates a znode"},
	{`mend(s|ed|ing)?`, "fix"},
	{`nobody knows`, "the state, or the outcome, is unknown"},
	{`once in a while`, "every 30 to 60 s"},
	{`out of touch`, "no confirmed contact"},
	{`presumed`, "assumption"},
	{`refus(e|es|ed|al|als)`, "returns an error for; rejects"},
	{`retreat`, "orderly stop"},
	{`right ahead`, "predecessor"},
	{`rooms?`, "packages"},
	{`shown by`, "covered by"},
	{`silences?`, "a period without responses"},
	{`sits? out`, "survive, tolerate"},
	{`stands? for election|standing for election`, "be a candidate"},
	{`strangers?`, "unrelated znodes"},
	{`strays?`, "orphaned znode"},
	{`surely`, "certainly; guaranteed; confirmed by"},
	{`taken for`, "treated as"},
	{`the own`, "its own; the waiter's"},
	{`told`, "notified; receives; reported"},
	{`whoever`, "a process that"},
	{`word from`, "a confirmation by"},
}

// exempt is a page whose rows are names that the sources have.
const exempt = "docs/appendix/planted-defects.md"

// What is no text: code, targets of links, anchors.
var notText = regexp.MustCompile("`[^`\n]*`|\\]\\([^)\\s]*\\)|<[^>\n]*>")

// TestPagesAreInPlainEnglish looks at all text, also at terms that a line breaks.
func TestPagesAreInPlainEnglish(t *testing.T) {
	t.Parallel()
	const written = "bench/RESULTS.md" // by a program
	results := page{written, strings.Split(read(t, written), "\n")}
	for _, p := range append(pages(t), results) {
		if filepath.ToSlash(p.name) == exempt {
			continue
		}
		text := strings.Join(outsideCode(p.lines), "\n")
		text = notText.ReplaceAllString(text, "`…`")
		for _, g := range glossary {
			avoid := regexp.MustCompile(`(?i)(?:^|\W)(` +
				strings.ReplaceAll(g.avoid, " ", `\s+`) + `)(?:\W|$)`)
			for _, at := range avoid.FindAllStringSubmatchIndex(text, -1) {
				t.Errorf("%s:%d: %q: say %s", p.name,
					1+strings.Count(text[:at[2]], "\n"), text[at[2]:at[3]], g.say)
			}
		}
	}
}
