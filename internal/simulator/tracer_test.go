package simulator_test

import (
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/simulator"
	"github.com/zkrecipes/recipes/internal/wiretap"
	"github.com/zkrecipes/recipes/zktest"
)

// A tracer records next to what the workload sees what the servers commit, and what each
// client and its servers say to each other, about one mutex.
type tracer struct {
	rec     *simulator.Recorder
	clients atomic.Int64 // so far
}

// isTraced tells whether a path is the mutex's, or that of a znode in its queue.
func isTraced(path string) bool {
	return path == traced.Paths[0] || strings.HasPrefix(path, traced.Paths[0]+"/")
}

// committed records a transaction.
func (tr *tracer) committed(x zktest.Transaction) {
	if x.Op != zktest.OpClose && !isTraced(x.Path) {
		return
	}
	names := map[zktest.Op]string{
		zktest.OpCreate: "create", zktest.OpCreateContainer: "create",
		zktest.OpDelete: "delete", zktest.OpClose: "close",
	}
	if name, ok := names[x.Op]; ok {
		tr.rec.Record(simulator.Event{
			Kind: simulator.Committed, Path: x.Path, Session: x.Session,
			Wire: simulator.Wire{Op: name, Zxid: x.Zxid},
		})
	}
}

// tap makes a dialer for a worker's next client, of which all packets are recorded. kind
// says whether the events of its watches reach the library late, and whether it is plain.
func (tr *tracer) tap(worker int, kind string, dial zk.Dialer) zk.Dialer {
	client := int(tr.clients.Add(1))
	var server atomic.Value // that was dialled last
	note := func(what simulator.Kind, p, asked wiretap.Packet) {
		if p.Op != wiretap.Connect && !isTraced(asked.Path) {
			return
		}
		e := simulator.Event{
			Kind: what, Text: kind, ID: simulator.ID{Worker: worker}, Path: asked.Path,
			Wire: simulator.Wire{
				Client: client, Op: string(p.Op), Xid: p.Xid, Watch: asked.Watch,
				Zxid: p.Zxid, Code: p.Err,
			},
		}
		if p.Op == wiretap.Event {
			e.Op = p.Event.String()
		}
		if p.Op == wiretap.Connect {
			e.Path, _ = server.Load().(string)
		}
		tr.rec.Record(e)
	}
	tap := wiretap.New(func(network, at string, timeout time.Duration) (net.Conn, error) {
		server.Store(at)
		return dial(network, at, timeout)
	})
	tap.OnRequest(func(p wiretap.Packet) wiretap.Verdict {
		note(simulator.Sent, p, p)
		return wiretap.Pass
	})
	tap.OnReply(func(asked, p wiretap.Packet) wiretap.Verdict {
		if p.Op == wiretap.Event {
			note(simulator.Notified, p, p)
		} else {
			note(simulator.Answered, p, asked)
		}
		return wiretap.Pass
	})
	return tap.Dial
}
