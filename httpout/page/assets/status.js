// The Status view: what the server is doing, as it changes.

import { h, setText } from "./dom.js";
import { bitRate, bytes, count, duration, t } from "./i18n.js";
import { listen } from "./live.js";
import { history } from "./history.js";
import { Channels } from "./channeltable.js";
import { Viewers } from "./viewertable.js";
import { FCCServers } from "./fcctable.js";
import { Detail } from "./detail.js";
import { loadChannels, Names } from "./channels.js";
import { myRights } from "./rights.js";
import { drawZaps } from "./zaps.js";

export class StatusView {
  constructor(box) {
    this.state = h("span.state", { role: "status" });
    this.figures = h("dl.figures");
    this.warnings = h("ul.warnings");
    this.channels = new Channels();
    this.viewers = new Viewers();
    this.fcc = new FCCServers();
    this.zaps = h("div.histograms");
    this.failures = h("ul.failures");
    this.detailBox = h("div");
    this.failureSection = h("section", null, h("h2", null, t("failures")), this.failures);
    this.page = h("div.page", null,
      h("div.top", null, this.figures, this.state),
      this.warnings, this.detailBox,
      h("section", null, h("h2", null, t("channelsOnAir")), this.channels.element),
      this.failureSection,
      h("section", null, h("h2", null, t("viewers")), this.viewers.element),
      this.fcc.element,
      h("section", null, h("h2", null, t("zapTimes")), this.zaps));
    box.append(this.page);
    this.names = new Names();
    this.loadNames();
    myRights().then((rights) => box.classList.toggle("powerless", !rights.admin));
    this.stop = listen((status) => this.take(status), (state) => this.showState(state));
  }

  // go shows a channel's detail, or none.
  go(id) {
    let wanted = id;
    try {
      wanted = decodeURIComponent(id);
    } catch { /* typed by hand, with a bare % */ }
    if (this.detail?.id === wanted) return;
    this.detail?.close();
    this.detail = wanted ? new Detail(this.detailBox, wanted) : null;
    if (this.last) this.take(this.last);
    if (wanted) this.detailBox.scrollIntoView({ block: "nearest" });
  }

  close() {
    this.stop();
    this.detail?.close();
  }

  // loadNames has the channels called as the list calls them. Who may not see the
  // list sees addresses.
  async loadNames() {
    try {
      this.names = new Names(await loadChannels());
      if (this.last) this.take(this.last);
    } catch { /* addresses, then */ }
  }

  showState(state) {
    this.state.dataset.state = state;
    setText(this.state, state === "open" ? t("live") : t(`stream_${state}`));
  }

  take(status) {
    const now = Date.now() / 1000;
    if (status !== this.last) history.take(status, now);
    this.showFigures(status);
    this.warnings.replaceChildren(...status.warnings.map((w) => h("li", null, w)));
    const named = new Map(status.channels.map((c) => [c.id, this.names.of(c)]));
    this.channels.show(status.channels, named, now);
    this.viewers.show(status.viewers, named);
    this.detail?.show(status, named.get(this.detail.id), now);
    this.fcc.show(status.fcc_servers ?? []);
    drawZaps(this.zaps, status.zaps);
    this.showFailures(status.failures);
    this.last = status;
  }

  showFigures({ process, channels, viewers, stream_memory: memory }) {
    const last = this.last?.process;
    const busy = last && process.uptime_seconds > last.uptime_seconds
      ? (process.cpu_seconds - last.cpu_seconds) / (process.uptime_seconds - last.uptime_seconds) : 0;
    const figures = [
      [t("channels"), count(channels.length)],
      [t("viewers"), count(viewers.length)],
      [t("incoming"), bitRate(channels.reduce((sum, c) => sum + c.bit_rate, 0))],
      [t("streamMemory"), bytes(memory.bytes)],
      process.cpu_seconds !== undefined && [t("processor"), `${(busy * 100).toFixed(1)} %`],
      process.resident_bytes !== undefined && [t("memory"), bytes(process.resident_bytes)],
      [t("uptime"), duration(process.uptime_seconds)],
      [t("version"), process.version],
    ].filter(Boolean);
    const cells = this.figures.children;
    if (cells.length !== figures.length) this.figures.replaceChildren(...figures.map(() => h("div", null, h("dt"), h("dd"))));
    figures.forEach(([name, value], i) => {
      setText(cells[i].children[0], name);
      setText(cells[i].children[1], value);
    });
  }

  showFailures(failures) {
    this.failureSection.hidden = failures.length === 0;
    const key = JSON.stringify(failures);
    if (key === this.failureKey) return;
    this.failureKey = key;
    this.failures.replaceChildren(...failures.map((f) => h("li", null,
      h("a", { href: `#/status/${encodeURIComponent(f.channel)}` }, f.channel),
      h("span.facts", null, ` ${new Date(f.at).toLocaleTimeString()}`), h("div", null, f.reason))));
  }
}
