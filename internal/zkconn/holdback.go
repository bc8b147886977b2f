package zkconn

import "time"

// closeWithin is how long a client may take to end once its server has ended the session.
const closeWithin = 10 * time.Millisecond

// TellsClose reports whether the connection tells that its owner closes it, before it
// ends the session.
func (s *Conn) TellsClose() bool { return s.whenClosed != nil }

// HoldBack is called when an event says that a znode of this process was deleted, and not
// by its own delete. Most likely the connection is being closed: its server deletes our
// znodes first, and then answers the close. A request that goes to *zk.Conn in between
// can leave the client's loop stuck forever. So none does for closeWithin, unless the
// connection tells of a close before that.
func (s *Conn) HoldBack() {
	if s.TellsClose() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quietUntil = time.Now().Add(closeWithin)
}

// awaitQuiet returns once no request has to be held back.
func (s *Conn) awaitQuiet() {
	for !s.TellsClose() {
		s.mu.Lock()
		wait := time.Until(s.quietUntil)
		s.mu.Unlock()
		if wait <= 0 {
			return
		}
		time.Sleep(wait) // callers do not wait for it: see Pending.Wait
	}
}
