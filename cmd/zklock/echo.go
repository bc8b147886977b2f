package main

import (
	"errors"
	"net"
	"strings"
)

// notShown stands in an error for what looks like credentials: they are secret, and
// errors go to logs, and to the mails of cron.
const notShown = "(not shown: it may have a password in it)"

// echo is what an error shows of an argument: all of it, unless it looks like
// credentials. It is for what may stand in the wrong place.
func echo(argument string) string {
	if name, _, valued := strings.Cut(argument, "="); valued && dash(argument) {
		argument = name // of a flag; and its value is none of what is wrong
	}
	if secret(argument) {
		return notShown
	}
	return argument
}

// echoAll is echo of several arguments.
func echoAll(arguments []string) string {
	shown := make([]string, len(arguments))
	for i, argument := range arguments {
		shown[i] = echo(argument)
	}
	return strings.Join(shown, " ")
}

func dash(argument string) bool { return strings.HasPrefix(argument, "-") }

// secret tells whether something may be USER:PASSWORD, with a scheme or what else before
// it. A path may have colons in it.
func secret(text string) bool {
	return strings.Contains(text, ":") && !strings.HasPrefix(text, "/")
}

// wantPath says what a path is.
const wantPath = `a path, which begins with "/"`

const wantFile = "the name of a file"

// hide is an error about a value that shows the value, unless that looks like
// credentials. What is wanted instead is said by want.
func hide(err error, value, want string) error {
	if secret(value) {
		return errors.New(notShown + ": want " + want)
	}
	return err
}

// hideServers is hide for a connect string, in which colons are nothing special.
func hideServers(err error, value string) error {
	hosts, chroot, _ := strings.Cut(value, "/")
	hidden := strings.Contains(chroot, ":")
	for host := range strings.SplitSeq(hosts, ",") {
		hidden = hidden || !isAddress(strings.TrimSpace(host))
	}
	if hidden {
		return errors.New(notShown + ": want HOST:PORT,HOST:PORT/CHROOT, with a PORT " +
			"from 1 to 65535 or none")
	}
	return err
}

// isAddress tells whether something has the form of HOST, HOST:PORT or an IPv6 address,
// the port of digits.
func isAddress(host string) bool {
	if net.ParseIP(host) != nil {
		return true
	}
	name, port, _ := strings.Cut(host, ":")
	if strings.HasPrefix(host, "[") {
		name, port, _ = strings.Cut(host[1:], "]")
		port = strings.TrimPrefix(port, ":")
		return net.ParseIP(name) != nil && strings.Trim(port, "0123456789") == ""
	}
	return !strings.Contains(name, "@") && strings.Trim(port, "0123456789") == ""
}
