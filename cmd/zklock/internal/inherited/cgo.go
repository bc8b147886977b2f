//go:build cgo

package inherited

/*
#include <signal.h>

static unsigned long long ignored;

__attribute__((constructor)) static void note(void) {
	for (int s = 1; s < NSIG && s <= 64; s++) {
		struct sigaction now;
		if (sigaction(s, 0, &now) == 0 && now.sa_handler == SIG_IGN)
			ignored |= 1ull << (s - 1);
	}
}

static unsigned long long inherited_ignored(void) { return ignored; }
*/
import "C"

func atStart() uint64 { return uint64(C.inherited_ignored()) | byRuntime() }
