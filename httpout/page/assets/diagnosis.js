// "Why is it black?": asks the server to look, and prints what it found: in the
// server's own English, or in the page's other languages by the finding's code.

import { h } from "./dom.js";
import { has, t } from "./i18n.js";
import { ask } from "./channels.js";

export class Diagnosis {
  // what: {url: path of a stream} or {channel: id}, and a title.
  constructor(box, { title, ...what }) {
    this.abortion = new AbortController();
    this.list = h("ol.findings");
    this.state = h("p.facts", { role: "status" }, t("looking"));
    this.panel = h("section.diagnosis", { "aria-label": t("whyBlack") },
      h("header", null, h("h2", null, t("whyIsBlack", { name: title })),
        h("button.quiet", { onclick: () => this.close(), "aria-label": t("close"), title: t("close") }, "✕")),
      this.state, this.list);
    box.append(this.panel);
    this.panel.scrollIntoView({ block: "nearest" });
    this.run(what);
  }

  async run(what) {
    try {
      const { findings } = await ask(`api/diagnose?${new URLSearchParams(what)}`, { signal: this.abortion.signal });
      this.state.hidden = true;
      this.list.replaceChildren(...findings.map((f) => h("li", { "data-level": f.level, "data-code": f.code },
        has(`find_${f.code}`) ? t(`find_${f.code}`, f.values) : f.text)));
      this.panel.scrollIntoView({ block: "nearest", behavior: "smooth" });
    } catch (error) {
      if (!this.abortion.signal.aborted) this.state.textContent = t("lookFailed", { error: error.message });
    }
  }

  close() {
    this.abortion.abort();
    this.panel.remove();
  }
}
