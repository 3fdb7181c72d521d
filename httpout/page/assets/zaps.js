// The zap-time histogram: for each kind of start, how many viewers had a
// picture's first byte within which time, since the server's start.

import { h } from "./dom.js";
import { count, t } from "./i18n.js";

export function drawZaps(box, zaps) {
  const key = JSON.stringify(zaps);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  box.replaceChildren(...zaps.map(({ start, buckets }) => {
    const total = buckets.reduce((sum, b) => sum + b.count, 0), most = Math.max(1, ...buckets.map((b) => b.count));
    const longest = buckets.at(-2).up_to_ms;
    return h("figure", null,
      h("figcaption", null, t(`zap_${start}`), h("span.facts", null, ` ${t("nViewers", { n: count(total) })}`)),
      h("div.bars", null, buckets.map(({ up_to_ms: upTo, count: n }) => {
        const bar = h("i", { title: `${upTo === null ? `> ${longest} ms` : `≤ ${upTo} ms`}: ${n}` });
        bar.style.height = n ? `${Math.max(6, (n / most) * 100)}%` : "1px";
        return h("span", null, bar);
      })),
      h("div.scale", { "aria-hidden": "true" }, h("span", null, "5 ms"), h("span", null, "500 ms"), h("span", null, "10 s")));
  }));
}
