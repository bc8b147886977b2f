package zkserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
)

var errPortTaken = errors.New("a port was taken by somebody else")

// portTaken tells by what Java or a container engine says whether a start failed for want
// of its port.
func portTaken(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "address already in use") ||
		strings.Contains(text, "port is already allocated")
}

// freePorts returns n ports that are free on loopback now. They lie below the range that
// systems take the ports of outgoing connections from: else a client that knocks at a
// killed server could be given the very port that the server needs for its restart.
func freePorts(n int) ([]int, error) {
	const low, high, tries = 20_000, 32_000, 1000
	var ports []int
	for range tries {
		if len(ports) == n {
			return ports, nil
		}
		port := low + rand.IntN(high-low)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		// Kept until all are chosen, so that they differ.
		defer l.Close()
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("zkserver: no %d free ports from %d to %d", n, low, high)
}

const loopback = "127.0.0.1"
