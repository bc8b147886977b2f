//go:build cgo && linux

package main

/*
#include <malloc.h>

// The C library reserves an arena of address space for each thread: under ulimit -v, the
// runtime then cannot start threads. Hardly anything here is allocated by C.
__attribute__((constructor)) static void one_arena(void) {
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
}
*/
import "C"
