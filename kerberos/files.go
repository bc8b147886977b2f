package kerberos

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
)

// enctypes are those that this module asks for, best first: the others have no tokens of
// RFC 4121, or are weak.
var enctypes = []int32{
	etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96,
	etypeID.AES256_CTS_HMAC_SHA384_192, etypeID.AES128_CTS_HMAC_SHA256_128,
}

// readConfig reads a krb5.conf. The result is not shared: gokrb5 reorders its KDCs.
func readConfig(path string) (*config.Config, error) {
	var c *config.Config
	err := guarded(func() (err error) {
		c, err = config.Load(path)
		if errors.As(err, new(config.UnsupportedDirective)) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("krb5.conf: %w", err)
	}
	c.LibDefaults.DefaultTGSEnctypeIDs = enctypes
	c.LibDefaults.DefaultTktEnctypeIDs = enctypes
	return c, nil
}

// A key of a keytab that is renewed within a second has the same time as the last one, of
// which gokrb5 takes the first: so the newest comes first. No error of gokrb5 is shown:
// some contain the file.
func readKeytab(path string, user principal) (*keytab.Keytab, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the user names it
	if err != nil {
		return nil, fmt.Errorf("keytab: %w", err)
	}
	keys := keytab.New()
	if guarded(func() error { return keys.Unmarshal(text) }) != nil {
		return nil, fmt.Errorf("keytab %s: is not a keytab, or is damaged", path)
	}
	if len(keytabTypes(keys, user)) == 0 {
		return nil, fmt.Errorf("keytab %s: has no AES key of %s", path, user)
	}
	sort.SliceStable(keys.Entries, func(i, j int) bool {
		return keys.Entries[i].KVNO > keys.Entries[j].KVNO
	})
	return keys, nil
}

// keytabTypes are those of the enctypes that a keytab has a key of user for.
func keytabTypes(keys *keytab.Keytab, user principal) []int32 {
	return slices.DeleteFunc(slices.Clone(enctypes), func(enctype int32) bool {
		_, _, err := keys.GetEncryptionKey(user.name, user.realm, 0, enctype)
		return err != nil
	})
}

// cacheFile is where kinit writes to.
func cacheFile() (path string, err error) {
	name := os.Getenv("KRB5CCNAME")
	kind, path, ok := strings.Cut(name, ":")
	switch {
	case name == "":
		return "/tmp/krb5cc_" + strconv.Itoa(os.Getuid()), nil
	case !ok || strings.Contains(kind, "/"):
		return name, nil
	case kind == "FILE":
		return path, nil
	}
	return "", fmt.Errorf("KRB5CCNAME=%s: must be FILE:path; other programs can read "+
		"no other caches, so write one by kinit -c FILE:path", name)
}

// readCache returns the ticket-granting ticket of a credential cache that lasts longest,
// and whose it is.
func readCache(path string) (ticket, principal, error) {
	text, err := readOwn(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ticket{}, principal{}, fmt.Errorf("credential cache: %w; run kinit", err)
	case err != nil:
		return ticket{}, principal{}, fmt.Errorf("credential cache: %w", err)
	}
	var found ticket
	var user principal
	err = guarded(func() error {
		var cache credentials.CCache
		if err := cache.Unmarshal(text); err != nil {
			return err
		}
		user = principal{cache.GetClientPrincipalName(), cache.GetClientRealm()}
		for _, c := range cache.GetEntries() {
			if c.Server.PrincipalName.Equal(granting(user.realm)) &&
				c.EndTime.After(found.end) {
				found = ticket{key: c.Key, end: c.EndTime, renewTill: c.RenewTill}
				if err := found.Unmarshal(c.Ticket); err != nil {
					return err
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		err = fmt.Errorf("credential cache %s: is not one, or is damaged", path)
	case found.end.IsZero():
		err = fmt.Errorf("credential cache %s: has no ticket-granting ticket of %s; "+
			"run kinit", path, user)
	}
	return found, user, err
}

// readOwn reads a file that belongs to the user of this process and is for nobody else:
// whoever can write a cache chooses who this process is, and the default one is in a
// directory in which anybody can plant a file or a link. It asks about the file that was
// opened, which cannot be exchanged any more.
func readOwn(path string) ([]byte, error) {
	//nolint:gosec // the environment names it
	file, err := os.OpenFile(path, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkOwn(info); err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return io.ReadAll(file)
}

// granting is the name of a realm's service that grants tickets.
func granting(realm string) types.PrincipalName {
	return types.PrincipalName{
		NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", realm},
	}
}

// guarded makes an error of a panic: gokrb5 trusts the lengths in files and messages.
func guarded(call func() error) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = errors.New("malformed data")
		}
	}()
	return call()
}
