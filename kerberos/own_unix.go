//go:build unix

package kerberos

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// withoutWaiting opens a named pipe at once, too.
const withoutWaiting = syscall.O_NONBLOCK

// checkOwn returns an error for what is not a file of the user of this process, or is
// open to others.
func checkOwn(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return fmt.Errorf("is no file: %v", mode)
	case ok && int64(stat.Uid) != int64(os.Geteuid()):
		return fmt.Errorf("belongs to the user %d: must belong to the user of this "+
			"process, %d", stat.Uid, os.Geteuid())
	case mode.Perm()&0o077 != 0:
		return fmt.Errorf("has the mode %04o: must be 0600; chmod 600", mode.Perm())
	}
	return nil
}
