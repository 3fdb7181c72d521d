// The zap-time histogram: for each kind of start, how many viewers had a
// picture's first byte within which time.

import { h } from "./dom.js";
import { count, t } from "./i18n.js";
import { BOUNDS, STARTS, history } from "./history.js";

export function drawZaps(box) {
  const key = JSON.stringify([...history.zaps.values()]);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren(...STARTS.map((start) => {
    const bars = history.zaps.get(start);
    const total = bars.reduce((a, b) => a + b, 0), most = Math.max(1, ...bars);
    return h("figure", null,
      h("figcaption", null, t(`zap_${start}`), h("span.facts", null, ` ${t("nViewers", { n: count(total) })}`)),
      h("div.bars", null, bars.map((n, i) => {
        const label = i < BOUNDS.length ? `≤ ${BOUNDS[i]} ms` : `> ${BOUNDS.at(-1)} ms`;
        const bar = h("i", { title: `${label}: ${n}` });
        bar.style.height = n ? `${Math.max(6, (n / most) * 100)}%` : "1px";
        return h("span", null, bar);
      })),
      h("div.scale", { "aria-hidden": "true" }, h("span", null, "5 ms"), h("span", null, "100 ms"), h("span", null, "5 s")));
  }));
}
