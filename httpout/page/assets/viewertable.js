// Who watches what, and the button that ends it.

import { h, setText } from "./dom.js";
import { bytes, duration, ms, t } from "./i18n.js";
import { ask } from "./channels.js";
import { Rows } from "./table.js";

export class Viewers {
  constructor() {
    this.box = h("div.lines");
    this.none = h("p.empty", null, t("nobodyWatches"));
    this.element = h("div", null, this.box, this.none);
    this.rows = new Rows(this.box, makeRow, (row, v) => fillRow(row, v, this.named.get(v.channel)));
  }

  // named: by id, the channels that have names.
  show(viewers, named) {
    this.named = named;
    this.none.hidden = viewers.length > 0;
    this.rows.show(viewers, (v) => v.id);
  }
}

function makeRow(id) {
  const row = { who: h("span.name"), what: h("span.facts"), how: h("span.facts"), fault: h("span.facts.bad", { role: "status" }) };
  row.end = h("button.quiet.admin", { onclick: () => disconnect(id, row) }, t("disconnect"));
  row.element = h("div.line.viewer", null, h("span.head", null, row.who, row.end), row.what, row.how, row.fault);
  return row;
}

function fillRow(row, v, named) {
  setText(row.who, v.address);
  setText(row.what, [named?.name ?? v.channel, v.agent].filter(Boolean).join(" · "));
  const seconds = (Date.now() - Date.parse(v.since)) / 1000;
  const took = v.first_random_access_ms ?? v.first_byte_ms;
  setText(row.how, [
    duration(Math.max(0, seconds)), bytes(v.bytes), took != null && t(`start_${v.start}`, { took: ms(took) }),
    v.lag_ms > 1000 && t("behind", { time: ms(v.lag_ms) }), v.skips > 0 && t("skipped", { n: v.skips }), v.blocked && t("blocked"),
  ].filter(Boolean).join(" · "));
}

async function disconnect(id, row) {
  row.end.disabled = true;
  try {
    await ask(`api/viewers/${id}/disconnect`, { method: "POST" });
  } catch (error) {
    setText(row.fault, error.message);
  }
  row.end.disabled = false;
}
