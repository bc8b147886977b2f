package pages_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

var update = flag.Bool("update", false, "draw the pictures of the pages anew")

// A stage has processes and a server, in virtual time, and records what they say.
type stage struct {
	t       *testing.T
	cluster *zktest.Cluster
	clients []*recipes.Client

	mu      sync.Mutex // guards picture
	picture picture
	rolling bool // what is said is recorded
}

const (
	dir     = "/locks/report"
	oneWay  = time.Millisecond
	moments = 8 * oneWay // for which a lock is held: long enough to see it, and short
	warmer  = 2          // the client that makes the directories, and is in no picture
)

// A scene is played once by each call. The list that a process sends right behind its
// create can overtake it, and is sent again: so not every play looks the same.
type scene func(t *testing.T) drawing

// plays is how often a scene is played to draw what is seen most often.
const plays = 12

// enough plays for one of them to look as the picture does, even under the race detector,
// which shuffles what is sent.
const enough = 200

// A drawing is a picture with each palette, by the suffix of its file.
type drawing map[string][]byte

// drawn draws a picture with each palette.
func drawn(svg func(palette) []byte) drawing {
	d := drawing{}
	for _, colors := range palettes {
		d[colors.suffix] = svg(colors)
	}
	return d
}

// act makes a scene of two processes.
func act(title string, play func(s *stage)) scene {
	return func(t *testing.T) (d drawing) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			s := &stage{t: t, cluster: zktest.Start(t), picture: picture{title: title}}
			for i := range warmer {
				name := "process " + string(rune('A'+i))
				s.picture.lanes = append(s.picture.lanes, name)
			}
			for i := range warmer + 1 {
				s.clients = append(s.clients, s.connect(i))
			}
			play(s)
			d = drawn(s.picture.svg)
		})
		return d
	}
}

// usual is what is drawn most often.
func (play scene) usual(t *testing.T) (d drawing) {
	t.Helper()
	times := map[string]int{}
	most := 0
	for range plays {
		now := play(t)
		key := string(now[palettes[0].suffix])
		times[key]++
		if times[key] > most {
			most, d = times[key], now
		}
	}
	return d
}

// shows tells whether a play looks as the pictures in the files do.
func (play scene) shows(t *testing.T, files drawing) bool {
	t.Helper()
	for range enough {
		if maps.EqualFunc(play(t), files, bytes.Equal) {
			return true
		}
	}
	return false
}

func (s *stage) connect(lane int) *recipes.Client {
	s.t.Helper()
	link := s.cluster.Link(fmt.Sprintf("process %d", lane))
	tap := wiretap.New(link.Dial)
	tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
		s.record(lane, p, p)
		return wiretap.Pass
	})
	tap.OnReply(func(request, reply wiretap.Packet) wiretap.Verdict {
		s.record(lane, request, reply)
		return wiretap.Pass
	})
	client, err := recipes.Connect(
		s.t.Context(), strings.Join(s.cluster.Names(), ","), 10*time.Second,
		recipes.WithDialer(tap.Dial),
	)
	require.NoError(s.t, err)
	tap.Delay(oneWay)
	s.t.Cleanup(func() {
		client.Close()
		time.Sleep(time.Minute) // virtual: what is under way ends by itself
	})
	return client
}

// drawnOps are the operations that the pictures show, by the word for each; the others
// only keep the session.
var drawnOps = map[wiretap.Op]string{
	wiretap.Create: "create", wiretap.Delete: "delete", wiretap.GetData: "get",
	wiretap.GetChildren2: "list", wiretap.Event: "watch event:",
}

// record takes note of a packet.
func (s *stage) record(lane int, request, p wiretap.Packet) {
	word, shown := drawnOps[p.Op]
	if !shown {
		return
	}
	m := message{kind: sent, op: p.Op, text: word + " " + short(p.Path)}
	switch {
	case p.Op == wiretap.Event && p.Event == zk.EventNodeDeleted:
		m.kind, m.text = answered, m.text+" deleted"
	case p.Op == wiretap.Event:
		m.kind, m.text = answered, m.text+" changed"
	case p.Reply:
		m.kind, m.text = answered, result(request, p)
	case p.Watch:
		m.text += ", watch it"
	}
	s.add(lane, m)
}

// result is what an answer says.
func result(request, p wiretap.Packet) string {
	switch {
	case p.Err == errNoNode:
		return short(request.Path) + ": no such znode"
	case p.Err != 0:
		return fmt.Sprintf("error %d", p.Err)
	case p.Op == wiretap.Create:
		return "created " + short(p.Path)
	case p.Op == wiretap.Delete:
		return "deleted " + short(request.Path)
	case p.Op == wiretap.GetData:
		return short(request.Path) + " exists"
	case p.Children == 1:
		return strings.TrimPrefix(short(request.Path), "the ") + ": 1 entry"
	}
	return fmt.Sprintf("%s: %d entries",
		strings.TrimPrefix(short(request.Path), "the "), p.Children)
}

const errNoNode = -101 // of the protocol

var protected = regexp.MustCompile(`_c_[0-9a-f-]{36}-`)

// short leaves out what only tells one znode from another.
func short(znode string) string {
	if znode == dir {
		return "the queue"
	}
	name := protected.ReplaceAllString(path.Base(znode), "")
	if member := path.Base(path.Dir(znode)); len(member) == 1 {
		name = member + "/" + name // of a multi lock
	}
	return "`" + name + "`"
}

// add adds what happens now, if that is recorded. What happens in a process always is.
func (s *stage) add(lane int, m message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if arrow := m.kind == sent || m.kind == answered; arrow && !s.rolling {
		return
	}
	m.at, m.lane = time.Now(), lane
	s.picture.messages = append(s.picture.messages, m)
}

func (s *stage) roll(on bool) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rolling = on
}

// look draws the znodes as they are now.
func (s *stage) look() {
	synctest.Wait()
	var found []string
	for _, znode := range s.cluster.Znodes() {
		if strings.HasPrefix(znode, dir) {
			found = append(found, protected.ReplaceAllString(znode, "_c_…-"))
		}
	}
	slices.Sort(found) // without what differs each time
	s.picture.znodes = found
}

// warm makes the directory, so that the pictures do not show that.
func (s *stage) warm(locks ...recipes.InterProcessLock) {
	for _, lock := range locks {
		ctx := recipes.WithOwner(s.t.Context())
		require.NoError(s.t, lock.Acquire(ctx))
		require.NoError(s.t, lock.Release(ctx))
	}
	time.Sleep(time.Second)
}

// use acquires a lock, holds it and releases it.
func (s *stage) use(ctx context.Context, lane int, lock recipes.InterProcessLock) {
	require.NoError(s.t, lock.Acquire(ctx))
	s.add(lane, message{kind: granted, text: "holds the lock"})
	time.Sleep(moments)
	s.add(lane, message{kind: released})
	require.NoError(s.t, lock.Release(ctx))
}

// lead awaits a term, leads and steps down.
func (s *stage) lead(lane int, latch *recipes.LeaderLatch) {
	ctx := s.t.Context()
	_, err := latch.Await(ctx)
	require.NoError(s.t, err)
	s.add(lane, message{kind: granted, text: "leads"})
	time.Sleep(2 * moments)
	s.add(lane, message{kind: released})
	require.NoError(s.t, latch.Close(ctx))
}

// contend lets the processes use their locks, one after the other a moment later.
func (s *stage) contend(locks ...recipes.InterProcessLock) {
	var all sync.WaitGroup
	s.roll(true)
	for lane, lock := range locks {
		ctx := recipes.WithOwner(s.t.Context())
		all.Go(func() { s.use(ctx, lane, lock) })
		time.Sleep(3 * oneWay)
	}
	time.Sleep(oneWay)
	s.look()
	all.Wait()
	time.Sleep(4 * oneWay)
	s.roll(false)
}

func scenes() map[string]scene {
	mutex := func(s *stage, lane int, opts ...recipes.Option) recipes.InterProcessLock {
		lock, err := recipes.NewInterProcessMutex(s.clients[lane], dir, opts...)
		require.NoError(s.t, err)
		return lock
	}
	readWrite := func(s *stage, lane int) *recipes.InterProcessReadWriteLock {
		lock, err := recipes.NewInterProcessReadWriteLock(s.clients[lane], dir)
		require.NoError(s.t, err)
		return lock
	}
	semaphore := func(s *stage, lane int) recipes.InterProcessLock {
		lock, err := recipes.NewInterProcessSemaphoreMutex(s.clients[lane], dir)
		require.NoError(s.t, err)
		return lock
	}
	multi := func(s *stage, lane int) recipes.InterProcessLock {
		lock, err := recipes.NewInterProcessMultiLock(
			s.clients[lane], []string{dir + "/a", dir + "/b"},
		)
		require.NoError(s.t, err)
		return lock
	}
	return map[string]scene{
		"loss": lossScene,
		"mutex": act("Two processes and a mutex", func(s *stage) {
			s.warm(mutex(s, warmer))
			s.contend(mutex(s, 0), mutex(s, 1))
		}),
		"read-write-lock": act("A writer, and a reader behind it", func(s *stage) {
			s.warm(readWrite(s, warmer).WriteLock())
			s.contend(readWrite(s, 0).WriteLock(), readWrite(s, 1).ReadLock())
		}),
		"semaphore": act("Two processes and a semaphore of one", func(s *stage) {
			s.warm(semaphore(s, warmer))
			s.contend(semaphore(s, 0), semaphore(s, 1))
		}),
		"multi-lock": act("Two processes and two locks at once", func(s *stage) {
			s.warm(multi(s, warmer))
			s.contend(multi(s, 0), multi(s, 1))
		}),
		"election": act("Two latches", func(s *stage) {
			first, err := recipes.NewLeaderLatch(s.clients[warmer], dir)
			require.NoError(s.t, err)
			s.lead(warmer, first) // makes the directory
			s.picture.messages = nil
			s.roll(true)
			for lane := range s.picture.lanes {
				latch, err := recipes.NewLeaderLatch(s.clients[lane], dir)
				require.NoError(s.t, err)
				go s.lead(lane, latch)
				time.Sleep(6 * oneWay)
			}
			s.look()
			time.Sleep(time.Second)
			s.roll(false)
		}),
		"caching": act("A cached entry, until another process waits", func(s *stage) {
			cached := mutex(s, 0, recipes.WithCaching(time.Minute, 16))
			s.warm(mutex(s, warmer))
			s.roll(true)
			ctx := recipes.WithOwner(s.t.Context())
			for range 3 {
				s.use(ctx, 0, cached)
			}
			s.add(0, message{kind: noted, text: "keeps its\nqueue entry"})
			time.Sleep(moments)
			s.contend(cached, mutex(s, 1))
		}),
	}
}

// TestPicturesAreAsItWas finds what the pages show in a run. With -update it writes the
// pictures.
func TestPicturesAreAsItWas(t *testing.T) {
	for name, play := range scenes() {
		there := func(suffix string) string {
			return filepath.Join(root, "docs", "pictures", name+suffix+".svg")
		}
		if *update {
			for suffix, svg := range play.usual(t) {
				require.NoError(t, os.MkdirAll(filepath.Dir(there(suffix)), 0o755))
				require.NoError(t, os.WriteFile(there(suffix), svg, 0o644))
			}
			continue
		}
		files := drawing{}
		for _, colors := range palettes {
			svg, err := os.ReadFile(there(colors.suffix))
			require.NoError(t, err)
			files[colors.suffix] = svg
		}
		require.True(t, play.shows(t, files),
			"%s is not what happens; see act, and run with -update", there(""))
	}
}
