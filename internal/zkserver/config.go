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
	if s.sasl() {
		all = append(all, "authProvider.1=org.apache.zookeeper.server.auth."+
			"SASLAuthenticationProvider")
	}
	all = append(append(all, lines...), s.config...)
	return strings.Join(all, "\n") + "\n"
}

// sasl says whether the servers take logins by SASL.
func (s settings) sasl() bool { return s.saslUsers != nil || s.kerberos != nil }

// jaas is the file by which a server knows the users of SASL, or itself.
func (s settings) jaas() string {
	var b strings.Builder
	b.WriteString("Server {\n")
	if k := s.kerberos; k != nil {
		fmt.Fprintf(&b, "  com.sun.security.auth.module.Krb5LoginModule required\n"+
			"  useKeyTab=true keyTab=%q\n"+
			"  storeKey=true useTicketCache=false\n"+
			"  principal=%q", k.keytab, k.principal)
	} else {
		b.WriteString("  org.apache.zookeeper.server.auth.DigestLoginModule required")
	}
	for user, password := range s.saslUsers {
		fmt.Fprintf(&b, "\n  user_%s=\"%s\"", user, password)
	}
	b.WriteString(";\n};\n")
	return b.String()
}

// jaasFlags tell Java where that file is, and krb5.conf, and that its users may log in.
func (s settings) jaasFlags(file string) []string {
	if !s.sasl() {
		return nil
	}
	flags := []string{
		"-Djava.security.auth.login.config=" + file,
		// With its default, 3.9.6 does not accept DIGEST-MD5.
		"-Dzookeeper.fips-mode=false",
	}
	if s.kerberos != nil {
		flags = append(flags, "-Djava.security.krb5.conf="+s.kerberos.config)
	}
	return flags
}
