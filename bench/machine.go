package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/zkrecipes/recipes/bench/internal/report"
)

// machine tells what the run is made on and with.
func machine() []report.Fact {
	facts := []report.Fact{
		{Name: "processor", Text: fmt.Sprintf("%d × %s", runtime.NumCPU(),
			field("/proc/cpuinfo", "model name", ":"))},
		{Name: "memory", Text: field("/proc/meminfo", "MemTotal", ":")},
		{Name: "system", Text: strings.Trim(
			field("/etc/os-release", "PRETTY_NAME", "="), `"`) + ", Linux " +
			text("/proc/sys/kernel/osrelease")},
		{Name: "load before the run", Text: text("/proc/loadavg")},
		{Name: "Go", Text: runtime.Version()},
	}
	info, known := debug.ReadBuildInfo()
	if !known {
		return facts
	}
	for _, dep := range info.Deps {
		switch dep.Path {
		case "github.com/go-zookeeper/zk", "go.etcd.io/etcd/client/v3",
			"github.com/go-redsync/redsync/v4", "github.com/redis/go-redis/v9":
			facts = append(facts, report.Fact{Name: dep.Path, Text: dep.Version})
		}
	}
	return facts
}

// text is what a file has, "unknown" where it cannot be read.
func text(file string) string {
	all, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(all))
}

// field is the value of the first line of a file that begins with a name.
func field(file, name, separator string) string {
	for line := range strings.Lines(text(file)) {
		key, value, ok := strings.Cut(line, separator)
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
