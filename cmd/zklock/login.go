package main

import (
	"strings"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/kerberos"
)

// saslFile is between the user and the name of a file in --sasl-digest and --keytab.
const saslFile = ":@"

// hasLogin says whether a flag asks for SASL.
func (c *connection) hasLogin() bool {
	return c.saslDigest != "" || c.kerberos || c.keytab != ""
}

// login is nil where no flag asks for it.
func (c *connection) login() (recipes.SASL, error) {
	asked := 0
	for _, is := range []bool{c.saslDigest != "", c.kerberos, c.keytab != ""} {
		if is {
			asked++
		}
	}
	switch {
	case asked > 1:
		return nil, usage("--sasl-digest, --kerberos and --keytab exclude each other")
	case c.saslDigest != "":
		return c.digest()
	case c.keytab != "":
		return c.fromKeytab()
	case c.kerberos:
		login, err := kerberos.FromCache()
		if err != nil {
			return nil, usage("--kerberos: %w", err)
		}
		return login, nil
	}
	return nil, nil
}

// digest shows no password in an error, also not one that is given in the place of a
// file.
func (c *connection) digest() (recipes.SASL, error) {
	user, file, ok := strings.Cut(c.saslDigest, saslFile)
	if !ok || user == "" || file == "" {
		return nil, usage("--sasl-digest: want USER:@FILE, with the password in FILE")
	}
	text, err := c.secret("--sasl-digest "+user+saslFile+file, file)
	if err != nil {
		return nil, usage("--sasl-digest: %w", hide(err, file, wantFile))
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return nil, usage("--sasl-digest: %s: has no password", echo(file))
	}
	return recipes.SASLDigestMD5(user, password), nil
}

func (c *connection) fromKeytab() (recipes.SASL, error) {
	principal, file, ok := strings.Cut(c.keytab, saslFile)
	if !ok || principal == "" || file == "" {
		return nil, usage("--keytab: want PRINCIPAL:@FILE, with the key in FILE")
	}
	// It is read twice, as nobody can look at what the library reads; that says what is
	// wrong with it.
	_, _ = c.secret("--keytab "+principal+saslFile+file, file)
	login, err := kerberos.FromKeytab(principal, file)
	if err != nil {
		err = hide(hide(err, file, wantFile), principal, "NAME@REALM")
		return nil, usage("--keytab: %w", err)
	}
	return login, nil
}
