package order

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/seqname"
)

const zkSession = 7

var (
	mutexRules = Rules{
		Excludes: func(seqname.Name, seqname.Name) bool { return true }, Ordered: true,
	}
	readWriteRules = Rules{
		Excludes: func(ahead, self seqname.Name) bool {
			return ahead.Seq != self.Seq && (ahead.Kind == "W-" || self.Kind == "W-")
		},
		Nested:  func(self seqname.Name) bool { return self.Kind == "W-" },
		Ordered: true,
	}
)

// A driver tells a queue facts in the shortest way, and checks it after each.
type driver struct {
	*testing.T
	*Queue
	epoch       Epoch
	czxid, last int64 // of the directory; pzxid
}

func newDriver(t *testing.T, r Rules) *driver {
	return &driver{T: t, Queue: New(r), czxid: 10, last: 10}
}

func (d *driver) check() {
	d.Helper()
	require.NoError(d, d.Queue.check())
}

// name reads "W-7" as a name: the text before the digits is the kind.
func name(short string) seqname.Name {
	at := strings.IndexAny(short, "0123456789")
	n := seqname.Name{Text: short, Kind: short[:at]}
	_, _ = fmt.Sscanf(short[at:], "%d", &n.Seq)
	return n
}

// create makes a member whose token is 100 plus its number.
func (d *driver) create(short string) *Member {
	d.Helper()
	n := name(short)
	d.Creating(n.Kind, zkSession)
	m := d.Created(Creation{
		Name: n, Session: zkSession, Czxid: 100 + int64(n.Seq), Epoch: d.epoch,
	})
	d.check()
	return m
}

// show tells a list that was asked for just now.
func (d *driver) show(names ...string) (missing []*Member) {
	d.Helper()
	return d.answer(d.Asking(d.epoch, false), names...)
}

func (d *driver) answer(a Stamp, names ...string) (missing []*Member) {
	d.Helper()
	d.last++
	l := Listing{Czxid: d.czxid, Pzxid: d.last}
	for _, n := range names {
		l.Names = append(l.Names, name(n))
	}
	missing, err := d.Listed(a, l)
	require.NoError(d, err)
	d.check()
	return missing
}

func (d *driver) confirm(m *Member) {
	d.Helper()
	d.Confirmed(m, d.epoch)
	d.check()
}

// gone tells what a watch did that was set just now.
func (d *driver) gone(short string) {
	d.Helper()
	d.Gone(d.Asking(d.epoch, false), name(short))
	d.check()
}

// leave removes a member at once.
func (d *driver) leave(m *Member) {
	d.Helper()
	d.Left(m, false)
	d.check()
	d.Removed(m, true)
	d.check()
}

// is requires a decision: "granted", "first" (granted with nobody ahead), "over", "list",
// "sync", "own", "read a b", "behind a", "local a"; a "+" behind it says Confirm.
func (d *driver) is(m *Member, want string) Decision {
	d.Helper()
	was := d.Decide(m, d.epoch)
	require.Equal(d, want, was.short())
	d.check()
	return was
}

func (d Decision) short() string {
	s := ""
	switch {
	case d.First:
		s = "first"
	case d.Granted:
		s = "granted"
	case d.Over:
		s = "over"
	case d.Sync:
		s = "sync"
	case d.Ask == List:
		s = "list"
	case d.Ask == ConfirmOwn:
		s = "own"
	case d.Ask == ReadAhead:
		s = "read"
		for _, n := range d.Reads {
			s += " " + n.Text
		}
	case d.Local != nil:
		s = "local " + d.Behind.Text
	default:
		s = "behind " + d.Behind.Text
	}
	if d.Confirm {
		s += "+"
	}
	return s
}

func TestAFreeQueue(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	require.True(t, d.isIdle())
	require.Equal(t, WithList, d.Creating("L-", zkSession))
	require.False(t, d.isIdle())
	a := d.Asking(0, false)
	m := d.Created(Creation{Name: name("L-1"), Session: zkSession})
	d.is(m, "list")
	require.True(t, d.Serves(a, m, 0), "the list behind the create")
	d.answer(a, "L-1")
	require.EqualValues(t, d.last, m.Token(), "nobody is behind")
	got := d.is(m, "first")
	require.Equal(t, ByList, got.By)
	d.Held(m, true)
	d.is(m, "first")
	d.leave(m)
	require.True(t, d.isIdle())
	mark, ok := d.Watermark()
	require.True(t, ok)
	require.Equal(t, Watermark{Seq: 1, Token: d.last}, mark)
	d.is(m, "over")
}

func TestAListThatOvertookTheCreate(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	d.create("L-1")
	dead := d.create("L-0")
	d.Left(dead, false)
	d.Creating("L-", zkSession)
	a := d.Asking(0, false)
	m := d.create("L-2")
	d.rules.Without = ByNeighbour
	require.Empty(t, d.answer(a, "L-1"), "it cannot prove that m is gone")
	d.is(m, "list")
	require.Equal(t, []*Member{m}, d.show("L-1"), "this one can")
	d.Lost(m)
	d.Removed(m, true)
	d.is(m, "over")
}

func TestATokenByAListOfBefore(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	d.create("L-1")
	d.show("L-1", "L-2", "L-3")
	for short, token := range map[string]int64{"L-2": 0, "L-3": d.last} {
		m := d.Created(Creation{Name: name(short), Session: zkSession})
		require.Equal(t, token, m.Token())
	}
}

func TestBehindAStranger(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-2")
	d.show("L-1", "L-2")
	got := d.is(m, "behind L-1+")
	require.Equal(t, 1, got.Ahead)
	require.NotEqual(t, ByNeighbour, got.By)
	d.confirm(m)
	d.is(m, "behind L-1")
	d.gone("L-1")
	got = d.is(m, "first")
	require.Equal(t, ByKnownList, got.By)
	d.Held(m, got.First)
	d.leave(m)
	mark, _ := d.Watermark()
	require.True(t, mark.MetStranger)
	require.Equal(t, WithList, d.Creating("L-", zkSession))
}

// A number that is not the next says that others use the queue, though nobody waits.
func TestWhoFindsANumberMissingHasMetAStranger(t *testing.T) {
	t.Parallel()
	for short, plan := range map[string]Plan{"L-2": WithDirectory, "L-3": WithList} {
		d := newDriver(t, mutexRules)
		d.LearnIncarnation(0, 10)
		d.Remember(Watermark{Seq: 1, Token: 101})
		m := d.create(short)
		d.show(short)
		d.is(m, "first")
		d.Held(m, true)
		d.leave(m)
		require.Equal(t, plan, d.Creating("L-", zkSession), short)
		d.NotCreated("L-")
		next := d.create(fmt.Sprint("L-", m.name.Seq+1))
		d.is(next, "first")
		d.Held(next, true)
		d.leave(next)
		require.Equal(t, WithDirectory, d.Creating("L-", zkSession), "it is met no more")
	}
}

// What is known of others is worth nothing unless the own znode is there.
func TestAnEventGrantsOnlyWhoIsConfirmed(t *testing.T) {
	t.Parallel()
	for what, spoil := range map[string]func(d *driver, m *Member){
		"never":         func(*driver, *Member) {},
		"fired":         func(d *driver, m *Member) { d.confirm(m); d.Unconfirmed(m) },
		"another epoch": func(d *driver, m *Member) { d.Confirmed(m, 1) },
		"a doubt":       func(d *driver, m *Member) { d.confirm(m); d.Doubt(m) },
		"order not kept": func(d *driver, m *Member) {
			d.rules.Ordered = false
			d.confirm(m)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t, mutexRules)
			m := d.create("L-2")
			d.show("L-1", "L-2")
			spoil(d, m)
			d.gone("L-1")
			d.is(m, "list")
			d.show("L-2")
			d.is(m, "first")
		})
	}
}

// Behind several strangers one has to list again, confirmed or not, unless very many are
// ahead.
func TestWhomAConfirmationServes(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		others []string
		ours   string
		useful bool
	}{
		"behind several":     {others: []string{"L-1", "L-2"}},
		"behind one of ours": {others: []string{"L-1"}, ours: "L-2", useful: true},
		"behind fewer than a small read is worth": {
			others: numbered(2*namesPerRead - 2),
		},
		"behind many": {others: numbered(2*namesPerRead - 1), useful: true},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t, mutexRules)
			all := append(c.others, "L-500")
			if c.ours != "" {
				d.create(c.ours)
				all = append(all, c.ours)
			}
			m := d.create("L-500")
			slices.Sort(all)
			d.show(all...)
			require.Equal(t, c.useful, d.Decide(m, d.epoch).Useful)
		})
	}
}

// Once the one beyond the blocker has gone, a list can show that only that is left.
func TestWhoIsBeyond(t *testing.T) {
	t.Parallel()
	unordered := mutexRules
	unordered.Ordered = false
	unknowing := mutexRules
	unknowing.Without = ByKnownList
	for what, c := range map[string]struct {
		rules  Rules
		others []string
		self   string
		beyond string
	}{
		"one ahead":   {mutexRules, []string{"L-1"}, "L-5", ""},
		"two ahead":   {mutexRules, []string{"L-1", "L-2"}, "L-5", "L-1"},
		"three ahead": {mutexRules, []string{"L-1", "L-2", "L-3"}, "L-5", "L-2"},
		"a list is short": {
			mutexRules, numbered(2*namesPerRead - 2), "L-500", "L-125",
		},
		"small reads do":       {mutexRules, numbered(2*namesPerRead - 1), "L-500", ""},
		"events prove nothing": {unordered, []string{"L-1", "L-2"}, "L-5", ""},
		"lists alone count":    {unknowing, []string{"L-1", "L-2"}, "L-5", ""},
		"a reader's writers": {
			readWriteRules, []string{"W-1", "R-2", "W-3", "R-4"}, "R-5", "W-1",
		},
		"a writer has to list": {readWriteRules, []string{"W-1", "W-2"}, "W-5", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t, c.rules)
			m := d.create(c.self)
			d.show(append(c.others, c.self)...)
			require.Equal(t, c.beyond, d.Decide(m, d.epoch).Beyond.Text)
		})
	}
}

// One ahead may wait for the one beyond.
func TestOnlyTheFirstOfAProcessLooksBeyond(t *testing.T) {
	t.Parallel()
	d := newDriver(t, readWriteRules)
	first, second := d.create("R-3"), d.create("R-5")
	d.show("W-1", "W-2", "R-3", "W-4", "R-5")
	require.Equal(t, "W-1", d.Decide(first, d.epoch).Beyond.Text)
	got := d.Decide(second, d.epoch)
	require.Equal(t, "W-4", got.Behind.Text)
	require.Empty(t, got.Beyond.Text)
}

// A member of an earlier session is no stranger: its Node tells when it goes.
func TestBeyondIsNoMember(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	d.create("L-1")
	m := d.Created(Creation{Name: name("L-3"), Session: zkSession + 1, Czxid: 103})
	d.show("L-1", "L-2", "L-3")
	got := d.Decide(m, d.epoch)
	require.Equal(t, "L-2", got.Behind.Text)
	require.Empty(t, got.Beyond.Text)
}

// numbered returns the names of n participants.
func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("L-%03d", i+1))
	}
	return names
}

func TestManyOfOneProcess(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	d.LearnIncarnation(0, 10)
	first := d.create("L-1")
	d.show("L-1")
	d.is(first, "first")
	d.Held(first, true)
	require.Equal(t, NoList, d.Creating("L-", zkSession))
	d.NotCreated("L-")
	require.Equal(t, WithList, d.Creating("L-", zkSession+1), "of another session")
	ms := []*Member{first}
	for i := 2; i <= 16; i++ {
		m := d.create(fmt.Sprint("L-", i))
		got := d.is(m, fmt.Sprint("local L-", i-1))
		require.Equal(t, i-1, got.Ahead)
		require.Equal(t, ByNeighbour, got.By)
		require.Same(t, ms[i-2], got.Local)
		ms = append(ms, m)
	}
	for i, m := range ms[:15] {
		d.Left(m, false)
		got := d.is(ms[i+1], "first")
		require.Equal(t, ByNumber, got.By)
		d.Held(ms[i+1], got.First)
		if i%2 == 0 {
			d.Removed(m, true)
		}
	}
}

// Numbers are worth nothing unless they are of one directory.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		change func(d *driver)
		want   string
	}{
		"next":          {func(*driver) {}, "first"},
		"no watch":      {func(d *driver) { d.LearnIncarnation(0, 0) }, "list"},
		"another epoch": {func(d *driver) { d.epoch++ }, "sync"},
		"recreated":     {func(d *driver) { d.LearnIncarnation(0, 102) }, "list"},
		"not ordered":   {func(d *driver) { d.rules.Ordered = false }, "list"},
		"switched off": {func(d *driver) {
			d.rules.Without = ByNumber
		}, "list"},
		"fresh": {func(d *driver) { d.rules.Fresh = true }, "list"},
		"may be nested": {func(d *driver) {
			d.rules.Nested = func(seqname.Name) bool { return true }
		}, "list"},
		"own token of before": {func(d *driver) { d.members[0].token = 9 }, "list"},
		"token not known":     {func(d *driver) { d.members[0].token = 0 }, "own"},
		"not next":            {func(d *driver) { d.mark.Seq = 0 }, "list"},
		"far":                 {func(d *driver) { d.mark.Seq = 3 }, "list"},
		"orphans":             {func(d *driver) { d.members[0].orphans = true }, "list"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t, mutexRules)
			d.LearnIncarnation(0, 10)
			d.Remember(Watermark{Seq: 1, Token: 101})
			m := d.create("L-2")
			c.change(d)
			d.is(m, c.want)
		})
	}
}

func TestWhatToSendWithACreate(t *testing.T) {
	t.Parallel()
	d := newDriver(t, readWriteRules)
	d.Remember(Watermark{Seq: 1, Token: 101})
	d.Remember(Watermark{Seq: 0, Token: 100}) // older
	require.Equal(t, WithList, d.Creating("W-", zkSession), "no number counts")
	require.Equal(t, NoList, d.Creating("R-", zkSession), "a writer is under way")
	d.NotCreated("W-")
	require.Equal(t, WithDirectory, d.Creating("R-", zkSession))
	d.Remember(Watermark{Seq: 2, Token: 103, MetStranger: true})
	require.Equal(t, WithList, d.Creating("R-", zkSession))
	for range 3 {
		d.NotCreated("R-")
		d.check()
	}
	require.True(t, d.isIdle())
}

func TestNumbersPassMembersThatHaveHandedOver(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		between func(d *driver, m *Member)
		want    string
	}{
		"gave up":           {func(d *driver, m *Member) { d.Left(m, false) }, "first"},
		"lost as it waited": {func(d *driver, m *Member) { d.Lost(m) }, "first"},
		"waits":             {func(*driver, *Member) {}, "local L-2"},
		"left in use": {func(d *driver, m *Member) {
			d.Held(m, true)
			d.Left(m, true)
		}, "list"},
		"in use no more": {func(d *driver, m *Member) {
			d.Held(m, true)
			d.Left(m, true)
			d.Left(m, false)
		}, "first"},
		"a hold was lost": {func(d *driver, m *Member) {
			d.Held(m, true)
			d.Lost(m)
			d.Left(m, false)
		}, "list"},
		"not a member": {func(d *driver, m *Member) {
			d.Left(m, false)
			d.Removed(m, true)
		}, "list"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t, mutexRules)
			d.LearnIncarnation(0, 10)
			d.Remember(Watermark{Seq: 1, Token: 101})
			b, m := d.create("L-2"), d.create("L-3")
			c.between(d, b)
			d.is(m, c.want)
		})
	}
}

func TestNumbersPassReaders(t *testing.T) {
	t.Parallel()
	under := func(d *driver, kind string) *Member {
		w := d.create("W-1")
		d.Held(w, true)
		r := d.Created(Creation{
			Name: seqname.Name{Text: kind + "1", Kind: kind, Seq: 1}, Under: w,
			Session: zkSession,
		})
		d.Left(w, false)
		return r
	}
	for what, c := range map[string]struct {
		ahead func(d *driver)
		want  string
	}{
		"nobody":             {func(d *driver) { d.leave(under(d, "R-")) }, "first"},
		"one under a writer": {func(d *driver) { under(d, "R-") }, "granted"},
		"one under a writer that has left": {func(d *driver) {
			d.Left(under(d, "R-"), false)
		}, "first"},
		"one that excludes": {func(d *driver) { under(d, "W-") }, "local W-1"},
		"one that excludes is lost": {func(d *driver) {
			r := under(d, "W-")
			d.Held(r, false)
			d.Lost(r)
		}, "list"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t, readWriteRules)
			d.LearnIncarnation(0, 10)
			c.ahead(d)
			m := d.create("R-2")
			d.is(m, c.want)
		})
	}

	d := newDriver(t, readWriteRules)
	d.LearnIncarnation(0, 10)
	d.Remember(Watermark{Seq: 0, Token: 100})
	under(d, "R-")
	d.mark = Watermark{Seq: 0, Token: 100}
	require.Equal(t, 1, d.is(d.create("R-2"), "granted").Ahead)

	d = newDriver(t, readWriteRules)
	d.LearnIncarnation(0, 10)
	d.Remember(Watermark{Seq: 1, Token: 101})
	a, m := d.create("R-2"), d.create("R-3")
	d.is(m, "granted")
	a.token = 9
	d.is(m, "list") // a is of a former directory
	a.token = 102
	d.Left(a, false)
	d.is(m, "first")
}

func TestStrangersAndMembersMixed(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	var a, b *Member
	names := []string{}
	for i := range 1000 {
		names = append(names, fmt.Sprint("L-", i))
		switch i {
		case 400:
			a = d.create(names[i])
		case 900:
			b = d.create(names[i])
		}
	}
	d.show(names...)
	require.Equal(t, 400, d.is(a, "behind L-399").Ahead)
	require.Equal(t, 401, d.is(b, "local L-400").Ahead)
	d.leave(a)
	require.Equal(t, 899, d.is(b, "behind L-899").Ahead, "no new list")
	d.confirm(b)
	d.gone("L-899")
	d.is(b, "list")
	d.show(append(slices.Clone(names[:10]), names[900:]...)...)
	d.is(b, "behind L-9")
}

func TestSmallReads(t *testing.T) {
	t.Parallel()
	d := newDriver(t, readWriteRules)
	const size = 5 * namesPerRead
	var names []string
	for i := range size {
		kind := "R-"
		if i < 5 || i == 100 {
			kind = "W-"
		}
		names = append(names, fmt.Sprint(kind, i))
	}
	m := d.create("R-300")
	d.show(names...)
	d.is(m, "behind W-100")
	d.gone("W-100")
	d.is(m, "list")
	d.confirm(m)
	d.is(m, "read W-4 W-3 W-2 W-1 W-0")
	d.rules.Without = SmallReads
	d.is(m, "list")
	d.rules.Without = 0

	a := d.Asking(0, false)
	d.There(a, name("W-1"))
	for _, n := range []string{"W-4", "W-2", "W-3"} {
		d.Gone(a, name(n))
		d.check()
	}
	d.There(a, name("W-0"))
	d.is(m, "behind W-1")
	d.gone("W-1")
	d.is(m, "behind W-0")
	d.gone("W-0")
	require.False(t, d.is(m, "granted").First, "readers are ahead")
}

func TestReadsPassThoseKnownToHaveGone(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	d.rules.Without = ByNeighbour
	var names []string
	for i := range 5 * namesPerRead {
		names = append(names, fmt.Sprint("L-", i))
	}
	early := d.Asking(0, false)
	own, m := d.create("L-2"), d.create("L-5")
	d.answer(early, names...)
	d.confirm(m)
	d.gone("L-0")
	d.Left(own, false)
	d.gone("L-4")
	d.is(m, "read L-3 L-1")
}

func TestOneLeftIsReadByItsWatch(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-3")
	d.show("L-1", "L-2", "L-3")
	d.is(m, "behind L-2")
	d.confirm(m)
	d.gone("L-2")
	d.is(m, "behind L-1")
	d.There(d.Asking(0, false), name("L-1"))
	d.is(m, "behind L-1")
	d.gone("L-1")
	d.is(m, "first")
}

// Of two that have gone, the one that was told last counts: a read at the time of its
// question has shown the next.
func TestTwoGoneWithAReadBetween(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-4")
	d.show("L-1", "L-2", "L-3", "L-4")
	before, read := d.Asking(0, false), d.Asking(0, false)
	d.Gone(before, name("L-2"))
	d.There(read, name("L-1"))
	d.Gone(read, name("L-3"))
	d.check()
	d.is(m, "behind L-1+")
}

func TestAReaderUnderAWriter(t *testing.T) {
	t.Parallel()
	d := newDriver(t, readWriteRules)
	w := d.create("W-1")
	d.show("W-1")
	d.is(w, "first")
	d.Held(w, true)
	next := d.create("W-2")
	d.is(next, "local W-1")
	old := d.Asking(0, false)
	r := d.Created(Creation{
		Name: seqname.Name{Text: "R-1", Kind: "R-", Seq: 1}, Session: zkSession, Under: w,
	})
	require.Equal(t, w.Token(), r.Token())
	d.is(r, "list")
	d.show("R-1", "W-1", "W-2")
	d.is(r, "granted")
	d.Held(r, false)
	d.is(next, "local W-1")
	d.Left(w, false)
	d.is(next, "local R-1")
	d.answer(old, "W-1", "W-2") // late, and it does not show r
	d.is(next, "local R-1")
	d.leave(r)
	d.Removed(w, true)
	d.is(next, "list")
	d.show("W-2")
	d.is(next, "first")
}

// A grant by number does not look at names. Whoever has joined since with a number that
// is in use, made by hand or by servers that have come to differ, has not gone by that:
// those behind whose list shows it wait for it.
func TestWhoHasTheFirstsNumberHasNotGone(t *testing.T) {
	t.Parallel()
	for _, watched := range []bool{false, true} {
		d := newDriver(t, mutexRules)
		a := d.create("L-1")
		d.show("L-1")
		d.is(a, "first")
		b := d.create("L-2")
		d.LearnIncarnation(d.epoch, d.czxid)
		d.Held(a, true)
		d.leave(a)
		d.is(b, "first")
		c := d.create("L-3")
		d.show("A-2", "L-2", "L-3")
		d.Held(b, true)
		d.leave(b)
		d.confirm(c)
		if !watched {
			d.LearnIncarnation(d.epoch, 0)
		}
		d.is(c, "behind A-2")
		d.gone("A-2")
		d.is(c, "first")
	}
}

// A list from before the writer has gone need not show who was nested under it.
func TestNobodyIsFirstPastAWriterThatHasGone(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(d *driver, w *Member){
		"gone":         func(d *driver, _ *Member) { d.gone("W-1") },
		"ours":         func(d *driver, w *Member) { d.Left(w, false) },
		"gone at last": func(d *driver, w *Member) { d.leave(w) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t, readWriteRules)
			w, m := d.create("W-1"), d.create("R-2")
			d.show("W-1", "R-2")
			d.confirm(m)
			end(d, w)
			d.is(m, "granted")
			d.show("R-2")
			d.is(m, "first")
		})
	}
}

func TestAReaderWhoseWriterIsLost(t *testing.T) {
	t.Parallel()
	d := newDriver(t, readWriteRules)
	w := d.create("W-1")
	d.Held(w, true)
	r := d.Created(Creation{
		Name: seqname.Name{Text: "R-1", Kind: "R-", Seq: 1}, Session: zkSession, Under: w,
	})
	require.Equal(t, []*Member{w}, d.show("R-1"))
	d.is(r, "list")
	w.session++
	d.is(r, "over")
	w.session--
	d.show("R-1", "W-1")
	d.Gone(d.Asking(0, false), w.name)
	d.is(r, "over")
}

// A stranger's reader under its writer appears ahead of one that waits.
func TestAWriterBehindAStrangersWriter(t *testing.T) {
	t.Parallel()
	d := newDriver(t, readWriteRules)
	m := d.create("W-2")
	d.show("W-1", "W-2")
	d.is(m, "behind W-1")
	d.confirm(m)
	old := d.Asking(0, false)
	d.gone("W-1")
	d.is(m, "list")
	d.answer(old, "W-1", "W-2")
	d.is(m, "list")
	d.show("R-1", "W-2")
	d.is(m, "behind R-1")
}

// A list from before a member of this process ended may not show who is nested under it.
func TestAWriterPassesNobodyWhoEndedAfterTheList(t *testing.T) {
	t.Parallel()
	d := newDriver(t, readWriteRules)
	d.rules.Without = ByNeighbour
	w, m := d.create("W-1"), d.create("W-2")
	d.Held(w, true)
	a := d.Asking(0, false)
	d.Left(w, false)
	d.answer(a, "W-1", "W-2")
	d.is(m, "list")
	d.show("W-1", "W-2")
	d.is(m, "first")
}

func TestReconnect(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-2")
	d.show("L-1", "L-2")
	d.confirm(m)
	old := d.Asking(0, false)
	d.epoch++
	d.is(m, "sync")
	d.answer(old, "L-2")
	d.is(m, "sync")
	unsynced := d.Asking(d.epoch, false)
	require.False(t, d.Serves(unsynced, m, d.epoch))
	require.Empty(t, d.answer(unsynced, "L-1"), "the server may lag")
	d.is(m, "sync")
	synced := d.Asking(d.epoch, true)
	require.True(t, d.Serves(synced, m, d.epoch))
	d.answer(synced, "L-1", "L-2")
	d.is(m, "behind L-1+")
	d.gone("L-1")
	d.is(m, "list")
	require.True(t, d.Serves(d.Asking(d.epoch, false), m, d.epoch))
}

// A list without a sync proves nothing of the new server by a member of before, which a
// server that lags shows as well, nor by a create that it has overtaken.
func TestAListOfAServerThatLagsMissesNobody(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	d.create("L-1")
	d.create("L-2")
	d.epoch++
	require.Empty(t, d.show("L-1"))
	overtaken := d.Asking(d.epoch, false)
	d.create("L-3")
	require.Empty(t, d.answer(overtaken, "L-1"))
}

func TestTheBlockerIsTheNearestThatExcludes(t *testing.T) {
	t.Parallel()
	excludes := readWriteRules.Excludes
	ahead := []seqname.Name{name("W-1"), name("W-2"), name("R-3")}
	require.Equal(t, 1, excludes.Blocker(ahead, name("R-4")))
	require.Equal(t, 2, excludes.Blocker(ahead, name("W-4")))
	require.Equal(t, 0, excludes.Blocker(ahead[:1], name("R-4")))
	require.Equal(t, -1, excludes.Blocker(ahead[2:], name("R-4")))
	require.Equal(t, -1, excludes.Blocker(nil, name("R-4")))
}

// A participant that was ahead of the blocker says nothing of those between the two.
func TestWhoGoesAheadOfTheBlockerChangesNothing(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-3")
	d.show("L-1", "L-2", "L-3")
	d.gone("L-1")
	d.is(m, "behind L-2+")
}

func TestAShortListIsReadAgain(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-4")
	d.show("L-1", "L-2", "L-3", "L-4")
	d.confirm(m)
	d.gone("L-3")
	d.is(m, "list")
}

func TestAReadOfOneThatIsNotListedChangesNothing(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-2")
	d.show("L-1", "L-2")
	d.There(d.Asking(d.epoch, false), name("L-9"))
	d.check()
	d.is(m, "behind L-1+")
}

// A create that the new server has answered proves as much as a sync.
func TestACreateAfterAReconnectSettles(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-2")
	d.epoch++
	behind := d.Asking(d.epoch, false)
	d.create("L-3")
	d.is(m, "list")
	require.Equal(t, []*Member{m}, d.answer(behind, "L-1", "L-3"))
}

// A list that was under way can show a directory that another one has shown to be gone.
func TestWhoHasGoneIsRememberedOverAnotherIncarnation(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	d.rules.Without = ByNumber
	a, b := d.create("L-1"), d.create("L-2")
	d.show("L-1", "L-2")
	without, with := d.Asking(d.epoch, false), d.Asking(d.epoch, false)
	d.leave(a)
	_, err := d.Listed(without, Listing{})
	require.NoError(t, err)
	d.answer(with, "L-1", "L-2")
	d.confirm(b)
	d.is(b, "first")
}

func TestADeletedAndRecreatedDirectory(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	old := d.create("L-2")
	d.show("L-1", "L-2")
	d.is(old, "behind L-1+")
	watched := d.Asking(0, false)

	d.czxid, d.last = 300, 300
	m := d.create("L-5")
	d.confirm(m)
	require.Equal(t, []*Member{old}, d.show("L-1", "L-5"))
	d.Lost(old)
	d.Removed(old, true)
	d.Gone(watched, name("L-1")) // which was another znode
	d.is(m, "behind L-1")
	require.Empty(t, d.show("L-1", "L-5"))
	d.is(m, "behind L-1")

	missing, err := d.Listed(d.Asking(0, false), Listing{})
	require.NoError(t, err)
	require.Equal(t, []*Member{m}, missing, "the directory is gone")
}

func TestAReadBringsBackWhoeverIsThere(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-2")
	d.show("L-1", "L-2")
	d.confirm(m)
	before := d.Asking(0, false)
	d.gone("L-1")
	d.There(before, name("L-1"))
	d.check()
	d.is(m, "first")
	d.There(d.Asking(0, false), name("L-1"))
	d.check()
	d.is(m, "behind L-1")
}

func TestWhichListServes(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-2")
	a := d.Asking(0, false)
	require.True(t, d.Serves(a, m, 0))
	require.False(t, d.Serves(a, m, 1))
	d.Doubt(m)
	require.False(t, d.Serves(a, m, 0))
	a = d.Asking(0, false)
	d.rules.Fresh = true
	require.True(t, d.Serves(a, m, 0))
	d.LearnIncarnation(0, 0)
	require.False(t, d.Serves(a, m, 0))
}

func TestWhoHasEndedIsNotConfirmed(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-2")
	d.Left(m, true)
	d.confirm(m)
}

// What was told after a list was asked for stays true of it.
func TestALateListBringsNobodyBack(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-3")
	d.show("L-1", "L-2", "L-3")
	late := d.Asking(0, false)
	d.gone("L-2")
	d.answer(late, "L-1", "L-2", "L-3")
	d.confirm(m)
	d.is(m, "behind L-1")
	d.show("L-1", "L-2", "L-3") // it was there after all
	d.is(m, "behind L-2")
}

func TestAnOrphanIsLookedForFirst(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	a := d.create("L-1")
	early := d.Asking(0, false)
	d.answer(early, "L-1", "L-2", "L-3")
	m := d.Created(Creation{Name: name("L-3"), Session: zkSession, Orphans: true})
	d.is(m, "list")
	d.show("L-1", "L-2", "L-3")
	d.is(m, "behind L-2")
	d.confirm(m)
	d.gone("L-2")
	got := d.is(m, "local L-1")
	require.NotEqual(t, ByNeighbour, got.By)
	d.leave(a)
	d.is(m, "first")
}

func TestWhatIsLeftOfADeadMember(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		end  func(d *driver, m *Member)
		want string
	}{
		"left": {func(d *driver, m *Member) { d.Left(m, false) }, "first"},
		"left in use": {func(d *driver, m *Member) {
			d.Left(m, true)
		}, "behind L-1"},
		"lost": {func(d *driver, m *Member) { d.Lost(m) }, "behind L-1"},
		"its znode gone": {func(d *driver, m *Member) {
			d.Lost(m)
			d.gone("L-1")
		}, "first"},
		"known to be gone": {func(d *driver, _ *Member) { d.gone("L-1") }, "first"},
		"removed": {func(d *driver, m *Member) {
			d.Lost(m)
			d.Removed(m, true)
		}, "first"},
		"of another session": {func(_ *driver, m *Member) {
			m.session++
		}, "behind L-1"},
		"left in another session": {func(d *driver, m *Member) {
			m.session++
			d.Left(m, false)
		}, "behind L-1"},
		"its delete failed": {func(d *driver, m *Member) {
			d.Left(m, false)
			d.Removed(m, false)
		}, "behind L-1"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			d := newDriver(t, mutexRules)
			a, m := d.create("L-1"), d.create("L-2")
			d.show("L-1", "L-2")
			d.confirm(m)
			d.is(a, "first")
			d.Held(a, false) // so that no watermark helps
			c.end(d, a)
			d.is(m, c.want)
		})
	}
}

func TestFreshTrustsOnlyNewLists(t *testing.T) {
	t.Parallel()
	r := mutexRules
	r.Fresh = true
	d := newDriver(t, r)
	require.Equal(t, WithList, d.Creating("L-", zkSession))
	a, m := d.create("L-1"), d.create("L-2")
	require.Equal(t, WithList, d.Creating("L-", zkSession))
	d.show("L-1", "L-2")
	d.confirm(m)
	d.is(m, "local L-1")
	d.Left(a, false)
	d.is(m, "list")
	d.show("L-1", "L-2")
	d.is(m, "behind L-1")
	d.Removed(a, true)
	d.is(m, "list")
	d.show("L-2")
	d.is(m, "first")
}

// Whatever is switched off, the rest suffices.
func TestWithoutSources(t *testing.T) {
	t.Parallel()
	for without, want := range map[Sources]string{
		0:                                   "local L-2 by neighbour, first",
		ByNumber:                            "local L-2 by neighbour, first",
		ByNeighbour:                         "local L-2, first",
		ByNumber | ByKnownList:              "local L-2 by neighbour, list",
		ByKnownList:                         "local L-2 by neighbour, first",
		^Sources(0):                         "local L-2, list",
		ByNumber | ByNeighbour:              "local L-2, first",
		SmallReads | ByNumber:               "local L-2 by neighbour, first",
		ByNeighbour | ByNumber | SmallReads: "local L-2, first",
	} {
		r := mutexRules
		r.Without = without
		d := newDriver(t, r)
		d.LearnIncarnation(0, 10)
		a, m := d.create("L-2"), d.create("L-3")
		d.show("L-2", "L-3")
		d.confirm(m)
		d.is(a, "first")
		d.Held(a, true)
		got := d.Decide(m, 0)
		was := got.short()
		if got.By == ByNeighbour {
			was += " by neighbour"
		}
		d.Left(a, false)
		require.Equal(t, want, was+", "+d.Decide(m, 0).short(), "%b", without)
	}
}

func TestAnUncertainOrderIsRefused(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-3")
	d.show("L-3")
	_, err := d.Listed(d.Asking(0, false), Listing{
		Names: []seqname.Name{name("L-3"), name("L-1073741827")},
		Czxid: d.czxid, Pzxid: 99,
	})
	require.ErrorContains(t, err, "L-1073741827")
	d.check()
	d.is(m, "first")
}

// The counter is signed and wraps.
func TestNumbersOverTheWrap(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	d.LearnIncarnation(0, 10)
	at := func(seq int32) seqname.Name {
		return seqname.Name{Text: fmt.Sprint("L-", seq), Kind: "L-", Seq: seq}
	}
	d.Remember(Watermark{Seq: 1<<31 - 2, Token: 11})
	b := d.Created(Creation{Name: at(1<<31 - 1), Session: zkSession, Czxid: 12})
	m := d.Created(Creation{Name: at(-1 << 31), Session: zkSession, Czxid: 13})
	d.check()
	require.Equal(t, at(1<<31-1), d.Decide(m, 0).Behind)
	d.Left(b, false)
	d.is(m, "first")
}

// Lists may be told late and in any order.
func TestWhichListIsNewer(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		epoch Epoch
		asked moment
		pzxid int64
		newer bool
	}{
		"a later change":                      {2, 8, 51, true},
		"a later change, asked for before":    {2, 3, 51, true},
		"an earlier change":                   {2, 8, 49, false},
		"an earlier change, asked for before": {2, 3, 49, false},
		// by a server of another mind, or of no directory
		"an earlier change, asked for after the answer": {2, 11, 49, true},
		"the same change":                   {2, 8, 50, true},
		"the same change, asked for before": {2, 3, 50, false},
		"another epoch":                     {3, 8, 49, true},
		"an epoch that is over":             {1, 11, 51, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := snapshot{asked: 5, told: 10, epoch: 2, pzxid: 50}
			a, l := Stamp{at: c.asked, epoch: c.epoch}, Listing{Pzxid: c.pzxid}
			require.Equal(t, c.newer, s.isNewer(a, l))
			require.True(t, (&snapshot{}).isNewer(a, l))
		})
	}
}

func TestAnOlderListIsIgnored(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-3")
	old := d.Asking(0, false)
	d.show("L-2", "L-3")
	_, err := d.Listed(old, Listing{
		Names: []seqname.Name{name("L-1"), name("L-2"), name("L-3")},
		Czxid: d.czxid, Pzxid: 10,
	})
	require.NoError(t, err)
	require.Equal(t, 1, d.is(m, "behind L-2+").Ahead)
}

func TestWhatALateListKeeps(t *testing.T) {
	t.Parallel()
	was := snapshot{czxid: 1}
	was.entries = []entry{
		{Name: name("L-1"), seen: 5},
		{Name: name("L-2"), seen: 9},
		{Name: name("L-3"), seen: 5, gone: 9, asked: 6},
		{Name: name("L-4"), seen: 5, gone: 6},
		{Name: name("L-5"), seen: 9, gone: 6},
	}
	l := Listing{Czxid: 1, Names: []seqname.Name{
		name("L-0"), name("L-1"), name("L-2"), name("L-3"), name("L-4"), name("L-5"),
	}}
	is := newSnapshot(Stamp{at: 7}, l, 10)
	is.keep(&was)
	require.Equal(t, []entry{
		{Name: name("L-0"), seen: 7},
		{Name: name("L-1"), seen: 7},
		{Name: name("L-2"), seen: 9},
		{Name: name("L-3"), seen: 7, gone: 9, asked: 6},
		{Name: name("L-4"), seen: 7},
		{Name: name("L-5"), seen: 9},
	}, is.entries)
	l.Czxid = 2
	is = newSnapshot(Stamp{at: 7}, l, 10)
	is.keep(&was)
	for _, e := range is.entries {
		require.Zero(t, e.gone, "the directory was recreated")
	}
}

func TestFollowed(t *testing.T) {
	t.Parallel()
	d := newDriver(t, readWriteRules)
	m := d.create("R-1")
	require.False(t, d.Followed(m))
	d.show("R-1", "R-2")
	require.False(t, d.Followed(m))
	d.show("R-1", "R-2", "W-3")
	require.True(t, d.Followed(m))
}

func TestDecideAllocatesNothing(t *testing.T) {
	d := newDriver(t, mutexRules)
	d.LearnIncarnation(0, 10)
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprint("L-", i))
	}
	behind, local := d.create("L-990"), d.create("L-995")
	d.show(names...)
	d.confirm(behind)
	for what, decide := range map[string]func() Decision{
		"behind a stranger": func() Decision { return d.Decide(behind, 0) },
		"behind a member":   func() Decision { return d.Decide(local, 0) },
	} {
		require.Zero(t, testing.AllocsPerRun(100, func() { decide() }), what)
	}
	d.gone("L-989")
	require.Equal(t, "list", d.Decide(behind, 0).short())
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Decide(behind, 0) }))
	d.show("L-990", "L-995")
	require.Equal(t, "first", d.Decide(behind, 0).short())
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Decide(behind, 0) }))
	d.Held(behind, true)
	d.Left(behind, false)
	d.Remember(Watermark{Seq: 994, Token: 1 << 40})
	d.confirm(local)
	require.Equal(t, ByNumber, d.Decide(local, 0).By)
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Decide(local, 0) }))
}

func TestALateListBringsBackNobodyItShowsAlone(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-5")
	d.show("L-3", "L-5")
	watched := d.Asking(0, false)
	late := d.Asking(0, false)
	own := d.create("L-2")
	d.leave(own)
	d.Gone(watched, name("L-4"))
	d.check()
	d.answer(late, "L-2", "L-3", "L-4", "L-5")
	got := d.is(m, "list") // L-4 was told gone, so it is not known who is left
	require.Zero(t, got.Behind)
	d.confirm(m)
	d.is(m, "behind L-3")
	d.show("L-2", "L-3", "L-4", "L-5")
	d.is(m, "behind L-4")
}

func TestFewAbsenteesAreRemembered(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	for i := range 3 * absentAtMost {
		d.leave(d.create(fmt.Sprint("L-", i)))
	}
	require.Len(t, d.absent, absentAtMost)
	m := d.create("L-1000")
	d.show("L-1000")
	d.is(m, "first")
	require.Empty(t, d.absent)
}

// Numbers of two directories can form a cycle.
func TestMembersOfTwoDirectoriesAreInOrder(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	old := d.Created(Creation{
		Name:    seqname.Name{Text: "L--2147483647", Kind: "L-", Seq: -1<<31 + 1},
		Session: zkSession,
	})
	two, zero := d.create("L-1"), d.create("L-0")
	d.check()
	d.is(two, "local L-0")
	d.Lost(old)
	d.Removed(old, true)
	d.check()
	d.is(two, "local L-0")
	late := d.Created(Creation{Name: old.name, Session: zkSession})
	require.Equal(t, []*Member{zero, two, late}, d.members)
	three := d.create("L-4")
	require.Equal(t, []*Member{late, zero, two, three}, d.members)
	require.Equal(t, []*Member{late, three}, d.show("L-0", "L-1"))
	d.Lost(late)
	d.is(zero, "first")
	d = newDriver(t, mutexRules)
	four := d.create("L-4")
	late = d.Created(Creation{Name: old.name, Session: zkSession})
	three = d.create("L-3")
	require.Equal(t, []*Member{late, three, four}, d.members)
}

// Whether a member is the next in line, as far as is known: nobody but its blocker is in
// its way.
func TestWhoIsNext(t *testing.T) {
	t.Parallel()
	d := newDriver(t, mutexRules)
	m := d.create("L-5")
	d.show("L-1", "L-2", "L-3", "L-5")
	require.False(t, d.Decide(m, d.epoch).Next)
	d.show("L-2", "L-3", "L-5")
	require.False(t, d.Decide(m, d.epoch).Next)
	d.show("L-3", "L-5")
	require.True(t, d.Decide(m, d.epoch).Next)

	// Behind one of this process, which waits, then holds.
	behind := d.create("L-6")
	require.False(t, d.Decide(behind, d.epoch).Next)
	d.show("L-5", "L-6")
	d.is(m, "first")
	d.Held(m, true)
	require.True(t, d.Decide(behind, d.epoch).Next)
}

// A reader waits for writers only.
func TestAReaderBehindReadersIsNext(t *testing.T) {
	t.Parallel()
	d := newDriver(t, readWriteRules)
	m := d.create("R-4")
	d.show("W-1", "R-2", "R-3", "R-4")
	require.True(t, d.Decide(m, d.epoch).Next)
	d.show("W-0", "W-1", "R-2", "R-3", "R-4")
	require.False(t, d.Decide(m, d.epoch).Next)
}
