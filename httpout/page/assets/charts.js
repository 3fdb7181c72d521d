// The charts of one channel, drawn by uPlot.

import { h, loadScript, loadStyle } from "./dom.js";
import { bitRate, t } from "./i18n.js";
import { CAUSES, SECONDS } from "./history.js";
import { color } from "./strip.js";

const HEIGHT = 150;

export class Charts {
  constructor(box) {
    this.box = box;
    this.plots = [];
    loadStyle("page/vendor/uplot.css");
    this.ready = loadScript("page/vendor/uplot.js", "uPlot").then((uPlot) => this.build(uPlot));
    this.resizing = new ResizeObserver(() => this.plots.forEach(({ plot, box: b }) => plot.setSize({ width: b.clientWidth, height: HEIGHT })));
    this.themes = new MutationObserver(() => this.rebuild());
    this.themes.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  close() {
    this.closed = true;
    this.resizing.disconnect();
    this.themes.disconnect();
    this.plots.forEach(({ plot }) => plot.destroy());
  }

  rebuild() {
    if (!this.uPlot) return;
    this.plots.forEach(({ plot }) => plot.destroy());
    this.plots = [];
    this.box.replaceChildren();
    this.build(this.uPlot);
    if (this.samples) this.draw(this.samples, this.now);
  }

  build(uPlot) {
    if (this.closed) return;
    this.uPlot = uPlot;
    this.add(t("bitRate"), [{ label: t("bitRate"), color: "--accent", value: (s) => s.bitRate, show: bitRate }], (v) => bitRate(v));
    this.add(t("packetsAMoment"), CAUSES.map((c) => ({ label: t(c.name), color: c.color, value: (s) => s.deltas[c.name] })));
    this.add(t("viewers"), [{ label: t("viewers"), color: "--good", value: (s) => s.viewers }]);
  }

  add(title, series, format = (v) => String(v)) {
    const box = h("div.chart");
    this.box.append(h("h3", null, title), box);
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const plot = new this.uPlot({
      width: box.clientWidth || 300,
      height: HEIGHT,
      legend: { show: series.length > 1 },
      cursor: { y: false },
      scales: { x: { time: true }, y: { range: (u, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [
        { ...axis, space: 80, values: (u, at) => at.map((s) => new Date(s * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" })) },
        { ...axis, size: 84, values: (u, at) => at.map((v) => Number.isInteger(v) || v > 10 ? format(v) : "") },
      ],
      series: [{ label: t("time"), value: (u, at) => at == null ? "–" : new Date(at * 1000).toLocaleTimeString() }, ...series.map((s) => ({
        label: s.label, stroke: color(s.color), width: 1.5, points: { show: false }, spanGaps: false,
        value: (u, v) => v == null ? "–" : (s.show ?? String)(v),
      }))],
    }, [[], ...series.map(() => [])], box);
    this.plots.push({ plot, box, series });
    this.resizing.observe(box);
  }

  draw(samples, now) {
    this.samples = samples;
    this.now = now;
    for (const { plot, series } of this.plots) {
      plot.setData([samples.map((s) => s.at), ...series.map((s) => samples.map(s.value))], false);
      plot.setScale("x", { min: now - SECONDS, max: now });
      plot.setScale("y", { min: null, max: null });
    }
  }
}
