package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"

	"github.com/zkrecipes/recipes/zktest"
)

// The exit codes of sysexits.h that the help names.
const (
	exitOK          = 0
	exitUsage       = 64
	exitUnavailable = 69
	exitNoPerm      = 77
)

func main() {
	ctx, stop := signal.NotifyContext(
		context.Background(), os.Interrupt, syscall.SIGTERM,
	)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(
	ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	f, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(stdout, help()) // nobody is left to tell
		return exitOK
	}
	if err == nil && f.version {
		_, _ = fmt.Fprintln(stdout, "zktest", version()) // likewise
		return exitOK
	}
	if err == nil {
		err = serve(ctx, f, stdin, stdout)
	}
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintln(stderr, "zktest:", oneLine(err))
	return exitCode(err)
}

func exitCode(err error) int {
	switch {
	case errors.As(err, new(usageError)):
		return exitUsage
	case errors.Is(err, fs.ErrPermission):
		return exitNoPerm
	default:
		return exitUnavailable
	}
}

// oneLine also speaks of flags where package zktest speaks of its options.
func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "zktest: ")
	text = optionOf.ReplaceAllStringFunc(text, func(option string) string {
		part := optionOf.FindStringSubmatch(option)
		return "-" + flagOf[part[1]] + " " + part[2]
	})
	return strings.ReplaceAll(text, "\n", " ")
}

var optionOf = regexp.MustCompile(`\bWith(\w+)\(([^)]*)\)`)

// serve runs a cluster until ctx ends or, if so asked, the standard input or the parent.
func serve(ctx context.Context, f flags, stdin io.Reader, stdout io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := f.watch(stop, stdin); err != nil {
		return err
	}
	cluster, err := zktest.New(f.options()...)
	var port *net.OpError
	if err != nil && !errors.As(err, &port) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	defer cluster.Close()
	if err := makeChroot(cluster, f.chroot); err != nil {
		return err
	}
	a := &admin{cluster: cluster, connect: cluster.ConnectString() + f.chroot}
	lines := a.connect + "\n"
	if f.admin != "" {
		url, stop, err := a.listen(f.admin)
		if err != nil {
			return err
		}
		defer stop()
		lines += url + "\n"
	}
	if _, err := io.WriteString(stdout, lines); err != nil {
		return fmt.Errorf("write the connect string: %w", err)
	}
	<-ctx.Done()
	return nil
}

//go:embed doc.go
var doc string

// help is the doc of the command.
func help() string {
	var b strings.Builder
	for line := range strings.Lines(doc) {
		text, ok := strings.CutPrefix(line, "//")
		if !ok {
			break
		}
		b.WriteString(strings.TrimPrefix(text, " "))
	}
	return b.String()
}
