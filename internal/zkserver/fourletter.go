package zkserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// fourLetter asks the server at addr one of ZooKeeper's four-letter commands. The
// deadline is needed even for a server that accepted: one that is starting, or frozen,
// may never answer.
func fourLetter(ctx context.Context, addr, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer, err := ask(ctx, addr, command)
	if err != nil {
		return "", fmt.Errorf("zkserver: %s of %s: %w", command, addr, err)
	}
	return answer, nil
}

func ask(ctx context.Context, addr, command string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
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
