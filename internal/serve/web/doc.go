// Package web shows what a survey knows: as pages, as JSON and as events. It answers GET
// and HEAD alone, and changes nothing; zktest adds buttons, and answers them itself. Both
// zklock and zktest have these pages, so that they need nothing but the standard library.
// Their tests are in cmd/zklock/internal/metrics: they drive a browser.
//
//	/                     the findings, and the locks by their longest wait
//	/?q=TEXT              those whose path, recipe or participants have the text
//	/lock?path=PATH       one lock: its queue, and the last ten minutes
//	/api/locks            all that is known, in JSON; ?path=PATH: one lock, and who left
//	/api/events           events, as a server sends them; ?path=PATH: of one lock
//	/metrics              for Prometheus
//
// What comes from ZooKeeper may be anybody's: pages escape it, and show what cannot be
// seen in it. The pages need no JavaScript, and load nothing from elsewhere.
package web
