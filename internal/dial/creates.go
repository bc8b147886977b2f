package dial

import "sync"

// creates knows the zxids of one client's creates. The head of a reply has the zxid of
// the last write that the server has done (FinalRequestProcessor.processRequest), which
// is the one that it answers, since writes are done and answered one by one
// (CommitProcessor). zk does not return it. Only ephemeral sequential znodes are known,
// the latest of them, and each until it is asked for.
type creates struct {
	mu     sync.Mutex
	zxids  map[string]int64 // by the path that was asked for, which has no number
	latest [createsKept]string
	next   int // the index of the one in latest that is forgotten next
}

// createsKept is several times as many as are under way on a connection at a time.
const createsKept = 256

func (cs *creates) note(path string, zxid int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.zxids, cs.latest[cs.next]) // one that nobody has asked for
	cs.latest[cs.next] = path
	cs.next = (cs.next + 1) % createsKept
	cs.zxids[path] = zxid
}

func (cs *creates) take(path string) (zxid int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	zxid = cs.zxids[path]
	delete(cs.zxids, path)
	return zxid
}
