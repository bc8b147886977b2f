package interop_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// around are programs around the lines of docs/foreign.md that start a zktest. Each uses
// the client of these lines, and then says that all went well.
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
client.stop()`,
	// The package of the client is not Debian's: this one asks a server for its mode.
	"js": `
const child_process = require("child_process"), events = require("events")
const readline = require("readline"), net = require("net")
const zookeeper = {createClient: servers => net.connect(servers.split(":")[1])}
async function test() {
	LINES
	client.write("srvr")
	const [answer] = await events.once(client, "data")
	console.log("children:", String(answer).includes("Mode: standalone") && "child")
	process.exit()
}
test()`,
}

// TestChildren runs the lines of docs/foreign.md as programs of their languages.
func TestChildren(t *testing.T) {
	page, err := os.ReadFile("../docs/foreign.md")
	require.NoError(t, err)
	programs := t.TempDir()
	build := exec.Command("go", "build", "-o", programs, "../cmd/zktest")
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
			out, err := childProgram(t, language, text).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Regexp(t, "(?m)^children: .*child", string(out))
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
			t.Skip("there is no node")
		}
		return exec.Command(node, file)
	}
}
