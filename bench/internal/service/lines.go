package service

import (
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// Lines are the ways to the servers of a service.
type Lines struct {
	Addrs   []string // where clients dial
	proxies []*toxiproxy.Proxy
}

// OpenLines opens lines on which each round trip takes longer by delay, a multiple of a
// millisecond. All of it is on the way back: a notification takes as long as the answer
// to a request, and a hand-over, a request here and a notification there, one round trip.
// A delay of 0 takes no proxy.
func OpenLines(addrs []string, delay time.Duration) (*Lines, error) {
	if delay == 0 {
		return &Lines{Addrs: addrs}, nil
	}
	l := &Lines{}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for _, addr := range addrs {
		proxy := toxiproxy.NewProxy(server, "line to "+addr, "127.0.0.1:0", addr)
		if err := proxy.Start(); err != nil {
			l.Close()
			return nil, fmt.Errorf("start a proxy of %s: %w", addr, err)
		}
		l.proxies = append(l.proxies, proxy)
		l.Addrs = append(l.Addrs, proxy.Listen)
		toxic := fmt.Sprintf(`{"type": "latency", "name": "delay", "stream": "downstream",
			"attributes": {"latency": %d}}`, delay.Milliseconds())
		_, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic))
		if err != nil {
			l.Close()
			return nil, fmt.Errorf("delay the line to %s: %w", addr, err)
		}
	}
	return l, nil
}

// Close hangs up.
func (l *Lines) Close() {
	for _, p := range l.proxies {
		p.Stop()
	}
}
