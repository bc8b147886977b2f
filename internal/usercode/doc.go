// Package usercode runs code of the user's on the library's own goroutines: log handlers,
// dialers, host providers, mechanisms of SASL, callbacks of TLS. Where such code panics,
// or ends its goroutine by runtime.Goexit, it must not take along what the goroutine was
// for: nobody else would do that. On the goroutine of a caller such code is called as it
// is: there the caller can recover, and what was begun is undone (znode.OrWithdraw).
//
// # Goroutines
//
// [Contain] starts one for each call, and waits for its end. The package has no state.
package usercode
