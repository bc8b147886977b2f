package zkserver

import (
	"fmt"
	"strings"
	"time"
)

// zooCfg is the configuration file of a server. lines are those that its source adds,
// such as the members of an ensemble.
func (s settings) zooCfg(dataDir string, clientPort int, lines []string) string {
	// Longer than a loaded machine takes to start a peer, and to schedule a busy one.
	ticks := func(d time.Duration) int64 { return max(2, int64(d/s.tick)) }
	all := []string{
		"dataDir=" + dataDir,
		fmt.Sprintf("clientPort=%d", clientPort),
		fmt.Sprintf("tickTime=%d", s.tick.Milliseconds()),
		fmt.Sprintf("maxSessionTimeout=%d", s.maxSession.Milliseconds()),
		fmt.Sprintf("initLimit=%d", ticks(10*time.Second)),
		fmt.Sprintf("syncLimit=%d", ticks(2*time.Second)),
		"maxClientCnxns=0",
		"admin.enableServer=false",
		"4lw.commands.whitelist=*",
		// A killed process loses nothing that it has written, only a machine does: so do
		// not wait for the disk.
		"forceSync=no",
	}
	all = append(append(all, lines...), s.config...)
	return strings.Join(all, "\n") + "\n"
}
