package main

import (
	"strings"

	"github.com/urfave/cli/v3"
)

// examples are those of a command, as one types them.
var examples = map[string][]string{
	"zklock": {
		"zklock --servers zk1:2181,zk2:2181/app run /locks/report -- make report",
		"ZOOKEEPER_SERVERS=zk1:2181,zk2:2181 zklock ls -r /",
	},
	"run": {
		"zklock run -w 5 /locks/report -- make report",
		"zklock run -s /locks/data -- sh -c 'tar -c data | gzip >data.tgz'",
	},
	"once": {
		"zklock once --per 24h /cron/report -- make report",
		"zklock once --per 1h --retry /cron/fetch -- ./fetch --all",
	},
	"lead": {
		"zklock lead /leaders/scheduler -- ./scheduler",
		"zklock --session-timeout 10s lead --kill-after 1s /leaders/web -- ./web -p 80",
	},
	"register": {
		"zklock register /services/web/host-1 -- ./web -p 80",
		"zklock register --keep --data 10.0.0.1:80 /services/web/host-1 -- ./web -p 80",
	},
	"ls": {
		"zklock ls /locks/report",
		"zklock ls -r --json / | jq -r '.[] | select(.state == \"holds\").node'",
	},
	"watch": {
		"zklock watch /locks/report",
		"zklock watch /leaders/scheduler >>leaders.log",
	},
	"revoke": {
		"zklock revoke /locks/report/_c_5c5ad0a8-2a3c-4e67-8f0e-d3c1e0a2f6b1-" +
			"lock-0000000007",
		"zklock revoke \"$(zklock ls --json /locks/report | jq -r '.[0].node')\"",
	},
	"evict": {
		"zklock evict /locks/report/_c_5c5ad0a8-2a3c-4e67-8f0e-d3c1e0a2f6b1-" +
			"lock-0000000007",
		"zklock evict --yes \"$(zklock ls --json /locks/report | jq -r '.[0].node')\"",
	},
	"doctor": {
		"zklock doctor /locks/report",
		"zklock doctor --deadlocks /locks",
	},
	"serve": {
		"zklock serve /locks /leaders",
		"zklock serve --listen :8632 --public --host locks.example.com " +
			"--token @/etc/zklock.token",
	},
	"gc": {
		"zklock gc /locks",
		"zklock gc --age 720h --delete /locks",
	},
	"prove": {
		"zklock prove --for 10m",
		"zklock prove --calm --rate 50 --json history.json --html report.html",
	},
	"help": {"zklock help run", "zklock help | less"},
	"man":  {"zklock man | man -l -", "zklock man >/usr/local/share/man/man1/zklock.1"},
	"completion": {
		"source <(zklock completion bash)",
		"zklock completion fish >~/.config/fish/completions/zklock.fish",
	},
}

const exampleTitle = "Examples:\n"

// describe adds the examples to what is said of each command, before the exit codes.
func describe(app *cli.Command) {
	app.Description = about + exampleList(app.Name) + exitTable
	for _, cmd := range app.Commands {
		text := strings.TrimSuffix(cmd.Description, exitCodes)
		cmd.Description = text + exampleList(cmd.Name) + exitCodes
	}
}

func exampleList(name string) string {
	return exampleTitle + "  " + strings.Join(examples[name], "\n  ") + "\n\n"
}
