//go:build !cgo && !(linux && (amd64 || arm64))

package inherited

func atStart() uint64 { return byRuntime() }
