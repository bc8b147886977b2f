package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
)

// secure are the flags of TLS.
type secure struct {
	cert, key, ca string // files
	config        *tls.Config
}

func (f *secure) set(s *flag.FlagSet) {
	s.StringVar(&f.cert, "tls-cert", "", "")
	s.StringVar(&f.key, "tls-key", "", "")
	s.StringVar(&f.ca, "tls-ca", "", "")
}

// load reads the files that the flags name.
func (f *secure) load() error {
	switch {
	case f.cert == "" && f.key == "" && f.ca == "":
		return nil
	case f.cert == "" || f.key == "":
		return usageError{errors.New("TLS: want -tls-cert and -tls-key")}
	}
	own, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return usageError{fmt.Errorf("-tls-cert %s -tls-key %s: %w", f.cert, f.key, err)}
	}
	f.config = &tls.Config{
		Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12,
	}
	if f.ca == "" {
		return nil
	}
	trusted, err := os.ReadFile(f.ca)
	if err != nil {
		return usageError{fmt.Errorf("-tls-ca: %w", err)}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(trusted) {
		return usageError{fmt.Errorf("-tls-ca %s: no certificate in it", f.ca)}
	}
	f.config.ClientCAs, f.config.ClientAuth = pool, tls.RequireAndVerifyClientCert
	return nil
}
