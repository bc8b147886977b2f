// Package kdc gives tests a real Kerberos: MIT's key distribution center, as Debian's
// packages krb5-kdc, krb5-admin-server and krb5-user install it. Each one listens on a
// port of loopback, has all its files in a temporary directory, needs no root, and ends
// with the process that started it, however that ends.
//
// A test that needs one fails with a sentence that says how to get it if the programs are
// missing; it is skipped only under -short.
package kdc
