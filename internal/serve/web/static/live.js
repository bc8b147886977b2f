// Keeps the page up to date. Without it the page reloads itself.
"use strict";

const live = document.getElementById("live");
const filter = document.querySelector("input[type=search]");
let busy = false;
let again = false;
let pressed = false;
let events;
let silence;

// patience is for how long nothing may come, in milliseconds: an event comes every 5 s.
const patience = 12000;

// inUse tells whether somebody clicks or selects something, which must not go away.
function inUse() {
  const selection = getSelection();
  return pressed || !selection.isCollapsed && live.contains(selection.anchorNode);
}
document.addEventListener("pointerdown", () => { pressed = true; });
for (const end of ["pointerup", "pointercancel"]) {
  document.addEventListener(end, () => { setTimeout(() => { pressed = false; }); });
}

// cut shows that what is seen may be old.
function cut() { document.body.classList.add("cut"); }

// refresh fetches this page again, and takes over its contents, title and icon.
async function refresh() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  try {
    const answer = await fetch(location.href, {
      cache: "no-store", headers: {Accept: "text/html"}, signal: AbortSignal.timeout(patience),
    });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("live");
    if (!fresh) throw new Error("this is another page: " + answer.status);
    if (inUse()) {
      again = true;
    } else {
      const focused = document.activeElement?.getAttribute?.("href");
      live.replaceChildren(...fresh.childNodes);
      if (focused && document.activeElement === document.body) {
        live.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
      }
      document.title = page.title;
      document.querySelector("link[rel=icon]").href = page.querySelector("link[rel=icon]").href;
    }
    document.body.classList.remove("cut");
  } catch {
    cut();
  }
  busy = false;
  if (again) {
    again = false;
    setTimeout(refresh, 250);
  }
}

// follow opens the stream of events, and another one if that falls silent: a browser opens
// none again that was refused, and does not see that a connection is dead.
function follow() {
  events?.close();
  events = new EventSource(document.body.dataset.events);
  events.addEventListener("state", () => {
    awaitEvent();
    if (!document.hidden) refresh();
  });
  events.onerror = cut;
  awaitEvent();
}
function awaitEvent() {
  clearTimeout(silence);
  silence = setTimeout(() => { cut(); follow(); }, patience);
}
follow();
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

// A button changes something. Without this the page is loaded again.
document.addEventListener("submit", async (event) => {
  if (event.target.method !== "post") return;
  event.preventDefault();
  try {
    const answer = await fetch(event.target.action, {method: "POST"});
    if (!answer.ok) alert(await answer.text());
  } catch {
    cut();
  }
  refresh();
});

// On the list the filter works as one types; elsewhere it leads to the list.
let typing;
filter.addEventListener("input", () => {
  if (location.pathname !== "/") return;
  clearTimeout(typing);
  typing = setTimeout(() => {
    history.replaceState(null, "", filter.value ? "/?q=" + encodeURIComponent(filter.value) : "/");
    refresh();
  }, 120);
});

// "/" goes to the filter, the arrows go through the links of the page.
document.addEventListener("keydown", (key) => {
  if (key.ctrlKey || key.metaKey || key.altKey) return;
  if (key.key === "/" && document.activeElement !== filter) {
    key.preventDefault();
    filter.focus();
    filter.select();
  } else if (key.key === "Escape" && document.activeElement === filter) {
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
    filter.blur();
  } else if (key.key === "ArrowDown" || key.key === "ArrowUp") {
    const links = [...live.querySelectorAll("table a")];
    const at = links.indexOf(document.activeElement);
    const next = links[key.key === "ArrowDown" ? at + 1 : at - 1];
    if (next) {
      key.preventDefault();
      next.focus();
    }
  }
});
