package zktest

// An opcode says what a request asks for.
type opcode int32

const (
	opCreate          opcode = 1
	opDelete          opcode = 2
	opExists          opcode = 3
	opGetData         opcode = 4
	opSetData         opcode = 5
	opGetACL          opcode = 6
	opSetACL          opcode = 7
	opGetChildren     opcode = 8
	opSync            opcode = 9
	opPing            opcode = 11
	opGetChildren2    opcode = 12
	opCheck           opcode = 13
	opMulti           opcode = 14
	opCreate2         opcode = 15
	opReconfig        opcode = 16
	opCheckWatches    opcode = 17
	opRemoveWatches   opcode = 18
	opCreateContainer opcode = 19
	opDeleteContainer opcode = 20 // sent by the leader's clean-up, not by clients
	opCreateTTL       opcode = 21
	opMultiRead       opcode = 22
	opSetAuth         opcode = 100
	opSetWatches      opcode = 101
	opSASL            opcode = 102
	opGetEphemerals   opcode = 103
	opCountChildren   opcode = 104 // getAllChildrenNumber
	opSetWatches2     opcode = 105
	opAddWatch        opcode = 106
	opWhoAmI          opcode = 107
	opCreateSession   opcode = -10
	opClose           opcode = -11
	opError           opcode = -1 // in the log and in the results of a multi
)

// A code is what KeeperException.Code calls it: the outcome of a request.
type code int32

const (
	codeOK                   code = 0
	codeRuntimeInconsistency code = -2
	codeMarshalling          code = -5
	// The server closes the connection behind this answer.
	codeUnimplemented           code = -6
	codeBadArguments            code = -8
	codeNewConfigNoQuorum       code = -13
	codeNoNode                  code = -101
	codeNoAuth                  code = -102
	codeBadVersion              code = -103
	codeNoChildrenForEphemerals code = -108
	codeNodeExists              code = -110
	codeNotEmpty                code = -111
	codeSessionExpired          code = -112
	codeInvalidACL              code = -114
	// The server closes the connection behind this answer.
	codeAuthFailed code = -115
	// Never sent: the server closes the connection instead.
	codeSessionMoved code = -118
	codeNotReadOnly  code = -119
	codeNoWatcher    code = -121
	// Reconfiguration is disabled.
	codeReconfigDisabled code = -123
	codeThrottled        code = -127
)

type eventType int32

const (
	eventNodeCreated         eventType = 1
	eventNodeDeleted         eventType = 2
	eventNodeDataChanged     eventType = 3
	eventNodeChildrenChanged eventType = 4
)

// What all notifications of a change have in common.
const (
	notificationXid    int32 = -1
	stateSyncConnected int32 = 3
)

// An event is a change that watches wait for.
type event struct {
	kind eventType
	path string
	acl  []acl // of the znode at path; empty if that does not matter
}

// mayHear says whether a watcher is told of the event. Its watch is gone in any case.
// Servers do so since ZOOKEEPER-4799, and Debian's 3.8.0 does.
func (e event) mayHear(who []identity) bool {
	return checkACL(e.acl, permRead, who) == codeOK
}

// An identity is what a connection has proved to be, or whom an acl means.
type identity struct{ scheme, id string }

type acl struct {
	perms int32
	identity
}

// The bits of acl.perms.
const (
	permRead int32 = 1 << iota
	permWrite
	permCreate
	permDelete
	permAdmin
	permAll int32 = 1<<iota - 1
)

type stat struct {
	czxid, mzxid, ctime, mtime  int64
	version, cversion, aversion int32
	ephemeralOwner              int64
	dataLength, numChildren     int32
	pzxid                       int64
}

type connectRequest struct {
	protocol int32
	lastZxid int64
	timeout  int32 // milliseconds
	session  int64
	password []byte
	readOnly bool
	// Old clients do not send readOnly, and do not expect it in the response.
	hasReadOnly bool
}

// A request as it came over the wire. Body is one of the types below, and nil for an op
// that has none or is not known.
type request struct {
	xid  int32
	op   opcode
	body any
}

// Malformed is the body of a request that does not parse: the answer is codeMarshalling,
// and a write is logged as refused.
type malformed struct{}

type createRequest struct {
	path   string
	data   []byte
	acl    []acl
	flags  int32
	ttl    int64 // milliseconds
	hasTTL bool  // the request is of the form that has a ttl, whatever its flags say
}

type deleteRequest struct {
	path    string
	version int32
}

// A pathRequest is exists, getData, getChildren, getChildren2, or, without a watch,
// getEphemerals or getAllChildrenNumber.
type pathRequest struct {
	path  string
	watch bool
}

type setDataRequest struct {
	path    string
	data    []byte
	version int32
}

type getACLRequest struct{ path string }

type setACLRequest struct {
	path    string
	acl     []acl
	version int32
}

type syncRequest struct{ path string }

type checkRequest struct {
	path    string
	version int32
}

// A multiRequest has only writes or, in a multiRead, only getData and getChildren.
type multiRequest struct{ ops []request }

type authRequest struct {
	scheme string
	auth   []byte
}

type saslRequest struct{ token []byte }

// A setWatchesRequest is setWatches, or setWatches2 with the persistent ones too.
type setWatchesRequest struct {
	relativeZxid          int64
	data, exist, child    []string
	persistent, recursive []string
}

type addWatchRequest struct {
	path string
	mode int32
}

// A watcherRequest is checkWatches or removeWatches.
type watcherRequest struct {
	path string
	of   int32 // which watches; watchedBy has the numbers
}

// A reply is what follows the header of an answer.
type reply interface{ encode(*encoder) }

type (
	pathReply     struct{ path string }
	pathStatReply struct {
		path string
		stat stat
	}
	statReply struct{ stat stat }
	dataReply struct {
		data []byte
		stat stat
	}
	childrenReply     struct{ children []string } // also the znodes of a session
	countReply        struct{ n int32 }
	clientReply       struct{ who []identity }
	childrenStatReply struct {
		children []string
		stat     stat
	}
	aclReply struct {
		acl  []acl
		stat stat
	}
	multiReply struct{ results []multiResult }
	saslReply  struct{ token []byte }
	// An addWatchReply says once more that all went well.
	addWatchReply struct{}
)

// A multiResult is opError with a code, which may be codeOK: a refused multi answers that
// for the ops ahead of the one that failed.
type multiResult struct {
	op   opcode
	code code
	body reply
}
