// The program show says which signals were blocked when it was started, and which ignored,
// as /proc/self/status does.
package main

import (
	"fmt"
	"syscall"

	"github.com/zkrecipes/recipes/cmd/zklock/internal/inherited"
)

func main() {
	fmt.Printf("SigBlk:\t%016x\n", mask(inherited.Blocked()))
	fmt.Printf("SigIgn:\t%016x\n", mask(inherited.Ignored()))
}

func mask(signals []syscall.Signal) (bits uint64) {
	for _, s := range signals {
		bits |= 1 << (s - 1)
	}
	return bits
}
