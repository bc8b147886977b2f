package interop_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// around are programs around the lines of docs/appendix/zktest-java-python.md that start
// a zktest. Each uses the client of these lines, and then says that all went well.
var around = map[string]string{
	"java": `
		import org.apache.curator.framework.*;
		import org.apache.curator.retry.RetryOneTime;
		public final class Child {
			public static void main(String[] arguments) throws Exception {
				LINES
				client.start();
				client.create().forPath("/child");
				System.out.println("children: " + client.getChildren().forPath("/"));
				System.out.println("servers: " + servers);
				client.close();
			}
		}`,
	"python": `
import subprocess
from kazoo.client import KazooClient
LINES
client.start()
client.create("/child")
print("children:", client.get_children("/"))
print("servers:", servers)
client.stop()`,
	// The package of the client is not Debian's: this one speaks as much of the protocol.
	"js": `
const child_process = require("child_process"), events = require("events")
const readline = require("readline"), net = require("net")

const int = n => Buffer.from([n >> 24, n >> 16, n >> 8, n])
const text = s => Buffer.concat([int(s.length), Buffer.from(s)])
const anyone = Buffer.concat([int(1), int(31), text("world"), text("anyone")])

const zookeeper = {createClient: servers => {
	const [host, port] = servers.split(":"), socket = net.connect(port, host)
	return {
		async ask(...fields) {
			const body = Buffer.concat(fields)
			socket.write(Buffer.concat([int(body.length), body]))
			let answer = Buffer.alloc(0)
			while (answer.length < 4 || answer.length < 4 + answer.readInt32BE()) {
				answer = Buffer.concat([answer, ...await events.once(socket, "data")])
			}
			return answer.subarray(4)
		},
	}
}}

async function test() {
	LINES
	await client.ask(Buffer.alloc(44)) // the handshake, with the shortest timeout
	await client.ask(int(1), int(1), text("/child"), text(""), anyone, int(0))
	const children = await client.ask(int(2), int(8), text("/"), int(0))
	console.log("children: " + children.toString("latin1").replace(/[^a-z]+/g, " "))
	console.log("servers: " + servers)
	process.exit()
}
test()`,
}

var errNoNode = errors.New("interop: no node: install Node.js (Debian: apt-get install " +
	"nodejs)")

// TestChildren runs the lines of docs/appendix/zktest-java-python.md as programs of their
// languages. Each program leaves its zktest behind, which has to end by itself.
func TestChildren(t *testing.T) {
	needsOthers(t)
	page, err := os.ReadFile("../../docs/appendix/zktest-java-python.md")
	require.NoError(t, err)
	programs := t.TempDir()
	build := exec.Command("go", "build", "-o", programs, "../../cmd/zktest")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	blocks := regexp.MustCompile("(?s)```(java|python|js)\n(.*?)```").
		FindAllStringSubmatch(string(page), -1)
	require.Len(t, blocks, len(around))
	for _, block := range blocks {
		language, lines := block[1], block[2]
		t.Run(language, func(t *testing.T) {
			text := strings.Replace(around[language], "LINES", lines, 1)
			program := childProgram(t, language, text)
			program.WaitDelay = 20 * time.Second // its zktest may have its output
			out, err := program.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Regexp(t, "(?m)^children: .*child", string(out))
			servers := regexp.MustCompile("(?m)^servers: (.*)$").FindSubmatch(out)
			require.NotNil(t, servers, string(out))
			require.Eventually(t, func() bool {
				conn, err := net.Dial("tcp", string(servers[1]))
				return err != nil || conn.Close() != nil
			}, 20*time.Second, 50*time.Millisecond, "it outlives the program")
		})
	}
}

// childProgram returns how a program is run, once it is compiled.
func childProgram(t *testing.T, language, text string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), map[string]string{
		"java": "Child.java", "python": "child.py", "js": "child.js",
	}[language])
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	switch language {
	case "java":
		home, err := findJavaHome()
		mustHave(t, err)
		return exec.Command(home.java, "-cp", home.classpath, file)
	case "python":
		python, err := findPython()
		mustHave(t, err)
		return exec.Command(python, file)
	default:
		node, err := exec.LookPath("node")
		if err != nil {
			err = fmt.Errorf("%w: %w", errNoNode, err)
		}
		mustHave(t, err)
		return exec.Command(node, file)
	}
}
