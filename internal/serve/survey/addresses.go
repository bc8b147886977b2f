package survey

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zkrecipes/recipes/internal/serve/text"
)

// Addresses says how to learn the addresses of sessions: each server tells those of its
// connections with the four-letter word cons.
type Addresses struct {
	Servers []string
	// Dial connects to a server, and gives up when ctx is done.
	Dial func(ctx context.Context, server string) (net.Conn, error)
	// Silent is called once for a server that does not tell.
	Silent func(server string, err error)
}

const (
	// addressesEvery is the time between two rounds of questions.
	addressesEvery = 10 * time.Second
	// answerWithin is how long a server may take to answer.
	answerWithin = 3 * time.Second
	// answerAtMost bounds what is read of an answer, in bytes: some 50,000 connections.
	answerAtMost = 16 << 20
)

// learnAddresses asks all servers, again and again. What it knows is that of the last
// round: of a server that does not answer it is nothing.
func (s *Survey) learnAddresses(ctx context.Context) {
	from := s.config.Addresses
	silent := map[string]bool{}
	for ctx.Err() == nil {
		answers := make([]map[string]string, len(from.Servers))
		errs := make([]error, len(from.Servers))
		var asking sync.WaitGroup
		for i, server := range from.Servers {
			asking.Go(func() { answers[i], errs[i] = from.ask(ctx, server) })
		}
		asking.Wait()
		all := map[string]string{}
		for i, server := range from.Servers {
			maps.Copy(all, answers[i])
			if errs[i] != nil && !silent[server] && ctx.Err() == nil {
				silent[server] = true
				from.Silent(server, errs[i])
			}
		}
		s.mu.Lock()
		if !maps.Equal(all, s.addresses) {
			s.addresses = all
			s.changedLocked()
		}
		s.mu.Unlock()
		sleep(ctx, addressesEvery)
	}
}

// ask returns the addresses of a server's connections, by session.
func (a *Addresses) ask(
	ctx context.Context, server string,
) (all map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	conn, err := a.Dial(ctx, server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	if _, err := io.WriteString(conn, "cons"); err != nil {
		return nil, err
	}
	all = map[string]string{}
	first := ""
	lines := bufio.NewScanner(io.LimitReader(conn, answerAtMost))
	for lines.Scan() {
		if first == "" {
			first = lines.Text()
		}
		if session, address, ok := connectionIn(lines.Text()); ok {
			all[session] = address
		}
	}
	switch {
	case lines.Err() != nil:
		return nil, lines.Err()
	case first == "":
		return nil, errors.New("no answer to cons")
	case !strings.HasPrefix(first, " "):
		return nil, fmt.Errorf("the answer to cons is %q", text.Shorten(first, dataShown))
	}
	return all, nil
}

// dataShown is how much is shown of an answer that is none, in characters.
const dataShown = 100

// aConnection is a line of the answer to cons. One without a session has not got it yet,
// or asks, as we do.
var aConnection = regexp.MustCompile(`^ (\S*/\S+)\[\d+\]\(\S*,sid=0x([0-9a-f]+),`)

// connectionIn returns what a line tells of a connection. An IPv6 address has no brackets
// there, and may follow the name of its host.
func connectionIn(line string) (session, address string, ok bool) {
	found := aConnection.FindStringSubmatch(line)
	if found == nil {
		return "", "", false
	}
	id, err := strconv.ParseUint(found[2], 16, 64)
	where := found[1][strings.LastIndex(found[1], "/")+1:]
	colon := max(0, strings.LastIndex(where, ":"))
	ip, badIP := netip.ParseAddr(strings.Trim(where[:colon], "[]"))
	port, badPort := strconv.ParseUint(where[min(colon+1, len(where)):], 10, 16)
	if errors.Join(err, badIP, badPort) != nil {
		return "", "", false
	}
	at := netip.AddrPortFrom(ip.WithZone(""), uint16(port))
	return fmt.Sprintf("0x%x", id), at.String(), true
}

// locatedLocked are the participants with the addresses of their sessions.
func (s *Survey) locatedLocked(queue []Participant) []Participant {
	if len(s.addresses) == 0 {
		return queue
	}
	queue = slices.Clone(queue)
	for i := range queue {
		queue[i].Address = s.addresses[queue[i].Session]
	}
	return queue
}
