package seqname

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	curator = "_c_0b2d2e5c-3b0b-4a0f-8f0b-1e6f1e7a9c55-"
	zkLock  = "_c_0b2d2e5c3b0b4a0f8f0b1e6f1e7a9c55-"
)

var (
	mutexKinds = []string{"lock-"}
	allKinds   = []string{"lock-", "__READ__", "__WRIT__"}
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Name{
		curator + "lock-0000000007": {Kind: "lock-", Seq: 7},
		zkLock + "lock-0000000000":  {Kind: "lock-", Seq: 0},
		"lock-2147483647":           {Kind: "lock-", Seq: math.MaxInt32},
		// 11 characters: as %010d prints it
		"lock--2147483648":              {Kind: "lock-", Seq: math.MinInt32},
		"lock--000000001":               {Kind: "lock-", Seq: -1},
		curator + "__READ__0000000012":  {Kind: "__READ__", Seq: 12},
		curator + "__WRIT__-2147483648": {Kind: "__WRIT__", Seq: math.MinInt32},
		"lock-lock-0000000003":          {Kind: "lock-", Seq: 3},
		// what stands in front does not matter
		"__READ__lock-0000000003": {Kind: "lock-", Seq: 3},
	} {
		want.Text = text
		got, ok := Parse(text, allKinds)
		require.True(t, ok, text)
		require.Equal(t, want, got)
	}
}

func TestNumberIsAsTheServerPrintedIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		curator + "lock-0000000007": "0000000007",
		"lock-lock--2147483648":     "-2147483648",
	} {
		n, ok := Parse(text, allKinds)
		require.True(t, ok, text)
		require.Equal(t, want, n.Number())
	}
}

func TestNobodyIsBeforeItself(t *testing.T) {
	t.Parallel()
	first, second := Name{Text: "a", Seq: 1}, Name{Text: "b", Seq: 1}
	require.True(t, first.Before(second))
	require.False(t, second.Before(first))
	require.False(t, first.Before(first))
}

// A1_13 and A2_4 of docs/appendix/hazards.md: an unrelated znode in the directory made
// every acquire fail, or wait for it.
func TestParseIgnoresStrangers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "-", "lock", "lock-", "0000000007", "000-config", "zzz-config", "_c_",
		"_c_short", "lock-7", "lock-000000007", "lock-00000000007", "lock-2147483648",
		"lock--2147483649", "lock--0000000007", "lock-+000000001", "lock-0x00000001",
		"lock-00000_0001", "lock-0000000 07", "lock-٠٠٠٠٠٠٠٠٠٧", "lock-0000000007x",
		"LOCK-0000000007", "lock-000000000-", "lock_0000000007", "-0000000007",
		"lease-0000000007", curator + "lock-", curator + "__READ__0000000007",
	} {
		_, ok := Parse(text, mutexKinds)
		require.False(t, ok, text)
	}
	_, ok := Parse("lock-0000000007", nil)
	require.False(t, ok)
}

func TestSort(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"not by the text in front": {
			"z-lock-0000000001", "_c_b-lock-0000000002", "_c_a-lock-0000000010",
			"lock-0000000100",
		},
		"kinds mixed": {
			"b-__WRIT__0000000001", "a-__READ__0000000002", "lock-0000000003",
		},
		"over the wrap (ZOOKEEPER-2944)": {
			"lock-2147483646", "lock-2147483647", "lock--2147483648", "lock--2147483647",
		},
		"over zero": {
			"lock--000000002", "lock--000000001", "lock-0000000000", "lock-0000000001",
		},
		"equal numbers, by text": {
			"a-__READ__0000000005", "a-__WRIT__0000000005", "b-__READ__0000000005",
		},
		"the widest window": {
			"lock--000000001", "lock-0000000000", "lock-2147483646",
		},
		"the widest, over 2^31-1": {
			"lock-0000000001", "lock-2147483647", "lock--2147483648",
		},
		"nobody": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				children := append([]string{"config", "lock-", "_c_"}, want...)
				rand.Shuffle(len(children), swap(children))
				require.Equal(t, want, textsOf(Participants(children, allKinds)))
			}
		})
	}
}

func TestSortKeepsItsArgument(t *testing.T) {
	t.Parallel()
	children := []string{"lock-0000000002", "lock-0000000001"}
	Participants(children, mutexKinds)
	require.Equal(t, []string{"lock-0000000002", "lock-0000000001"}, children)
}

func swap[T any](s []T) func(i, j int) {
	return func(i, j int) { s[i], s[j] = s[j], s[i] }
}

func textsOf(names []Name) []string {
	found := make([]string, 0, len(names))
	for _, n := range names {
		found = append(found, n.Text)
	}
	return found
}

// participant says in another way than the code what a participant's name is.
var participant = regexp.MustCompile(
	`(?s)^.*(lock-|__READ__|__WRIT__)([0-9]{10}|-[1-9][0-9]{9}|-[0-9]{9})$`)

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", "lock-0000000001", "lock-+000000001", "lock--2147483648", "lock-2147483648",
		curator + "__READ__0000000002", zkLock + "lock-0000000003", "__WRIT__-000000009",
		"lock--", "lock--0000000000", "lock-lock-000000001", "\xff\x00lock-0000000001",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := Parse(text, allKinds)
		var want Name
		m := participant.FindStringSubmatch(text)
		if m != nil {
			if seq, err := strconv.ParseInt(m[2], 10, 32); err == nil {
				want = Name{Text: text, Kind: m[1], Seq: int32(seq)}
			}
		}
		require.Equal(t, want, name, "%q", text)
		require.Equal(t, want.Kind != "", ok, "%q", text)

		if ok {
			require.Equal(t, []Name{name}, Participants([]string{text}, allKinds))
		} else {
			require.Empty(t, Participants([]string{text}, allKinds),
				"%q stands in the queue", text)
		}
	})
}

// FuzzSort makes znodes as a server does whose signed counter wraps, each later by some
// number of creates than the first, and wants them back in the order in which they were
// made, whatever order they are listed in.
func FuzzSort(f *testing.F) {
	f.Add(int32(0), "config", uint64(1), []byte{0, 0, 0, 1, 0, 0, 0, 2})
	f.Add(int32(math.MaxInt32), "lock-", uint64(2),
		[]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add(int32(-1), "lock-99999999999", uint64(3),
		[]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Add(int32(math.MinInt32), "_c_", uint64(4),
		[]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0})
	f.Fuzz(func(
		t *testing.T, first int32, stranger string, seed uint64, raw []byte,
	) {
		type made struct {
			after uint32 // how many creates after the first: below 2^31
			text  string
		}
		shuffle := rand.New(rand.NewPCG(seed, 0))
		var nodes []made
		for ; len(raw) >= 4; raw = raw[4:] {
			after := binary.BigEndian.Uint32(raw) &^ (1 << 31)
			kind := allKinds[shuffle.IntN(len(allKinds))]
			number := int32(uint32(first) + after)
			text := fmt.Sprintf("%x-%s%010d", shuffle.Uint64(), kind, number)
			nodes = append(nodes, made{after, text})
		}
		slices.SortFunc(nodes, func(a, b made) int {
			return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.text, b.text))
		})
		want := make([]string, 0, len(nodes))
		for _, n := range nodes {
			want = append(want, n.text)
		}
		children := slices.Clone(want)
		if _, ok := Parse(stranger, allKinds); !ok {
			children = append(children, stranger)
		}
		shuffle.Shuffle(len(children), swap(children))
		require.Equal(t, want, textsOf(Participants(children, allKinds)))
	})
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"0000000007", "-000000007", "-2147483648"} {
		name, ok := Parse(curator+"lock-"+number, mutexKinds)
		require.True(t, ok)
		require.Equal(t, number, name.Number())
	}
}
