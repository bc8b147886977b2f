package kerberos

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
)

// replyAtMost is how long a reply of a KDC may be. A ticket with the groups of a large
// directory has some 64 KiB. The length is announced by whoever answers, before it has
// proven anything: so it is no reason to allocate.
const replyAtMost = 1 << 20

// answerWithin is how long one KDC may take to answer on one transport.
const answerWithin = 5 * time.Second

// ask sends a message to the KDCs of a realm, one after the other, and returns the first
// reply. A KDC's refusal is a [messages.KRBError]; any other error is unreachable. Like
// gokrb5, it tries UDP first with short messages, and TCP alone if krb5.conf has
// udp_preference_limit = 1.
func ask(
	ctx context.Context, c *config.Config, realm string, message []byte,
) ([]byte, error) {
	networks := []string{"tcp", "udp"}
	switch limit := c.LibDefaults.UDPPreferenceLimit; {
	case limit == 1:
		networks = networks[:1]
	case len(message) <= limit:
		slices.Reverse(networks)
	}
	var failed error
	for _, network := range networks {
		reply, err := askOver(ctx, network, c, realm, message)
		if err == nil {
			err = refusal(reply)
			var refused messages.KRBError
			if !errors.As(err, &refused) ||
				refused.ErrorCode != errorcode.KRB_ERR_RESPONSE_TOO_BIG {
				return reply, err
			}
		}
		if ctx.Err() != nil {
			return nil, unreachable{context.Cause(ctx)}
		}
		failed = errors.Join(failed, err)
	}
	return nil, unreachable{fmt.Errorf("the KDC does not answer: %w", failed)}
}

// refusal is what a reply says that grants nothing, nil if it may grant something.
func refusal(reply []byte) error {
	var refused messages.KRBError
	if refused.Unmarshal(reply) == nil {
		return refused
	}
	return nil
}

func askOver(
	ctx context.Context, network string, c *config.Config, realm string, message []byte,
) (reply []byte, err error) {
	addresses, err := kdcs(ctx, network, c, realm)
	if err != nil {
		return nil, err
	}
	var failed error
	for _, address := range addresses {
		reply, err := askOne(ctx, network, address, message)
		if err == nil {
			return reply, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s %s: %w", network, address, err))
	}
	return nil, failed
}

// kdcs returns the addresses of a realm's KDCs, in the order in which to try them.
func kdcs(
	ctx context.Context, network string, c *config.Config, realm string,
) (addresses []string, err error) {
	for _, r := range c.Realms {
		if r.Realm == realm {
			addresses = slices.Clone(r.KDC)
		}
	}
	switch {
	case len(addresses) > 0:
		//nolint:gosec // it spreads load, and is no secret
		rand.Shuffle(len(addresses), func(i, j int) {
			addresses[i], addresses[j] = addresses[j], addresses[i]
		})
		return addresses, nil
	case !c.LibDefaults.DNSLookupKDC:
		return nil, fmt.Errorf("krb5.conf names no KDC of %s", realm)
	}
	_, found, err := net.DefaultResolver.LookupSRV(ctx, "kerberos", network, realm)
	for _, srv := range found {
		host := strings.TrimSuffix(srv.Target, ".")
		addresses = append(addresses,
			net.JoinHostPort(host, strconv.Itoa(int(srv.Port))))
	}
	return addresses, err
}

// askOne asks one KDC. Its connection is closed when ctx is done.
func askOne(
	ctx context.Context, network, address string, message []byte,
) (reply []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if network == "udp" {
		reply, err = exchangeDatagrams(conn, message)
	} else {
		reply, err = exchangeStream(conn, message)
	}
	return reply, cmp.Or(context.Cause(ctx), err)
}

// exchangeDatagrams sends a message and reads the reply: one datagram each.
func exchangeDatagrams(conn net.Conn, message []byte) ([]byte, error) {
	if _, err := conn.Write(message); err != nil {
		return nil, err
	}
	reply := make([]byte, 1<<16)
	n, err := conn.Read(reply)
	return reply[:n], err
}

// exchangeStream is exchangeDatagrams on a stream, where four bytes say how long a
// message is (RFC 4120, section 7.2.2).
func exchangeStream(conn net.Conn, message []byte) ([]byte, error) {
	//nolint:gosec // a request of ours
	framed := binary.BigEndian.AppendUint32(nil, uint32(len(message)))
	if _, err := conn.Write(append(framed, message...)); err != nil {
		return nil, err
	}
	var header [4]byte
	if _, err := io.ReadFull(conn, header[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[:])
	if length > replyAtMost {
		return nil, fmt.Errorf(
			"the reply announces %d bytes: at most %d are read", length, replyAtMost)
	}
	var reply bytes.Buffer // which grows with what comes
	_, err := io.CopyN(&reply, conn, int64(length))
	return reply.Bytes(), err
}
