package main

import (
	"context"
	"fmt"
	"io"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/testcontainers/testcontainers-go/log"
)

func main() {
	// The parent may be gone when a reply is written. By default that would end this
	// program before it removes the containers.
	signal.Ignore(syscall.SIGPIPE)
	log.SetDefault(log.NewNoopLogger()) // it would write to standard error
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers requests until the input ends. Then it waits for the calls in progress,
// and removes what is left.
func serve(in io.Reader, out io.WriteCloser) error {
	e := &engine{}
	server := rpc.NewServer()
	if err := server.RegisterName("Engine", &methods{e}); err != nil {
		return err
	}
	server.ServeCodec(jsonrpc.NewServerCodec(stream{in, out}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return e.close(ctx)
}

// A stream makes one connection of the two halves.
type stream struct {
	io.Reader
	io.WriteCloser
}
