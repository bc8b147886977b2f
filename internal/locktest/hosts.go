package locktest

import "github.com/go-zookeeper/zk"

// inOrder is a [zk.HostProvider] that keeps the order of the connect string, and looks no
// name up. The zero value is ready for use, by one client.
type inOrder struct {
	servers []string
	next    int
}

var _ zk.HostProvider = (*inOrder)(nil)

// Init implements [zk.HostProvider].
func (o *inOrder) Init(servers []string) error { o.servers = servers; return nil }

// Len implements [zk.HostProvider].
func (o *inOrder) Len() int { return len(o.servers) }

// Connected implements [zk.HostProvider].
func (o *inOrder) Connected() {}

// Next implements [zk.HostProvider].
func (o *inOrder) Next() (server string, retryStart bool) {
	i := o.next
	o.next++
	return o.servers[i%len(o.servers)], i > 0 && i%len(o.servers) == 0
}
