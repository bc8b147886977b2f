// Command containers starts containers for package zkserver and is its way to a container
// engine. It is a program, in a module of its own, so that the library's go.mod does not
// name what testcontainers-go needs.
//
// It serves the methods of engine by JSON-RPC: it reads requests from standard input and
// writes replies to standard output. At the end of the input it removes every container
// and network that it created and has not yet removed, and exits. The system closes the
// input when the parent process ends, however it ends. If this program is killed too,
// testcontainers' reaper removes the containers.
//
// It knows nothing of ZooKeeper: the requests say what a container has inside.
package main
