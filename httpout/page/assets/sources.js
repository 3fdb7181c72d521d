// The sources of a channel that has several: which one plays, and the way back
// to another.

import { h, setText } from "./dom.js";
import { t } from "./i18n.js";
import { ask } from "./channels.js";

export class Sources {
  constructor() {
    this.list = h("ol");
    this.fault = h("p.bad", { role: "status" });
    this.element = h("div.sources", { hidden: true }, h("h3", null, t("sources")), this.list, this.fault);
  }

  // show takes the channel with a name, or null, and where its data comes from now.
  show(channel, playing) {
    this.element.hidden = !channel || channel.sources.length < 2;
    if (this.element.hidden || playing === this.playing) return;
    this.playing = playing;
    this.channel = channel;
    this.draw(channel.sources.map((s) => ({ ...s, active: s.url === playing })));
    this.refresh();
  }

  draw(sources) {
    this.list.replaceChildren(...sources.map((source, i) => {
      const button = h("button.quiet.admin", { onclick: () => this.use(i + 1), disabled: source.active }, t(source.active ? "sourcePlays" : "useSource"));
      return h("li", { "aria-current": source.active }, h("span", null, source.url, source.label && ` (${source.label})`), button);
    }));
  }

  async refresh() {
    try {
      const fresh = (await ask("api/channels")).find((c) => c.path.replace(/^\//, "") === this.channel.path);
      if (fresh) this.draw(fresh.sources);
    } catch { /* what is shown stays */ }
  }

  async use(number) {
    setText(this.fault, "");
    try {
      await ask(`api/channels/${this.channel.path}/source?number=${number}`, { method: "POST" });
    } catch (error) {
      setText(this.fault, error.message);
    }
    setTimeout(() => this.refresh(), 1000); // it takes over as soon as it brings data
  }
}
