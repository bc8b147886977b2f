package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// startRedis runs Debian's redis-server, which keeps nothing on disk here.
func startRedis(ctx context.Context, n int) (*Service, error) {
	const program = "redis-server"
	if _, err := lookUp(program); err != nil {
		return nil, err
	}
	addrs, err := freeAddrs(n)
	if err != nil {
		return nil, err
	}
	d, err := newDaemons()
	if err != nil {
		return nil, err
	}
	for _, addr := range addrs {
		err = errors.Join(err, d.run(program, "--port", port(addr), "--bind", "127.0.0.1",
			"--save", "", "--appendonly", "no"))
	}
	if err == nil {
		err = d.await(ctx, addrs, redisServes)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return &Service{
		Version: version(program), Addrs: addrs, PIDs: d.pids(), close: d.close,
	}, nil
}

func redisServes(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	const question, pong = "PING\r\n", "+PONG\r\n"
	answer := make([]byte, len(pong))
	if _, err := io.WriteString(conn, question); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if string(answer) != pong {
		return fmt.Errorf("it answers %q", answer)
	}
	return nil
}
