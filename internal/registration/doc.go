// Package registration keeps an ephemeral znode with a given name in existence, over
// outages, ended sessions and deletions by others, and shows the members of a group, each
// of which is such a znode.
//
// # A Keeper
//
//	           Start               created, held          lost
//	(idle) ------------> obtaining --------------> held -------> obtaining
//	   ^                    |                       |
//	   |  permanent error   |         Close         |
//	   +--------------------+----------+------------+
//	                                   v
//	                     closed: the znode is deleted, in the background
//
// Obtaining waits for whatever stands under the name, in the one loop of package wait:
// for another session's znode by a watch, for another Keeper of this connection without a
// request. A lost znode is created again once its removal has ended, so that no delete
// meets the next one.
//
// # Goroutines
//
// A Keeper has one from Start to Close, or to a permanent error. It creates and sets, and
// calls the Owner. Its removal has another one. A reader of a group has one, its
// caller's; each watch on a member's data has one, which ends with the reader.
//
// # Locks
//
// Keeper.mu guards what its last fields say. With it held nothing is sent, waited for or
// called.
//
// # Words
//
//   - name: the path of a znode, which is no sequential one: one znode at a time has it.
//   - taken: of a name, that a znode of another session stands under it, or that another
//     Keeper of this connection has it.
package registration
