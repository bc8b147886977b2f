package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes/zktest"
)

// privateCron runs cron with one crontab, where no other process sees it: in mount and
// process namespaces of its own.
const privateCron = `
mount -t tmpfs none /run && mount -t tmpfs none /etc/cron.d &&
mount -t tmpfs none /var/spool/cron/crontabs && mount --bind /dev/null /etc/crontab &&
install -m 600 "$CRONTAB" /var/spool/cron/crontabs/root && exec cron -f
`

// crontab returns the page's crontab, for this machine and every minute: with these
// servers, with bin for the directory of programs, and with its job on five machines.
func crontab(t *testing.T, servers, bin string) string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```crontab\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, block, "the page has a crontab")
	text := strings.NewReplacer(
		"zk1:2181,zk2:2181,zk3:2181", servers, "/usr/local/bin", bin,
		"0 3 * * *", "* * * * *",
	).Replace(string(block[1]))
	require.Contains(t, text, servers)
	require.Contains(t, text, bin)
	job := regexp.MustCompile(`(?m)^\* \* \* \* \* .*$`)
	require.Len(t, job.FindAllString(text, -1), 1)
	exits := "; echo $? >>" + filepath.Join(bin, "codes") + "\n"
	return job.ReplaceAllStringFunc(text, func(line string) string {
		return strings.TrimSuffix(strings.Repeat(line+exits, 5), "\n")
	})
}

// The page's crontab, as cron runs it on five machines: the report is made once. It waits
// for the next minute, so it is for scripts/soak.sh, which sets ZKLOCK_CRON, and for
// root.
func TestCrontab(t *testing.T) {
	if os.Getenv("ZKLOCK_CRON") == "" {
		t.Skip("ZKLOCK_CRON is not set: it needs root, Debian's cron and a minute")
	}
	bin := t.TempDir()
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	made := filepath.Join(bin, "made")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "make"),
		[]byte("#!/bin/sh\nsleep 2\necho \"$@\" $ZKLOCK_TOKEN >>"+made+"\n"), 0o700))
	cluster := zktest.Start(t)
	table := filepath.Join(bin, "crontab")
	text := crontab(t, cluster.ConnectString(), bin)
	require.NoError(t, os.WriteFile(table, []byte(text), 0o600))

	cron := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child",
		"--mount-proc", "sh", "-c", privateCron)
	cron.Env = append(os.Environ(), "CRONTAB="+table)
	log, err := os.Create(filepath.Join(bin, "log"))
	require.NoError(t, err)
	defer log.Close()
	cron.Stdout, cron.Stderr = log, log
	require.NoError(t, cron.Start())
	defer func() {
		_ = cron.Process.Kill() // and so all that runs below it
		_ = cron.Wait()
	}()
	codes := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		text, _ := os.ReadFile(filepath.Join(bin, "codes")) // missing at first
		if codes = string(text); strings.Count(codes, "\n") >= 5 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	said, err := os.ReadFile(log.Name())
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("0\n", 5), codes, "cron said: %s", said)
	reports, err := os.ReadFile(made)
	require.NoError(t, err)
	require.Regexp(t, `^report \d+\n$`, string(reports))
	require.Contains(t, cluster.Znodes(), "/app/cron/report/once")
}
