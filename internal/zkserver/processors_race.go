//go:build race

package zkserver

func oneProcessor() {}
