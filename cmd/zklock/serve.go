package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/urfave/cli/v3"
	"golang.org/x/net/netutil"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/cmd/zklock/internal/metrics"
	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/internal/serve/web"
	"github.com/zkrecipes/recipes/internal/zkpath"
)

const aboutServe = `It shows all locks at each ROOT and below (default: /), whichever
program created them: Curator's, kazoo's, zk.Lock's and this library's. It only reads, and
creates no znode. Its page has what is wrong, as doctor sees it, the locks by their
longest wait, and for each lock its queue and the last ten minutes. /api/locks has the
same in JSON, /api/events events as they happen, /metrics what Prometheus scrapes.

It walks the tree once with --rate requests a second, and again every --rescan. From then
on it lives on watches. A change costs ZooKeeper about two requests, and a lock is looked
at --per-lock times a second at most; the page says how many participants came and left
unseen meanwhile.

Whoever can open the page sees what this login may read: use one that may only read, or
--no-data. Without --public it listens on loopback alone. With --public it needs --host,
the names by which viewers reach it, and either --token or --anonymous. The token is the
password of a browser's login, with any name, or a Bearer token.

`

// A pageServer is one "zklock serve".
type pageServer struct {
	stderr    io.Writer
	listen    string
	public    bool
	anonymous bool
	hosts     []string
	token     string
	cert, key string
	maxPaths  int
	addresses bool
	survey    survey.Config
}

func serveCommand(c *connection, stderr io.Writer) *cli.Command {
	s := &pageServer{stderr: stderr}
	return &cli.Command{
		Name:        "serve",
		Usage:       "show all locks on a page, and as metrics",
		UsageText:   "zklock serve [FLAGS] [ROOT...]",
		Description: aboutServe + exitCodes,
		Flags:       append(s.accessFlags(), s.surveyFlags()...),
		Metadata:    map[string]any{"argument": "PATH"},
		Action: func(ctx context.Context, cmd *cli.Command) (err error) {
			defer within(cmd, "", &err)
			if err := s.check(c, cmd.Args().Slice()); err != nil {
				return err
			}
			return s.run(ctx, c)
		},
	}
}

func (s *pageServer) accessFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name: "listen", Destination: &s.listen, Value: "127.0.0.1:8632",
			Usage: "`ADDRESS` to listen on",
		},
		&cli.BoolFlag{
			Name: "public", Destination: &s.public,
			Usage: "allow other machines: an address that is not on loopback",
		},
		&cli.StringSliceFlag{
			Name: "host", Destination: &s.hosts, HideDefault: true,
			Usage: "`NAME` by which viewers reach the page, without the port; may be " +
				"repeated",
		},
		&cli.StringFlag{
			Name: "token", Destination: &s.token,
			Usage: "`@FILE` with the token that viewers must present",
		},
		&cli.BoolFlag{
			Name: "anonymous", Destination: &s.anonymous,
			Usage: "with --public, let everyone see the page who can reach it",
		},
		&cli.StringFlag{
			Name: "listen-cert", Destination: &s.cert, TakesFile: true,
			Usage: "`FILE` with the certificate of the page, for TLS",
		},
		&cli.StringFlag{
			Name: "listen-key", Destination: &s.key, TakesFile: true,
			Usage: "`FILE` with the key of that certificate",
		},
	}
}

func (s *pageServer) surveyFlags() []cli.Flag {
	to := &s.survey
	return []cli.Flag{
		&cli.FloatFlag{
			Name: "rate", Destination: &to.Rate, Value: 100,
			Usage: "walk with at most `N` requests a second",
		},
		&cli.DurationFlag{
			Name: "rescan", Destination: &to.Rescan, Value: 10 * time.Minute,
			Usage: "`DURATION` between two walks",
		},
		&cli.FloatFlag{
			Name: "per-lock", Destination: &to.PerLock, Value: 5,
			Usage: "look at a lock at most `N` times a second",
		},
		&cli.DurationFlag{
			Name: "old", Destination: &to.Old, Value: 10 * time.Minute,
			Usage: "a lock that is held for longer than `DURATION` is a finding",
		},
		&cli.BoolFlag{
			Name: "no-data", Destination: &to.NoData,
			Usage: "read no data of znodes, and show none",
		},
		&cli.BoolFlag{
			Name: "addresses", Destination: &s.addresses,
			Usage: "show the addresses of sessions, which the servers tell with the " +
				"four-letter word cons: everybody can ask them, too, once " +
				"4lw.commands.whitelist has it",
		},
		&cli.IntFlag{
			Name: "max-paths", Destination: &s.maxPaths, Value: 1000,
			Usage: "metrics of at most `N` paths; the others are summed as \"other\"",
		},
	}
}

// check refuses what no server has to be asked about.
func (s *pageServer) check(c *connection, roots []string) error {
	for _, root := range roots {
		if err := zkpath.Check(root); err != nil {
			return usage("%w", hide(err, root, wantPath))
		}
	}
	if s.survey.Roots = roots; len(roots) == 0 {
		s.survey.Roots = []string{"/"}
	}
	to := s.survey
	switch {
	case to.Rate <= 0:
		return usage("--rate %v: must be positive", to.Rate)
	case to.PerLock <= 0:
		return usage("--per-lock %v: must be positive", to.PerLock)
	case to.Rescan <= 0:
		return usage("--rescan %v: must be positive", to.Rescan)
	case to.Old <= 0:
		return usage("--old %v: must be positive", to.Old)
	case s.maxPaths < 0:
		return usage("--max-paths %d: is negative", s.maxPaths)
	case (s.cert == "") != (s.key == ""):
		return usage("--listen-cert and --listen-key go together")
	case s.token != "" && s.anonymous:
		return usage("--token excludes --anonymous")
	}
	if err := s.checkPublic(); err != nil {
		return err
	}
	return s.readToken(c)
}

// checkPublic refuses to show the page to others unless they were named.
func (s *pageServer) checkPublic() error {
	host, _, err := net.SplitHostPort(s.listen)
	if err != nil {
		return usage("--listen %s: want HOST:PORT, such as 127.0.0.1:8632",
			echo(s.listen))
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case !loopback && !s.public:
		return usage("--listen %s: other machines can reach it; give --public, or an "+
			"address on loopback", s.listen)
	case !s.public:
		return nil
	case len(s.hosts) == 0:
		return usage("--public: no --host: name what viewers type, such as --host " +
			"locks.example.com")
	case s.token == "" && !s.anonymous:
		return usage("--public: give --token @FILE, or --anonymous")
	}
	return nil
}

// tokenLeast is how long a token is at least, in characters: it is the only thing between
// the page and whoever can reach it.
const tokenLeast = 16

// readToken puts what is in the file into token.
func (s *pageServer) readToken(c *connection) error {
	if s.token == "" {
		return nil
	}
	file, ok := strings.CutPrefix(s.token, "@")
	if !ok {
		return usage("--token: want @FILE, with the token in FILE")
	}
	read, err := c.secret("--token @"+file, file)
	if err != nil {
		return usage("--token: %w", hide(err, file, wantFile))
	}
	if s.token = strings.TrimSpace(string(read)); len(s.token) < tokenLeast {
		return usage("--token @%s: must have %d characters or more", echo(file),
			tokenLeast)
	}
	return nil
}

func (s *pageServer) run(ctx context.Context, c *connection) error {
	to, err := c.check()
	if err != nil {
		return err
	}
	listener, err := s.open(c)
	if err != nil {
		return err
	}
	defer listener.Close()
	to.options = append(to.options, recipes.WithMaxReply(replyAtMost))
	client, err := to.look(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, _, stop := withSignals(ctx)
	defer stop()
	return signalled(ctx, s.serve(ctx, client, listener, to))
}

// replyAtMost bounds a reply of ZooKeeper, in bytes: a longer list is not looked at.
const replyAtMost = 4 << 20

// open listens.
func (s *pageServer) open(c *connection) (net.Listener, error) {
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return nil, exit(exitUnavailable, "--listen: %w", err)
	}
	listener = netutil.LimitListener(listener, connectionsAtMost)
	if s.cert == "" {
		return listener, nil
	}
	pair, err := c.keyPair("--listen-cert", s.cert, "--listen-key", s.key)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
	}), nil
}

const (
	// connectionsAtMost are open to the page at a time.
	connectionsAtMost = 512
	// headerAtMost bounds the header of a request, in bytes.
	headerAtMost = 16 << 10
	// requestWithin bounds how long a request may take to arrive, and an answer to leave.
	requestWithin = 15 * time.Second
)

// addressesOf asks the servers for the addresses of their connections.
func addressesOf(to *target, logger *slog.Logger) *survey.Addresses {
	return &survey.Addresses{
		Servers: strings.Split(to.servers, ","),
		Dial: func(ctx context.Context, server string) (net.Conn, error) {
			return dialServer(ctx, server, to.tls)
		},
		Silent: func(server string, err error) {
			logger.Warn("zklock serve: a server does not tell the addresses of sessions",
				"server", server, "error", err)
		},
	}
}

// serve answers until ctx is done.
func (s *pageServer) serve(
	ctx context.Context, client *recipes.Client, listener net.Listener, to *target,
) error {
	logger := slog.New(slog.NewTextHandler(s.stderr, nil))
	site, seen := web.New(web.Config{
		Access:  web.Access{Hosts: s.hosts, Token: s.token, Secure: s.cert != ""},
		Name:    "zklock",
		Servers: to.servers + strings.TrimSuffix(to.chroot, "/"), Roots: s.survey.Roots,
		Log: logger,
	})
	counts := metrics.New(s.maxPaths, s.survey.Roots)
	s.survey.Seen = func(e survey.Event) {
		counts.Seen(e)
		seen(e)
	}
	if s.addresses {
		s.survey.Addresses = addressesOf(to, logger)
	}
	locks := survey.New(client, s.survey)
	server := &http.Server{
		Handler:           site.Handler(locks, counts.Handler(locks, logger)),
		ReadHeaderTimeout: requestWithin, ReadTimeout: requestWithin,
		WriteTimeout: requestWithin, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: headerAtMost, BaseContext: func(net.Listener) context.Context {
			return ctx
		},
		ErrorLog: log.New(io.Discard, "", 0), // whoever hangs up would fill it
	}
	scheme := "http"
	if s.cert != "" {
		scheme = "https"
	}
	say(s.stderr, fmt.Sprintf("serving on %s://%s/", scheme, listener.Addr()))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- locks.Run(ctx) }()
	go func() {
		<-ctx.Done()
		_ = server.Close()
		client.Close() // ends the requests that are under way
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		cancel(err)
	}
	return <-ended
}
