package zktest

import (
	"crypto/tls"
	"errors"
	"net"
)

// WithTLS makes all that listens (Addrs) speak TLS and nothing else, as a server with a
// secureClientPort and no clientPort. A client that shows a certificate, which config has
// to ask for, is x509 with the name of its subject in ACLs. Links and Dial, which use no
// network, have no TLS.
func WithTLS(config *tls.Config) Option {
	config = config.Clone()
	return option(func(s *settings) {
		s.tls = config
		switch {
		case config == nil:
			s.optionErr = errors.New("zktest: WithTLS: config is nil")
		case len(config.Certificates) == 0 && config.GetCertificate == nil &&
			config.GetConfigForClient == nil:
			s.optionErr = errors.New("zktest: WithTLS: config has no certificate")
		}
	})
}

// secureLocked puts TLS over what a listener has accepted, if it is asked for. The
// handshake is at the first read.
func (c *Cluster) secureLocked(accepted net.Conn) net.Conn {
	if c.tls == nil {
		return accepted
	}
	return secured{tls.Server(accepted, c.tls)}
}

// A secured connection closes without a farewell, which could block.
type secured struct{ *tls.Conn }

func (s secured) Close() error { return s.NetConn().Close() }

// certifiedLocked adds to what the client is that which its certificate says.
func (c *conn) certifiedLocked() {
	over, ok := c.net.(secured)
	if !ok {
		return
	}
	if shown := over.ConnectionState().PeerCertificates; len(shown) > 0 {
		c.identifyLocked(identity{"x509", shown[0].Subject.String()})
	}
}
