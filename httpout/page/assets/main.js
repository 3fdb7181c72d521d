// The page's frame: which view is shown, and the bar above it. The view is in
// the address: #/watch/NAME, #/status, #/status/CHANNEL, #/log.

import { h, icon } from "./dom.js";
import { language, setLanguage, t } from "./i18n.js";
import { applyTheme, toggleTheme } from "./settings.js";
import { Watch } from "./watch.js";
import { StatusView } from "./status.js";
import { LogView } from "./log.js";

const views = { watch: Watch, status: StatusView, log: LogView };

let shown = null; // {name, view}

// where reads the address: the view's name, and what of it is shown.
function where() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { name: views[name] ? name : "watch", rest: rest.join("/") };
}

function show() {
  const { name, rest } = where();
  if (shown?.name === name) {
    shown.view.go(rest);
  } else {
    shown?.view.close();
    const box = document.getElementById("view");
    box.replaceChildren();
    box.className = name;
    shown = { name, view: new views[name](box) };
    shown.view.go(rest);
  }
  drawBar(name);
  document.title = `${shown.view.title ?? t(name)} · zapcast`;
}

function drawBar(name) {
  const link = (view) => h("a", { href: `#/${view}`, ...(view === name && { "aria-current": "page" }) }, t(view));
  document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
  document.getElementById("bar").replaceChildren(
    h("a.brand", { href: "#/watch", "aria-label": "zapcast" }, icon("M11.5 1 4 11.5h4.7L7.7 19 16 8h-5.2z"), h("span", null, "zapcast")),
    h("nav", { "aria-label": t("views") }, Object.keys(views).map(link)),
    h("button.quiet", { title: t("otherLanguage"), "aria-label": t("otherLanguage"), onclick: changeLanguage, id: "language" }, language() === "zh" ? "EN" : "中"),
    h("button.quiet", { title: t("otherTheme"), "aria-label": t("otherTheme"), onclick: toggleTheme, id: "theme" },
      icon("M10 2a8 8 0 1 0 0 16 8 8 0 0 0 0-16m0 1.6v12.8a6.4 6.4 0 0 1 0-12.8")),
  );
}

function changeLanguage() {
  setLanguage(language() === "zh" ? "en" : "zh");
  shown?.view.close();
  shown = null;
  show();
}

// A token that came in the address is in a cookie by now: it is not to be seen,
// bookmarked or sent on.
function hideToken() {
  const url = new URL(location.href);
  if (url.search) history.replaceState(null, "", url.pathname + url.hash);
}

applyTheme();
hideToken();
addEventListener("hashchange", show);
show();
