package znode

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zkrecipes/recipes/internal/calls"
	"github.com/zkrecipes/recipes/internal/outcome"
	"github.com/zkrecipes/recipes/internal/zkconn"
)

// deleteTry returns one try to delete a znode of the given session by send, for Retry and
// Insist. ErrGone says that it was gone before.
func deleteTry(conn *zkconn.Conn, session int64, send func() error) func() error {
	unknown := false // whether an earlier try may have been done
	return func() error {
		// With its session the znode is gone, or about to go; but see life.
		if conn.SessionID() != session {
			return outcome.Permanent(outcome.ErrSessionEnded)
		}
		err := send()
		switch {
		case err == nil:
			return nil
		case unknown && errors.Is(err, zk.ErrNoNode):
			// The delete before was ours, or the session has ended between the two, and
			// this one ran in the next session.
			if conn.SessionID() != session {
				return outcome.Permanent(outcome.ErrSessionEnded)
			}
			return nil
		case errors.Is(err, zk.ErrNoNode):
			return outcome.Permanent(ErrGone)
		}
		// From now on a missing znode says that this delete, or one before it, was done.
		unknown = unknown || !outcome.NotDone(err)
		return err
	}
}

// deleteOrInsist deletes a znode of ours by try, and returns the first answer. ended is
// called once, with what became of it: see insist.
func deleteOrInsist(
	conn *zkconn.Conn, log *slog.Logger, path string, try func() error, ended func(error),
) error {
	err := conn.Retry(context.Background(), try)
	if outcome.Refused(err) {
		insist(conn, log, path, err, try, ended)
	} else {
		ended(err)
	}
	return err
}

// insist goes on in the background with the delete of a znode of ours that was rejected.
// The znode blocks everybody behind it, and the session may last for months; the rights
// may be back in a moment. So the rejection ends the call that asked for the delete, and
// not the obligation. ended is called once, with what became of it.
func insist(
	conn *zkconn.Conn, log *slog.Logger, path string, refusal error,
	try func() error, ended func(error),
) {
	calls.Start(conn, func() (none struct{}, _ error) {
		err := conn.Insist(context.Background(), try)
		ended(err)
		if err == nil {
			log.Info("zookeeper lock: znode deleted after a refusal", "node", path)
		}
		return none, err
	})
	// Once that has begun: a log handler may not return.
	log.Error("zookeeper lock: delete refused; the znode is still being deleted, "+
		"until its session ends", "node", path, "error", refusal)
}

// discarding are the znodes that discard deletes just now. A list may show one again and
// again for as long as its delete is rejected; one discard in each session is enough.
var discarding sync.Map // of znodeIn

type znodeIn struct {
	conn    *zkconn.Conn
	session int64 // the one that deletes it
	path    string
}

// discard deletes a znode of ours that no Node has.
func discard(conn *zkconn.Conn, log *slog.Logger, path string, session int64) {
	key := znodeIn{conn, session, path}
	if _, underWay := discarding.LoadOrStore(key, nil); underWay {
		return
	}
	calls.Start(conn, func() (none struct{}, _ error) {
		try := deleteTry(conn, session, func() error { return conn.Delete(path, -1) })
		done := func(error) { discarding.Delete(key) }
		return none, deleteOrInsist(conn, log, path, try, done)
	})
}
