// Package usercode runs code of the user's on the library's own goroutines: log handlers,
// dialers, host providers, mechanisms of SASL, callbacks of TLS. If such code panics,
// or ends its goroutine by runtime.Goexit, the goroutine's own work must still be done:
// nobody else would do it. On the goroutine of a caller such code is called as it is:
// there the caller can recover, and what was begun is undone (znode.OrWithdraw).
//
// # Goroutines
//
// [Contain] starts one for each call, and waits for its end. The package has no state.
package usercode
