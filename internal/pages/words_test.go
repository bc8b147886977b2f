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
	"README.md":                           1665,
	"CHANGELOG.md":                        348,
	"CONTRIBUTING.md":                     2430,
	"SECURITY.md":                         150,
	"bench/README.md":                     1350,
	"cmd/zklock/README.md":                2210,
	"docs/caching.md":                     742,
	"docs/README.md":                      355,
	"docs/leader-service.md":              764,
	"docs/many-small-locks.md":            526,
	"cmd/zktest/README.md":                258,
	"otelrecipes/README.md":               312,
	"docs/cheatsheet.md":                  224,
	"docs/compatibility.md":               446,
	"docs/llms.txt":                       314,
	"docs/connections.md":                 697,
	"docs/correctness.md":                 728,
	"docs/costs.md":                       1266,
	"docs/design.md":                      831,
	"docs/election.md":                    529,
	"docs/faq.md":                         230,
	"docs/fencing.md":                     656,
	"docs/appendix/zktest-java-python.md": 587,
	"docs/guarantees.md":                  1149,
	"docs/appendix/hazards.md":            3472,
	"docs/holds.md":                       187,
	"docs/kerberos.md":                    620,
	"docs/migrating.md":                   749,
	"docs/migrating-curator.md":           1312,
	"docs/appendix/curator-tests.md":      448,
	"docs/migrating-elections.md":         406,
	"docs/migrating-kazoo.md":             195,
	"docs/migrating-zk-lock.md":           375,
	"docs/multi-lock.md":                  212,
	"docs/mutex.md":                       330,
	"docs/options.md":                     950,
	"docs/messages.md":                    1044,
	"docs/operations.md":                  1392,
	"docs/owners.md":                      211,
	"docs/appendix/planted-defects.md":    964,
	"docs/read-write-lock.md":             208,
	"docs/prove.md":                       770,
	"docs/registration.md":                550,
	"docs/scope.md":                       960,
	"docs/security.md":                    1286,
	"docs/secure-cluster.md":              644,
	"docs/semaphore.md":                   536,
	"docs/servers.md":                     859,
	"docs/testing.md":                     759,
	"docs/appendix/track-record.md":       1149,
	"docs/serve.md":                       1010,
	"docs/appendix/README.md":             187,
	"docs/appendix/caching-shares.md":     276,
	"docs/appendix/large-fleets.md":       390,
	"docs/appendix/mechanisms.md":         624,
	"docs/appendix/models.md":             304,
	"docs/appendix/servers-tested.md":     154,
	"docs/appendix/kerberos-login.md":     249,
	"examples/README.md":                  320,

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
