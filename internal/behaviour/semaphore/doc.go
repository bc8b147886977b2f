// Package semaphore shows what a program sees of semaphores, of their leases, and of the
// maximum that processes share. It consists of tests.
package semaphore
