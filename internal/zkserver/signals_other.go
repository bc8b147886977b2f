//go:build !unix

package zkserver

import (
	"os"
	"syscall"
)

const canFreeze = false

var sigStop, sigCont os.Signal = os.Kill, os.Kill // never sent: findInstallation refuses

func ownGroup() *syscall.SysProcAttr { return nil }
