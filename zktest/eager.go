package zktest

import (
	"cmp"
	"strings"
)

// eagerLocked is what a server refuses by itself, with WithEagerACLCheck, before the
// leader sees it: by the ACLs that it knows, which lag behind where it does. In an
// ensemble each server does so for its own clients, the leader too; a single one never
// does. The source is ZooKeeperServer.authWriteRequest of 3.8, which only
// FollowerRequestProcessor, ObserverRequestProcessor and LeaderRequestProcessor call.
func (s *Server) eagerLocked(r request, who []identity) code {
	if !s.cluster.eagerACL || len(s.cluster.servers) == 1 {
		return codeOK
	}
	switch body := r.body.(type) {
	case createRequest:
		parent, ok := screenedParent(body.path)
		if !ok || r.op != opCreate && r.op != opCreate2 {
			return codeOK
		}
		return cmp.Or(
			s.wellFormed(body.acl, who), s.grantsLocked(parent, permCreate, who),
		)
	case deleteRequest:
		parent, ok := screenedParent(body.path)
		if !ok || r.op != opDelete {
			return codeOK
		}
		return s.grantsLocked(parent, permDelete, who)
	case setDataRequest:
		return s.grantsLocked(body.path, permWrite, who)
	case setACLRequest:
		return cmp.Or(
			s.wellFormed(body.acl, who), s.grantsLocked(body.path, permAdmin, who),
		)
	default: // containers, TTL znodes and multis are left to the leader
		return codeOK
	}
}

// screenedParent has no parent for a path that the leader will refuse.
func screenedParent(path string) (parent string, ok bool) {
	if !strings.Contains(path, "/") || strings.Contains(path, "\x00") || isSpecial(path) {
		return "", false
	}
	parent, _ = split(path)
	return cmp.Or(parent, "/"), true
}

func (s *Server) wellFormed(asked []acl, who []identity) code {
	_, err := s.tree.fixupACL(asked, who)
	return err
}

// grantsLocked goes by what this server knows. Of a znode that it does not know the
// leader may know more.
func (s *Server) grantsLocked(path string, perms int32, who []identity) code {
	_, err := s.tree.permitted(path, perms, who)
	if err == codeNoNode {
		return codeOK
	}
	return err
}

// refuseLocked answers at once, also before what was asked earlier, and with no zxid.
func (c *conn) refuseLocked(asked *call, err code) {
	if asked.lost {
		c.orphanLocked()
		c.hangUpLocked()
		return
	}
	c.sendReplyLocked(asked, 0, err, nil)
}
