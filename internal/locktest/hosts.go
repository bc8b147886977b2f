package locktest

import "github.com/go-zookeeper/zk"

// InOrder is a [zk.HostProvider] that keeps the order of the connect string, and looks no
// name up. The zero value is ready for use, by one client.
type InOrder struct {
	servers []string
	next    int
}

var _ zk.HostProvider = (*InOrder)(nil)

// Init implements [zk.HostProvider].
func (o *InOrder) Init(servers []string) error { o.servers = servers; return nil }

// Len implements [zk.HostProvider].
func (o *InOrder) Len() int { return len(o.servers) }

// Connected implements [zk.HostProvider].
func (o *InOrder) Connected() {}

// Next implements [zk.HostProvider].
func (o *InOrder) Next() (server string, retryStart bool) {
	i := o.next
	o.next++
	return o.servers[i%len(o.servers)], i > 0 && i%len(o.servers) == 0
}
