// Package outcome judges what an error proves: of a request, whether the server got it,
// whether the leader judged it, and whether a retry can fix it; of a wait, whether its
// caller left, or the connection was closed. It also has the errors by which a session is
// given up. They are pure values: the package has no state, goroutine or mutex, and asks
// nothing.
//
// # Words
//
//   - answered: of a request, that the server got it.
//   - judged: of a write, that the leader decided about it.
//   - final: of an error, that it is permanent: no retry can succeed.
//   - cancellation: that a caller's ctx was done before the answer came. What its cause
//     matches is hidden from all who judge an outcome, until WithCause.
package outcome
