// What is known of the servers of fast channel change that were asked.

import { h, setText } from "./dom.js";
import { count, ms, t } from "./i18n.js";
import { Rows } from "./table.js";

export class FCCServers {
  constructor() {
    this.box = h("div.lines");
    this.element = h("section", { hidden: true }, h("h2", null, t("fccServers")), this.box);
    this.rows = new Rows(this.box, makeRow, fillRow);
  }

  show(servers) {
    this.element.hidden = servers.length === 0;
    this.rows.show(servers, (s) => s.server);
  }
}

function makeRow(server) {
  const row = { state: h("span.badge"), facts: h("span.facts"), reason: h("span.facts.bad") };
  row.element = h("div.line.server", null, h("span.head", null, h("span.name", null, server), row.state), row.facts, row.reason);
  return row;
}

function fillRow(row, s) {
  setText(row.state, t(s.works ? "fccWorks" : "fccFails"));
  row.state.dataset.state = s.works ? "live" : "silent";
  setText(row.facts, [
    s.dialect, s.reply_ms != null && t("fccReply", { time: ms(s.reply_ms) }), t("fccBursts", { bursts: count(s.bursts), asked: count(s.asked) }),
    s.open > 0 && t("fccOpen", { open: count(s.open) }),
  ].filter(Boolean).join(" · "));
  setText(row.reason, s.reason);
}
