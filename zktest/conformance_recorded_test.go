package zktest_test

import (
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

var update = flag.Bool("update", false, "record the answers of real servers")

// A setting is how the servers are started whose answers stand in the folder of its name
// in testdata/conformance.
type setting struct {
	folder string
	real   []zkserver.Option
	fake   []zktest.Option
	role   string // of the server that is asked, "" for one on its own
}

const (
	extendedTypes = "-Dzookeeper.extendedTypesEnabled=true"
	eagerACLCheck = "-Dzookeeper.enableEagerACLCheck=true"
)

var (
	users = map[string]string{"bob": "secret", "ann": "hunter2"}
	super = "super:" + password
	// What zktest needs to know of a super user.
	fakeSuper = zktest.WithSuperUser("super", password)
)

var ordinary = setting{
	folder: "ordinary", // a container that goes takes a zxid
	real: []zkserver.Option{zkserver.JVM(
		extendedTypes, "-Dznode.container.checkIntervalMs=3600000", superFlag(super),
	)},
	fake: []zktest.Option{fakeSuper},
}

var withUsers = setting{
	folder: "sasl",
	real:   []zkserver.Option{zkserver.SASLUsers(users)},
	fake:   []zktest.Option{zktest.WithSASLUsers(users)},
}

var settings = []setting{
	ordinary,
	{
		folder: "short-sessions",
		real:   []zkserver.Option{zkserver.Config("minSessionTimeout=300")},
		fake:   []zktest.Option{zktest.WithMinSessionTimeout(300 * time.Millisecond)},
	},
	withUsers,
	{
		folder: "super",
		real:   []zkserver.Option{zkserver.JVM(superFlag(super))},
		fake:   []zktest.Option{fakeSuper},
	},
	eager("standalone", ""), eager("leader", "leader"), eager("follower", "follower"),
	reconfig("standalone", false, ""), reconfig("ensemble", false, "follower"),
	reconfig("standalone", true, ""), reconfig("ensemble", true, "follower"),
}

// eager is what a server refuses by itself. A zxid of 0 in an answer shows who refused;
// that the next one is not skipped, that the leader has not heard of it.
func eager(name, role string) setting {
	return setting{
		folder: "eager-" + name, role: role,
		real: []zkserver.Option{zkserver.JVM(eagerACLCheck, extendedTypes)},
		fake: []zktest.Option{zktest.WithEagerACLCheck()},
	}
}

// reconfig is for requests to change the ensemble.
func reconfig(name string, enabled bool, role string) setting {
	s := setting{
		folder: "reconfig-" + name, role: role,
		real: []zkserver.Option{zkserver.JVM(superFlag(super))},
		fake: []zktest.Option{fakeSuper},
	}
	if enabled {
		s.folder += "-enabled"
		s.real = append(s.real, zkserver.Config("reconfigEnabled=true"))
		s.fake = append(s.fake, zktest.WithReconfig())
	}
	return s
}

// startReal starts a server, or returns the first of ZOOKEEPER_SERVERS for the ordinary
// settings. That one has to be idle, or else its zxids are not those of the script.
func (s setting) startReal(t *testing.T) (addr string) {
	t.Helper()
	if s.folder == ordinary.folder && os.Getenv("ZOOKEEPER_SERVERS") != "" {
		given, err := zkserver.Find(t.Context())
		require.NoError(t, err)
		return given.Servers[0].Addr
	}
	options := append(
		[]zkserver.Option{zkserver.Tick(tick), zkserver.MaxSession(usual)}, s.real...,
	)
	role := "standalone"
	if s.role != "" {
		options, role = append(options, zkserver.Servers(3)), s.role
	}
	return roles(t, zkserver.Start(t, options...).Connect())[role]
}

// startFake returns a player on zktest, by a link.
func (s setting) startFake(t *testing.T) *player {
	t.Helper()
	options := append(
		[]zktest.Option{zktest.WithTick(tick), zktest.WithMaxSession(usual)}, s.fake...,
	)
	if s.role != "" {
		options = append(options, zktest.WithServers(3))
	}
	cluster := zktest.Start(t, options...)
	server := cluster.Leader()
	if s.role == "follower" {
		server = without(cluster.Servers(), server)[0]
	}
	p, err := newPlayer(server.Addr(), func() (net.Conn, error) {
		return cluster.Dial("tcp", server.Addr(), patience)
	})
	require.NoError(t, err)
	return p
}

// A recording is a script with what a real server has answered: a file in which each step
// stands above the lines that came of it, which begin with a tab.
type recording struct {
	file   string
	script []step
	want   [][]string
}

func (s setting) recordings(t *testing.T) (all []recording) {
	t.Helper()
	files, err := filepath.Glob("testdata/conformance/" + s.folder + "/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		all = append(all, readRecording(t, file))
	}
	return all
}

func readRecording(t *testing.T, file string) recording {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	r := recording{file: file}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		answer, isAnswer := strings.CutPrefix(line, "\t")
		switch last := len(r.want) - 1; {
		case isAnswer:
			r.want[last] = append(r.want[last], answer)
		case strings.HasPrefix(line, "#"):
		default:
			r.script, r.want = append(r.script, parse(line)), append(r.want, nil)
		}
	}
	return r
}

// write records other answers, and keeps the comments.
func (r recording) write(t *testing.T, answers [][]string) {
	t.Helper()
	text, err := os.ReadFile(r.file)
	require.NoError(t, err)
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		b.WriteString(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		for _, answer := range answers[0] {
			b.WriteString("\t" + answer + "\n")
		}
		answers = answers[1:]
	}
	require.NoError(t, os.WriteFile(r.file, []byte(b.String()), 0o644))
}

// name is that of the script, below its setting.
func (r recording) name() string {
	return strings.TrimSuffix(filepath.Base(r.file), ".txt")
}

// TestConformance wants the recorded answers of real servers. With -update it records
// them.
func TestConformance(t *testing.T) {
	needsGenuine(t)
	for _, s := range settings {
		t.Run(s.folder, func(t *testing.T) {
			genuine := mustPlay(t, s.startReal(t), nil)
			defer genuine.close()
			for _, r := range s.recordings(t) {
				t.Run(r.name(), func(t *testing.T) {
					got, err := genuine.play(zkserver.Path(t), r.script)
					require.NoError(t, err)
					if *update {
						r.write(t, got)
						return
					}
					require.Empty(t, differences(r.script, r.want, got))
				})
			}
		})
	}
}

// TestRecordedAnswers wants those of zktest.
func TestRecordedAnswers(t *testing.T) {
	for _, s := range settings {
		for _, r := range s.recordings(t) {
			t.Run(s.folder+"/"+r.name(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fake := s.startFake(t)
					// What a client has under way ends by itself.
					defer time.Sleep(time.Minute)
					defer fake.close()
					got, err := fake.play("/recorded", r.script)
					require.NoError(t, err)
					require.Empty(t, differences(r.script, r.want, got))
				})
			})
		}
	}
}
