//go:build cgo

package inherited

/*
#include <signal.h>

static unsigned long long ignored, blocked;

__attribute__((constructor)) static void note(void) {
	sigset_t mask;
	sigprocmask(0, 0, &mask);
	for (int s = 1; s < NSIG && s <= 64; s++) {
		struct sigaction now;
		if (sigaction(s, 0, &now) == 0 && now.sa_handler == SIG_IGN)
			ignored |= 1ull << (s - 1);
		if (sigismember(&mask, s) == 1)
			blocked |= 1ull << (s - 1);
	}
}

static unsigned long long inherited_ignored(void) { return ignored; }
static unsigned long long inherited_blocked(void) { return blocked; }
*/
import "C"

func atStart() state {
	return state{set(C.inherited_ignored()), set(C.inherited_blocked())}
}
