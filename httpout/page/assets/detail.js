// One channel: its charts, what is known of it, and why it may be black.

import { h } from "./dom.js";
import { bytes, count, ms, t } from "./i18n.js";
import { Charts } from "./charts.js";
import { Diagnosis } from "./diagnosis.js";
import { history } from "./history.js";
import { Sources } from "./sources.js";

// Facts of the status that are worth a line, in order.
const FACTS = [
  ["source"], ["interface"], ["local"], ["sender"], ["payload"], ["codec"],
  ["datagrams", count], ["packets", count], ["lost", count], ["reordered", count], ["duplicates", count], ["resyncs", count],
  ["foreign", count], ["malformed", count], ["bad_ts", count], ["overflow", count],
  ["receive_buffer_bytes", bytes], ["history_bytes", bytes], ["last_random_access_age_ms", ms], ["last_data_age_ms", ms], ["skips", count],
];

// What began the stream, where fast channel change was asked for.
const fccStart = ({ start, reason, asked, server, dialect, reply_ms: reply, burst_packets: packets }) => [
  start && t(`fcc_${start}`), asked || server, dialect, reply != null && t("fccReply", { time: ms(reply) }),
  packets > 0 && `${t("packets")} ${count(packets)}`, reason,
].filter(Boolean).join(" · ");

export class Detail {
  constructor(box, id) {
    this.id = id;
    this.title = h("h2", null, id);
    this.facts = h("dl.facts-list");
    this.warnings = h("ul.warnings");
    this.below = h("div");
    this.sources = new Sources();
    const charts = h("div.charts");
    this.panel = h("section.detail", { "aria-label": id },
      h("header", null, this.title,
        h("button", { onclick: () => this.diagnose() }, t("whyBlack")),
        h("a.button", { href: "#/status", "aria-label": t("close"), title: t("close") }, "✕")),
      this.below, this.warnings, this.sources.element, charts, this.facts);
    box.append(this.panel);
    this.charts = new Charts(charts);
  }

  close() {
    this.charts.close();
    this.diagnosis?.close();
    this.panel.remove();
  }

  diagnose() {
    this.diagnosis?.close();
    this.diagnosis = new Diagnosis(this.below, { channel: this.id, title: this.title.textContent });
  }

  show(status, named, now) {
    const channel = status.channels.find((c) => c.id === this.id);
    this.charts.draw(history.channels.get(this.id) ?? [], now);
    if (!channel) {
      this.warnings.replaceChildren(h("li", null, t("notOnAir")));
      this.sources.show(null);
      this.facts.replaceChildren();
      return;
    }
    this.title.textContent = named?.name ?? channel.id;
    this.sources.show(named, channel.source);
    this.warnings.replaceChildren(...channel.warnings.map((w) => h("li", null, w)));
    const more = [channel.fcc && [t("fcc"), fccStart(channel.fcc)], channel.repair && [t("repair"), channel.repair.state]].filter(Boolean);
    const known = FACTS.filter(([field]) => channel[field] !== undefined && channel[field] !== null && channel[field] !== "");
    const facts = [...more, ...known.map(([field, show = String]) => [t(field), show(channel[field])])];
    this.facts.replaceChildren(...facts.flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
  }
}
