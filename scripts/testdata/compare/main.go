// Compare starts a server, and prints a row of a table: how long its start takes, how
// many writes it does in a second, and how much memory it has.
//
//	compare LASTING NAME ADDRESS COMMAND...
//
// LASTING is for how long it writes between two looks at the memory, such as 30s.
package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	clients = 1000
	znodes  = 100_000
	writing = 5 * time.Second
)

func main() {
	lasting, err := time.ParseDuration(os.Args[1])
	must(err)
	name, addr, command := os.Args[2], os.Args[3], os.Args[4:]
	server := exec.Command(command[0], command[1:]...)
	began := time.Now()
	must(server.Start())
	defer func() { _ = server.Process.Kill() }() // nothing is lost
	if !serves(addr) {
		_ = server.Process.Kill() // likewise
		log.Fatalf("%s does not serve at %s after a minute", name, addr)
	}
	start := time.Since(began)
	idle := memory(server.Process.Pid)

	one := connect(addr)
	rate := write(one, writing) / int(writing.Seconds())
	early := memory(server.Process.Pid)
	write(one, lasting)
	growth := memory(server.Process.Pid) - early
	fill(one, addr)
	fmt.Printf("| %s | %d ms | %d | %d MB | %+d MB | %d MB |\n", name,
		start.Milliseconds(), rate, idle, growth, memory(server.Process.Pid))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// serves waits until a server serves, for a minute.
func serves(addr string) bool {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if _, ok := zk.FLWSrvr([]string{addr}, time.Second); ok {
			return true
		}
		if conn, err := net.Dial("tcp", addr); err == nil {
			_, _ = conn.Write([]byte("srvr")) // of 3.8, whose date the client cannot read
			text, _ := bufio.NewReader(conn).ReadString(':')
			_ = conn.Close()
			if strings.HasPrefix(text, "Zookeeper version") {
				return true
			}
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func connect(addr string) *zk.Conn {
	conn, _, err := zk.Connect([]string{addr}, time.Minute, zk.WithLogInfo(false))
	must(err)
	_, _, err = conn.Exists("/")
	must(err)
	return conn
}

// write creates and deletes for a while, by 16 users of one connection, and returns how
// many pairs of both there were.
func write(conn *zk.Conn, d time.Duration) int {
	var pairs atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for i := range 16 {
		all.Go(func() {
			path := fmt.Sprint("/", i)
			for time.Now().Before(end) {
				_, err := conn.Create(path, make([]byte, 100), 0, zk.WorldACL(zk.PermAll))
				must(err)
				must(conn.Delete(path, -1))
				pairs.Add(1)
			}
		})
	}
	all.Wait()
	return int(pairs.Load())
}

// fill opens sessions, and creates znodes.
func fill(conn *zk.Conn, addr string) {
	for range clients {
		connect(addr)
	}
	var all sync.WaitGroup
	for user := range 16 {
		all.Go(func() {
			for i := user; i < znodes; i += 16 {
				_, err := conn.Create(fmt.Sprintf("/n-%d", i), make([]byte, 100), 0,
					zk.WorldACL(zk.PermAll))
				must(err)
			}
		})
	}
	all.Wait()
}

// memory is the resident memory of a process, in MB.
func memory(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(err)
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kilobytes, err := strconv.Atoi(strings.Fields(after)[0])
	must(err)
	return kilobytes >> 10
}
