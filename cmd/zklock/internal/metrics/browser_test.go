package metrics_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/zkrecipes/recipes"
	"github.com/zkrecipes/recipes/cmd/zklock/internal/metrics"
	"github.com/zkrecipes/recipes/internal/serve/survey"
	"github.com/zkrecipes/recipes/internal/serve/web"
	"github.com/zkrecipes/recipes/zktest"
)

// patience bounds what a test waits for.
const patience = time.Minute

// A scene is a site of a cluster, and a client that uses locks there.
type scene struct {
	*testing.T
	cluster *zktest.Cluster
	client  *recipes.Client
	survey  *survey.Survey
	url     string
}

// newScene is of a survey as change, if there is one, has it.
func newScene(
	t *testing.T, access web.Access, change ...func(s *scene, c *survey.Config),
) *scene {
	t.Helper()
	s := &scene{T: t, cluster: zktest.Start(t, zktest.WithServers(3))}
	s.client = s.connect()
	site, seen := web.New(web.Config{
		Access: access, Name: "zklock", Servers: "zk1:2181,zk2:2181,zk3:2181",
		Roots: []string{"/"}, Log: slog.New(slog.DiscardHandler),
	})
	metrics := metrics.New(1000, []string{"/"})
	config := survey.Config{
		Roots: []string{"/"}, Rate: 10_000, PerLock: 5, Rescan: time.Hour,
		Old: time.Hour, Seen: func(e survey.Event) { metrics.Seen(e); seen(e) },
	}
	for _, f := range change {
		f(s, &config)
	}
	s.survey = survey.New(s.connect(), config)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		_ = s.survey.Run(ctx)
		close(ended)
	}()
	server := httptest.NewServer(site.Handler(s.survey,
		metrics.Handler(s.survey, slog.New(slog.DiscardHandler))))
	s.url = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		<-ended
	})
	return s
}

func (s *scene) connect() *recipes.Client {
	s.Helper()
	client, err := recipes.Connect(s.Context(), s.cluster.ConnectString(),
		30*time.Second)
	require.NoError(s, err)
	s.Cleanup(client.Close)
	return client
}

// join queues at a path, and returns once it is in the queue: whoever joins next is
// behind it. The hold is the first's alone.
func (s *scene) join(path, data string) {
	s.Helper()
	lock, err := recipes.NewInterProcessMutex(s.client, path,
		recipes.WithData([]byte(data)))
	require.NoError(s, err)
	queued := func() (n int) { // the path itself is created before
		for _, node := range s.cluster.Znodes() {
			if strings.HasPrefix(node, path+"/") {
				n++
			}
		}
		return n
	}
	before := queued()
	go func() { _ = lock.Acquire(recipes.WithOwner(s.Context())) }()
	s.until(func() bool { return queued() > before })
}

func (s *scene) until(holds func() bool) {
	s.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		require.True(s, time.Now().Before(deadline), "it does not come")
		time.Sleep(10 * time.Millisecond)
	}
}

// knows waits until the survey knows that many participants.
func (s *scene) knows(n int) {
	s.Helper()
	s.until(func() bool {
		known := 0
		for _, l := range s.survey.State().Locks {
			known += len(l.Queue)
		}
		return known == n
	})
}

// browser starts Chromium.
func (s *scene) browser() context.Context {
	s.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
		}
	}
	if path == "" {
		const how = "chromium is not installed: on Debian, as root, apt-get " +
			"install chromium"
		if os.Getenv("MUST") == "1" {
			s.Fatal(how)
		}
		s.Skip(how)
	}
	options := append(slices.Clip(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(patience)) // it may take long to start
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	s.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	s.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 2*patience)
	s.Cleanup(cancel)
	return ctx
}

func (s *scene) do(ctx context.Context, actions ...chromedp.Action) {
	s.Helper()
	require.NoError(s, chromedp.Run(ctx, actions...))
}

// sees waits until the page has a text.
func (s *scene) sees(ctx context.Context, text string) {
	s.Helper()
	shown, err := "", error(nil)
	defer func() {
		if s.Failed() {
			s.Logf("%q is not on the page, which shows %q (%v)", text, shown, err)
		}
	}()
	s.until(func() bool { // while a page is loaded there is none
		err = chromedp.Run(ctx, chromedp.Evaluate(`document.body.innerText`, &shown))
		return err == nil && strings.Contains(shown, text)
	})
}

// press clicks the button of a form, once it is there: after another one was pressed the
// page is loaded anew. It does so in one step, since the page may be drawn anew at any
// time.
func (s *scene) press(ctx context.Context, action string) {
	s.Helper()
	s.until(func() (pressed bool) {
		err := chromedp.Run(ctx, chromedp.Evaluate(
			`(b => b !== null && (b.click(), true))`+
				`(document.querySelector('form[action="`+action+`"] button'))`, &pressed))
		return err == nil && pressed
	})
}

// text is what the page shows.
func (s *scene) text(ctx context.Context) (text string) {
	s.Helper()
	s.do(ctx, chromedp.Evaluate(`document.body.innerText`, &text))
	return text
}

// fits requires that the page is no wider than its window, and keeps a picture of it in
// $SCREENSHOTS.
func (s *scene) fits(
	ctx context.Context, name string, width, height int64, scheme string,
) {
	s.Helper()
	var over int64
	var shot []byte
	s.do(ctx, chromedp.EmulateViewport(width, height),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
		}),
		chromedp.Evaluate(`document.documentElement.scrollWidth - innerWidth`, &over),
		chromedp.ActionFunc(func(ctx context.Context) (err error) {
			shot, err = page.CaptureScreenshot().Do(ctx)
			return err
		}))
	require.LessOrEqual(s, over, int64(0), "%s is wider than %d pixels", name, width)
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		file := fmt.Sprintf("%s-%d-%s.png", name, width, scheme)
		require.NoError(s, os.WriteFile(filepath.Join(dir, file), shot, 0o600))
	}
}

// populated has the locks of a small fleet in a scene.
func populated(t *testing.T) *scene {
	t.Helper()
	s := newScene(t, web.Access{})
	s.join("/locks/report", "host-1 (pid 4711, report)")
	s.join("/locks/report", "host-2 (pid 1204, report)")
	s.join("/locks/report", "host-3 (pid 881, report)")
	s.join("/locks/backup", "db-1 (pid 77, backup.sh)")
	s.join("/locks/deploy", "ci-4 (pid 9102, deploy)")
	s.join("/locks/deploy", "ci-5 (pid 9311, deploy)")
	_, err := s.client.Create("/locks/backup/lock-0000000099", nil, 0,
		zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	s.knows(7)
	s.until(func() bool { // what the znodes hold is read after the list
		named := 0
		for _, l := range s.survey.State().Locks {
			for _, p := range l.Queue {
				if p.Data != "" {
					named++
				}
			}
		}
		return named == 6
	})
	return s
}

func TestTheList(t *testing.T) {
	s := populated(t)
	ctx := s.browser()
	s.do(ctx, chromedp.Navigate(s.url))
	s.sees(ctx, "/locks/report")
	text := s.text(ctx)
	require.Contains(t, text, "host-1 (pid 4711, report)")
	require.Contains(t, text, "belongs to no session: it blocks the queue")
	for _, width := range []int64{375, 1600} {
		for _, scheme := range []string{"light", "dark"} {
			s.fits(ctx, "list", width, 800, scheme)
		}
	}
	var title string
	s.do(ctx, chromedp.Title(&title))
	require.Equal(t, "(1) Locks · zklock", title)
	s.do(ctx, input.DispatchKeyEvent(input.KeyRawDown).WithKey("/"),
		chromedp.KeyEvent("DePLoy"))
	s.sees(ctx, "1 with “DePLoy”")
	require.NotContains(t, s.text(ctx), "host-1")
	s.do(ctx, chromedp.KeyEvent(kb.Escape))
	s.sees(ctx, "host-1")
}

// Whoever looks at a lock sees a hand-over without doing anything.
func TestAHandOverAppearsByItself(t *testing.T) {
	s := populated(t)
	ctx := s.browser()
	s.do(ctx, chromedp.Navigate(s.url+"/lock?path=/locks/report"))
	s.sees(ctx, "host-1 (pid 4711, report)")
	var state string
	holder := `document.querySelector("tr.holds .who").innerText`
	s.do(ctx, chromedp.Evaluate(holder, &state))
	require.Equal(t, "host-1 (pid 4711, report)", state)
	require.NoError(t, s.client.Delete(s.survey.State().Locks[2].Queue[0].Node, -1))
	s.do(ctx, chromedp.Poll(holder+` == "host-2 (pid 1204, report)"`, nil,
		chromedp.WithPollingTimeout(patience)))
	s.sees(ctx, "Who has left")
	for _, width := range []int64{375, 1600} {
		for _, scheme := range []string{"light", "dark"} {
			s.fits(ctx, "lock", width, 1000, scheme)
		}
	}
}

// What somebody is about to click stays where it is until the button is released.
func TestNothingGoesAwayUnderAFinger(t *testing.T) {
	s := populated(t)
	ctx := s.browser()
	s.do(ctx, chromedp.Navigate(s.url))
	s.sees(ctx, "host-1")
	var same bool
	mark := `document.querySelector("th a").marked`
	s.do(ctx, chromedp.Evaluate(
		`document.dispatchEvent(new Event("pointerdown")); `+mark+` = true`, nil))
	fetched := `performance.getEntriesByType("resource").filter(` +
		`r => r.initiatorType == "fetch").length`
	var before int
	s.do(ctx, chromedp.Evaluate(fetched, &before))
	s.join("/locks/new", "host-9")
	s.do(ctx, chromedp.Poll(fmt.Sprintf("%s > %d", fetched, before+1), nil,
		chromedp.WithPollingTimeout(patience)),
		chromedp.Evaluate(mark+` === true`, &same))
	require.True(t, same)
	s.do(ctx, chromedp.Evaluate(`document.dispatchEvent(new Event("pointerup"))`, nil))
	s.sees(ctx, "host-9")
}

// An outage shows on the page, and goes away.
func TestAKilledServer(t *testing.T) {
	s := populated(t)
	ctx := s.browser()
	s.do(ctx, chromedp.Navigate(s.url))
	s.sees(ctx, "Up to date")
	for _, server := range s.cluster.Servers() {
		server.Stop()
	}
	s.sees(ctx, "ZooKeeper does not answer")
	s.fits(ctx, "outage", 1600, 800, "light")
	for _, server := range s.cluster.Servers() {
		server.Start()
	}
	s.sees(ctx, "Up to date")
}

// What anybody may store in ZooKeeper is text, all of which can be seen.
func TestHostileText(t *testing.T) {
	const script = `<img src=x onerror="document.title='owned'"><script>alert(1)</script>`
	s := newScene(t, web.Access{})
	s.join("/locks/<b>bold</b> \u202egnp.exe", script)
	s.join("/locks/a%2Fb", "x\u200by\"'")
	s.join("/locks/a&path=/b#c?d", "{{.}}")
	s.knows(3)
	ctx := s.browser()
	s.do(ctx, chromedp.Navigate(s.url))
	s.sees(ctx, `<b>bold</b> \u202egnp.exe`)
	s.sees(ctx, `x\u200by"'`)
	s.sees(ctx, script)
	var found int
	count := `document.querySelectorAll("b, img, main script").length`
	s.do(ctx, chromedp.Evaluate(count, &found))
	require.Zero(t, found)
	for _, path := range []string{"a%2Fb", "a&path=/b#c?d", `<b>bold</b> \u202egnp.exe`} {
		s.do(ctx, chromedp.Navigate(s.url))
		s.sees(ctx, path)
		s.do(ctx, chromedp.Evaluate(fmt.Sprintf(
			`[...document.querySelectorAll("th a")].find(`+
				`a => a.textContent.includes(%q)).click()`, path), nil))
		s.sees(ctx, "Queue")
		require.Contains(t, s.text(ctx), "holds", path)
		s.do(ctx, chromedp.Evaluate(count, &found))
		require.Zero(t, found)
	}
	var title string
	s.do(ctx, chromedp.Title(&title))
	require.NotEqual(t, "owned", title)
}

// Without JavaScript the page has all that it has with it, and reloads.
func TestWithoutJavaScript(t *testing.T) {
	s := populated(t)
	ctx := s.browser()
	s.do(ctx, emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(s.url))
	var html string
	s.do(ctx, chromedp.OuterHTML("html", &html, chromedp.ByQuery))
	require.Contains(t, html, "host-1 (pid 4711, report)")
	s.join("/locks/new", "host-9")
	s.until(func() bool {
		err := chromedp.Run(ctx, chromedp.OuterHTML("html", &html, chromedp.ByQuery))
		return err == nil && strings.Contains(html, "host-9")
	})
}

// startZktest runs the command zktest, until the test ends, and returns the connect
// string and the address of its page.
func startZktest(t *testing.T) (servers, url string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "zktest")
	out, err := exec.Command("go", "build", "-o", program,
		"github.com/zkrecipes/recipes/cmd/zktest").CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command(program, "-servers", "3")
	lines, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // else it has ended
		_ = cmd.Wait()
	})
	read := bufio.NewScanner(lines)
	require.True(t, read.Scan())
	servers = read.Text()
	require.True(t, read.Scan())
	return servers, read.Text()
}

// zktest has the same page for the locks inside, with buttons for its faults, that work
// without JavaScript, too.
func TestTheButtonsOfZktest(t *testing.T) {
	for name, disabled := range map[string]bool{"script": false, "no script": true} {
		t.Run(name, func(t *testing.T) {
			s := &scene{T: t}
			ctx := s.browser()
			servers, url := startZktest(t)
			client, err := recipes.Connect(t.Context(), servers, 30*time.Second)
			require.NoError(t, err)
			t.Cleanup(client.Close)
			lock, err := recipes.NewInterProcessMutex(client, "/locks/report",
				recipes.WithData([]byte("host-1 (report)")))
			require.NoError(t, err)
			require.NoError(t, lock.Acquire(t.Context()))
			s.do(ctx, emulation.SetScriptExecutionDisabled(disabled),
				chromedp.Navigate(url))
			s.sees(ctx, "host-1 (report)")
			s.fits(ctx, "zktest", 375, 800, "light")
			s.fits(ctx, "zktest", 1600, 900, "dark")
			s.press(ctx, "/servers/1/stop")
			s.press(ctx, "/servers/2/stop")
			s.sees(ctx, "ZooKeeper does not answer")
			s.press(ctx, "/servers/1/start")
			s.sees(ctx, "Up to date")
			s.sees(ctx, "host-1 (report)")
		})
	}
}
