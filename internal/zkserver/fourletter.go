package zkserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// fourLetter asks the server at addr one of ZooKeeper's four-letter commands. The
// deadline is needed even for a server that accepted: one that is starting, or frozen,
// may never answer. Without dial it goes over the network.
func fourLetter(
	ctx context.Context, dial zk.Dialer, addr, command string,
) (string, error) {
	const within = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if dial == nil {
		dial = net.DialTimeout
	}
	conn, err := dial("tcp", addr, within)
	answer := ""
	if err == nil {
		answer, err = ask(ctx, conn, command)
	}
	if err != nil {
		return "", fmt.Errorf("zkserver: %s of %s: %w", command, addr, err)
	}
	return answer, nil
}

func ask(ctx context.Context, conn net.Conn, command string) (string, error) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, command); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && len(answer) == 0 {
		// What an engine's port forwarding says of a server that is gone.
		err = io.ErrUnexpectedEOF
	}
	return string(answer), err
}
