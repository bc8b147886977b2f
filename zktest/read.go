package zktest

import "slices"

// known tells the requests that this server serves. To all others it answers
// codeUnimplemented and hangs up.
func (o opcode) known() bool {
	switch o {
	case opExists, opGetData, opGetACL, opGetChildren, opGetChildren2, opMultiRead,
		opCheckWatches, opRemoveWatches, opSetWatches, opSetWatches2, opAddWatch, opPing,
		opSync:
		return true
	default:
		return o.isWrite() && o != opCreateSession
	}
}

// isWrite tells the requests that go through the log.
func (o opcode) isWrite() bool {
	switch o {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opDeleteContainer,
		opSetData, opSetACL, opCheck, opMulti, opCreateSession, opClose:
		return true
	default:
		return false
	}
}

// readLocked answers what a server answers by itself, from what it has applied so far.
func (c *conn) readLocked(req request) (reply, code) {
	s := c.server
	if !req.op.known() {
		return nil, codeUnimplemented
	}
	// Only the leader knows which sessions there are: a follower goes on with one that
	// has ended until it hears of that.
	if s.cluster.leader == s {
		if err := s.cluster.checkLocked(c.session, s); err != codeOK {
			return nil, err
		}
	}
	watch := func(kind watchKind, path string) { s.watches.add(kind, path, c) }
	switch body := req.body.(type) {
	case setWatchesRequest:
		for _, missed := range s.tree.rewatch(body, watch) {
			c.notifyLocked(missed)
		}
		s.watches.persist(watchPersistent, c, body.persistent...)
		s.watches.persist(watchRecursive, c, body.recursive...)
		return nil, codeOK
	case addWatchRequest:
		mode, ok := watchModes[body.mode]
		if !ok {
			return nil, codeMarshalling
		}
		s.watches.persist(mode, c, body.path)
		return addWatchReply{}, codeOK
	case watcherRequest:
		return nil, s.watches.answer(req.op, body, c)
	case nil:
		return nil, codeOK // a ping
	default:
		return s.tree.read(req, c.who, watch)
	}
}

// authenticateLocked takes an auth packet, which does not wait for the requests before
// it.
func (c *conn) authenticateLocked(asked *call) {
	id, ok := authenticate(asked.req.body.(authRequest), c.address)
	err := codeOK
	switch {
	case !ok:
		err = codeAuthFailed
	case !slices.Contains(c.who, id):
		c.who = append(slices.Clip(c.who), id) // writes under way have the old one
	}
	if !asked.lost {
		c.sendReplyLocked(asked, 0, err, nil)
	}
	if asked.lost || err != codeOK {
		c.hangUpLocked()
	}
}
