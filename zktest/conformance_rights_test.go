package zktest_test

import (
	"crypto/sha1" //nolint:gosec // the scheme digest's own
	"encoding/base64"
	"testing"

	"github.com/zkrecipes/recipes/internal/zkserver"
	"github.com/zkrecipes/recipes/zktest"
)

// superFlag makes a real server know a super user, by USER:PASSWORD.
func superFlag(login string) string {
	sum := sha1.Sum([]byte(login)) //nolint:gosec // the scheme digest's own
	return "-Dzookeeper.DigestAuthenticationProvider.superDigest=super:" +
		base64.StdEncoding.EncodeToString(sum[:])
}

// TestConformanceSuperUser compares what ACLs are to a super user.
func TestConformanceSuperUser(t *testing.T) {
	zkserver.Real(t, "a super user by the digest of a password")
	genuine := zkserver.Start(t, zkserver.Tick(tick), zkserver.MaxSession(usual),
		zkserver.JVM(superFlag("super:secret")))
	fake := zktest.Start(t, zktest.WithTick(tick), zktest.WithMaxSession(usual),
		zktest.WithSuperUser("super", "secret"))
	conform(t, genuine.Servers[0].Addr, fake.Addrs()[0], `
		r0 create /ro x persistent world:r
		r0 create /bobs x persistent bob:cdrwa
		r0 auth 0 digest super:wrong
		r0 getData /bobs
		r1 auth 0 digest super:secret
		r1 whoAmI
		r1 getData /bobs watch
		r1 getACL /bobs
		r1 setData /ro y -1
		r1 create /ro/child x
		r1 create /own x persistent auth:cdrwa
		r1 getACL /own
		r1 create /wrong x persistent super/:r
		r1 setACL /ro none -1
		r1 setACL /ro bob:r -1
		r1 countChildren /ro
		r1 delete /ro/child -1
		r2 auth 0 digest bob:secret
		r2 setData /bobs z -1
		r2 getACL /ro
		r1 multi create /ro/m x persistent ; check /bobs -1
		r1 setData !/zookeeper/config x -1
		r1 getData !/zookeeper/config
		r1 delete !/zookeeper/config -1
		r1 setACL !/zookeeper/config world:r -1
		r1 connect as=r1
		r1 getData /bobs
	`)
}

// quotas are those of one path, and what servers note of it. The base stands for the
// path of the script.
const quotas = `
	c0 create !/zookeeper/quota/q null
	c0 create !/q 123
	c0 create !/q/before 12345
	c0 create !/zookeeper/quota/q/zookeeper_limits count=2,bytes=10
	c0 get !/zookeeper/quota/q/zookeeper_limits
	c0 create !/zookeeper/quota/q/zookeeper_stats count=0,bytes=0
	c0 get !/zookeeper/quota/q/zookeeper_stats
	c0 create !/q/after x
	c0 create !/q/after/below big:20
	c0 create !/qq big:20
	c0 get !/zookeeper/quota/q/zookeeper_stats
	c0 set !/q/before x
	c0 set !/q null
	c0 get !/zookeeper/quota/q/zookeeper_stats
	c0 delete !/q/after/below
	c0 multi create !/q/e x ephemeral ; delete !/q/after
	c0 get !/zookeeper/quota/q/zookeeper_stats
	c0 create !/zookeeper/quota/q/after null
	c0 create !/zookeeper/quota/q/after/zookeeper_stats count=-1,bytes=-1
	c0 create !/zookeeper/quota/q/after/zookeeper_limits count=1,bytes=-1
	c0 create !/q/after xx
	c0 create !/q/after/n xxx
	c0 get !/zookeeper/quota/q/zookeeper_stats
	c0 get !/zookeeper/quota/q/after/zookeeper_stats
	c0 close
	c1 get !/zookeeper/quota/q/zookeeper_stats
	c1 delete !/zookeeper/quota/q/after/zookeeper_limits
	c1 delete !/q/after/n
	c1 get !/zookeeper/quota/q/zookeeper_stats
	c1 get !/zookeeper/quota/q/after/zookeeper_stats
	c1 set !/zookeeper/quota/q/zookeeper_limits count=1,bytes=1
	c1 set !/q big:100
	c1 get !/zookeeper/quota/q/zookeeper_stats
	c1 delete !/zookeeper/quota/q/zookeeper_stats
	c1 set !/q big:10
	c1 delete !/zookeeper/quota/q/zookeeper_limits
	c1 exists !/zookeeper/quota/q
`

// TestConformanceQuotas compares what servers make of quotas: an account, and no more.
func TestConformanceQuotas(t *testing.T) {
	needsGenuine(t)
	genuine := zkserver.Start(t, zkserver.Tick(tick), zkserver.MaxSession(usual))
	fake := zktest.Start(t, zktest.WithTick(tick), zktest.WithMaxSession(usual))
	conform(t, genuine.Servers[0].Addr, fake.Addrs()[0], quotas)
}

// TestConformanceReconfig compares reconfig, and the configuration that clients see: of a
// server on its own and of an ensemble, with and without reconfigEnabled.
func TestConformanceReconfig(t *testing.T) {
	zkserver.Real(t, "a super user by the digest of a password")
	for name, one := range map[string]struct {
		servers int
		enabled bool
	}{
		"standalone": {1, false}, "standalone, enabled": {1, true},
		"ensemble": {3, false}, "ensemble, enabled": {3, true},
	} {
		t.Run(name, func(t *testing.T) {
			line := "reconfigEnabled=false"
			options := []zktest.Option{
				zktest.WithTick(tick), zktest.WithMaxSession(usual),
				zktest.WithServers(one.servers), zktest.WithSuperUser("super", "secret"),
			}
			if one.enabled {
				line = "reconfigEnabled=true"
				options = append(options, zktest.WithReconfig())
			}
			genuine := zkserver.Start(t, zkserver.Servers(one.servers),
				zkserver.Tick(tick), zkserver.MaxSession(usual), zkserver.Config(line),
				zkserver.JVM(superFlag("super:secret")))
			fake := zktest.Start(t, options...)
			conform(t, roles(t, genuine.Connect())[mode(one.servers)],
				roles(t, fake.Addrs())[mode(one.servers)], reconfigs)
		})
	}
}

func mode(servers int) string {
	if servers == 1 {
		return "standalone"
	}
	return "follower"
}

// reconfigs are requests to change the ensemble.
const reconfigs = `
	r0 getData !/zookeeper/config watch
	r0 reconfig null null null -1
	r0 reconfig null 1,2 null -1
	r0 reconfig null x null -1
	r0 reconfig null null "" -1
	r0 reconfig null null server.1=nowhere -1
	r0 reconfig server.4=127.0.0.1:1:2 null null -1
	r0 reconfig server.4 null null -1
	r0 reconfig nonsense=127.0.0.1:1:2;3 null null -1
	r0 reconfig server.4=127.0.0.1:1:2;3 null null -1
	r0 reconfig null null null 5
	r0 getData !/zookeeper/config
	r1 auth 0 digest super:secret
	r1 reconfig null null null 5
	r1 reconfig server.4=127.0.0.1:1:2;3,server.5=127.0.0.1:4:5;6,server.6=127.0.0.1:7:8;9 null null -1
	r1 reconfig server.4=127.0.0.1:1:2;3 null null -1
	r1 getData !/zookeeper/config
	r1 reconfig null 4 null 4294967296
	r1 reconfig null 4 null -1
	r1 getData !/zookeeper/config
	r1 exists .
`
