// The channels that are received, one line each with its loss map.

import { h, setText } from "./dom.js";
import { bitRate, bytes, count, t } from "./i18n.js";
import { CAUSES, history } from "./history.js";
import { drawStrip } from "./strip.js";
import { Rows } from "./table.js";

export class Channels {
  constructor() {
    this.box = h("div.lines");
    this.none = h("p.empty", null, t("nothingOnAir"));
    this.legend = h("p.legend", null, CAUSES.filter((c) => c.name !== "overflow").map((c) => {
      const key = h("i");
      key.style.background = `var(${c.color})`;
      return h("span", null, key, t(c.name));
    }));
    this.element = h("div", null, this.box, this.none, this.legend);
    this.rows = new Rows(this.box, makeRow, (row, channel) => fillRow(row, channel, this.named.get(channel.id)));
  }

  // named: by id, the channels that have names.
  show(channels, named, now) {
    this.named = named;
    this.none.hidden = channels.length > 0;
    this.legend.hidden = channels.length === 0;
    this.rows.show(channels, (c) => c.id);
    for (const [id, row] of this.rows.rows) drawStrip(row.strip, history.channels.get(id) ?? [], now);
  }
}

function makeRow(id) {
  const row = {
    name: h("span.name"), state: h("span.badge"), facts: h("span.facts"), damage: h("span.damage"),
    strip: h("canvas.strip", { "aria-hidden": "true" }),
  };
  row.element = h("a.line", { href: `#/status/${encodeURIComponent(id)}` },
    h("span.head", null, row.name, row.state), row.facts, row.strip, row.damage);
  return row;
}

function fillRow(row, channel, named) {
  setText(row.name, named?.name ?? channel.id);
  setText(row.state, t(`state_${channel.state}`));
  row.state.dataset.state = channel.state;
  setText(row.facts, [
    named && channel.id !== `/${named.name}` && channel.id,
    t("nViewers", { n: count(channel.viewers) }), bitRate(channel.bit_rate), channel.codec,
    channel.history_bytes > 0 && t("historyOf", { size: bytes(channel.history_bytes) }),
  ].filter(Boolean).join(" · "));
  const damage = CAUSES.filter((c) => c.count(channel) > 0).map((c) => `${t(c.name)} ${count(c.count(channel))}`);
  setText(row.damage, damage.join(" · ") || t("undamaged"));
  row.damage.classList.toggle("bad", channel.lost > 0 || channel.overflow > 0);
}
