package zktest

import "slices"

// known tells the requests that this server serves. To all others it answers
// codeUnimplemented and hangs up.
func (o opcode) known() bool {
	switch o {
	case opExists, opGetData, opGetACL, opGetChildren, opGetChildren2, opMultiRead,
		opCheckWatches, opRemoveWatches, opSetWatches, opSetWatches2, opAddWatch, opPing,
		opSync, opGetEphemerals, opCountChildren, opWhoAmI:
		return true
	default:
		return o.isWrite() && o != opCreateSession
	}
}

// isWrite tells the requests that go through the log.
func (o opcode) isWrite() bool {
	switch o {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opDeleteContainer,
		opSetData, opSetACL, opCheck, opMulti, opReconfig, opCreateSession, opClose:
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
	switch req.op {
	case opWhoAmI:
		return clientReply{c.who}, codeOK
	case opGetEphemerals:
		if body, ok := req.body.(pathRequest); ok {
			return childrenReply{s.tree.ownedBy(c.session, body.path)}, codeOK
		}
	}
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

// authLocked takes an auth packet, which does not wait for the requests before it.
func (c *conn) authLocked(asked *call) {
	proved := authenticate(
		asked.req.body.(authRequest), c.address, c.server.cluster.super,
	)
	err := codeOK
	if len(proved) == 0 {
		err = codeAuthFailed
	}
	for _, id := range proved {
		c.identifyLocked(id)
	}
	if !asked.lost {
		c.sendReplyLocked(asked, 0, err, nil)
	}
	if asked.lost || err != codeOK {
		c.hangUpLocked()
	}
}

// identifyLocked adds to what the client has proved to be. Writes under way keep what it
// was.
func (c *conn) identifyLocked(id identity) {
	if !slices.Contains(c.who, id) {
		c.who = append(slices.Clip(c.who), id)
		sortIdentities(c.who)
	}
}
