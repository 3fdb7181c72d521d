// The Log view: the server's last lines, and the level of those to come.

import { h, setText } from "./dom.js";
import { t } from "./i18n.js";
import { ask } from "./channels.js";
import { myRights } from "./rights.js";

const PAUSE = 2000; // ms between two looks
const KEPT = 2000;  // lines
const LEVELS = ["debug", "info", "warn", "error"];

export class LogView {
  constructor(box) {
    this.box = box;
    this.after = 0;
    this.level = h("select", { "aria-label": t("level"), disabled: true, onchange: () => this.setLevel() },
      LEVELS.map((level) => h("option", { value: level }, t(`level_${level}`))));
    this.fault = h("span.bad", { role: "status" });
    this.lines = h("ol.log-lines", { "aria-label": t("log") });
    this.none = h("p.empty", null, t("noLines"));
    box.append(h("div.page", null,
      h("div.top", null, h("label.level", null, h("span", null, t("level")), this.level, h("span.facts", null, t("levelLasts"))), this.fault),
      this.none, this.lines));
    myRights().then((rights) => { this.level.disabled = !rights.admin; });
    this.seen = () => !document.hidden && this.look();
    document.addEventListener("visibilitychange", this.seen);
    this.look();
  }

  go() {}

  close() {
    this.closed = true;
    clearTimeout(this.next);
    document.removeEventListener("visibilitychange", this.seen);
  }

  // look asks for what is new, and again after a while: one question at a time,
  // and none while the page cannot be seen.
  async look() {
    clearTimeout(this.next);
    if (this.asking) return;
    this.asking = true;
    try {
      this.take(await ask(`api/log?after=${this.after}`));
      setText(this.fault, "");
    } catch (error) {
      setText(this.fault, error.message);
    }
    this.asking = false;
    if (!this.closed && !document.hidden) this.next = setTimeout(() => this.look(), PAUSE);
  }

  take({ level, lines }) {
    if (this.closed) return;
    if (level && document.activeElement !== this.level) this.level.value = level;
    if (lines[0]?.number <= this.after) this.lines.replaceChildren(); // the server has begun anew
    const { box } = this, atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    for (const line of lines) {
      this.after = line.number;
      this.lines.append(h("li", { "data-level": line.level },
        h("time", { dateTime: line.at }, new Date(line.at).toLocaleTimeString()), h("span.badge", { "data-level": line.level }, t(`level_${line.level}`)), h("span", null, line.text)));
    }
    while (this.lines.children.length > KEPT) this.lines.firstChild.remove();
    this.none.hidden = this.lines.children.length > 0;
    if (atEnd && lines.length) box.scrollTop = box.scrollHeight;
  }

  async setLevel() {
    try {
      await ask(`api/log-level?level=${this.level.value}`, { method: "POST" });
      this.look();
    } catch (error) {
      setText(this.fault, error.message);
    }
  }
}
