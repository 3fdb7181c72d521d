// The Watch view: list, picture, keys, and what a zap took.

import { h, setText } from "./dom.js";
import { ms, t } from "./i18n.js";
import { decoded, loadChannels, typedChannel } from "./channels.js";
import { Picker } from "./picker.js";
import { Player } from "./player.js";
import { Screen } from "./screen.js";
import { Diagnosis } from "./diagnosis.js";
import { recall, remember } from "./settings.js";

const PATIENCE = 2000;    // ms after which a wait is explained
const NUMBER_PAUSE = 1200; // ms after the last digit until the number is dialled
const HELD_KEY = 180;     // ms a held key must rest before the channel is asked for
const KEPT_ZAPS = 50;

export class Watch {
  constructor(box) {
    this.zaps = [];
    const stage = h("section.stage", { "aria-label": t("picture") });
    const side = h("aside.picker", { "aria-label": t("channels") });
    box.append(stage, side);
    this.screen = new Screen(stage, {
      step: (n) => this.step(n),
      diagnose: () => this.diagnose(),
      retry: () => this.player.play(this.channel),
    });
    this.name = h("h1");
    this.facts = h("p.facts");
    this.zap = h("p.zap", { "aria-live": "polite" });
    this.zapsLine = h("p.facts");
    this.below = h("div.below");
    stage.append(h("div.now", null, h("div", null, this.name, this.facts), h("div.zapping", null, this.zap, this.zapsLine)), this.below);
    this.picker = new Picker(side, (channel) => this.pick(channel));
    this.player = new Player(this.screen.video, {
      onState: (state, detail) => this.onState(state, detail),
      onZap: (zap) => this.onZap(zap),
    });
    this.screen.showSound();
    this.keys = (e) => this.onKey(e);
    addEventListener("keydown", this.keys);
    this.ticking = setInterval(() => !document.hidden && this.tick(), 500);
    this.screen.say(t("chooseChannel"));
    this.loaded = this.load();
  }

  get title() {
    return this.channel?.name;
  }

  async load() {
    try {
      const channels = await loadChannels();
      this.picker.setChannels(channels, t("noChannels"));
    } catch (error) {
      this.picker.setChannels([], t("listFailed", { error: error.message }));
    }
  }

  // go shows what the address names: the path of a channel, or nothing.
  async go(path) {
    await this.loaded;
    const wanted = path || recall("channel", "");
    if (this.channel && (!path || path === this.channel.path)) return;
    const known = this.picker.channels.find((c) => decoded(c.path) === decoded(wanted)) ?? typedChannel(decoded(wanted));
    if (known) this.zapTo(known);
  }

  close() {
    this.closed = true;
    clearInterval(this.ticking);
    clearTimeout(this.dialling);
    clearTimeout(this.resting);
    removeEventListener("keydown", this.keys);
    this.diagnosis?.close();
    this.player.stop();
    this.picker.close();
  }

  pick(channel) {
    this.zapTo(channel);
    location.hash = `#/watch/${channel.path}`;
  }

  zapTo(channel) {
    if (this.closed) return;
    this.channel = channel;
    remember("channel", channel.path);
    this.diagnosis?.close();
    setText(this.name, channel.name);
    this.picker.select(this.picker.shown.find((c) => c.path === channel.path) ?? null);
    document.title = `${channel.name} · zapcast`;
    this.player.play(channel);
  }

  step(n) {
    const next = this.picker.beside(this.channel, n);
    if (next) this.pick(next);
  }

  diagnose() {
    this.diagnosis?.close();
    if (!this.channel) return;
    this.diagnosis = new Diagnosis(this.below, { url: this.channel.path, title: this.channel.name });
  }

  onKey(e) {
    if (e.ctrlKey || e.altKey || e.metaKey || e.target instanceof HTMLSelectElement) return;
    const typing = e.target instanceof HTMLInputElement;
    const arrows = { ArrowUp: -1, ArrowDown: 1, PageUp: -1, PageDown: 1, ChannelUp: 1, ChannelDown: -1 };
    if (e.key in arrows) {
      e.preventDefault();
      this.stepHeld(arrows[e.key], e.repeat);
    } else if (typing) {
      return;
    } else if (/^\d$/.test(e.key)) {
      this.dial(e.key);
    } else if (e.key === "/") {
      e.preventDefault();
      this.picker.search.focus();
    } else if (e.key === "m") {
      this.screen.toggleSound();
    } else if (e.key === "f") {
      this.screen.toggleFull();
    } else if (e.key === "Enter" && this.number) {
      this.dialled();
    }
  }

  // stepHeld zaps at the first press; while the key is held it only runs along
  // the list, and asks for the channel where it comes to rest.
  stepHeld(n, held) {
    clearTimeout(this.resting);
    if (!held) return this.step(n);
    const next = this.picker.beside(this.target ?? this.channel, n);
    if (!next) return;
    this.target = next;
    this.picker.select(next);
    setText(this.name, next.name);
    this.resting = setTimeout(() => {
      this.target = null;
      this.pick(next);
    }, HELD_KEY);
  }

  dial(digit) {
    this.number = ((this.number ?? "") + digit).slice(-5);
    this.screen.sayNumber(this.number);
    clearTimeout(this.dialling);
    this.dialling = setTimeout(() => this.dialled(), NUMBER_PAUSE);
  }

  dialled() {
    clearTimeout(this.dialling);
    const channel = this.picker.channels.find((c) => c.number === Number(this.number));
    this.number = "";
    this.screen.sayNumber("");
    if (channel) this.pick(channel);
  }

  onState(state, detail) {
    this.state = state;
    this.since = performance.now();
    this.detail = detail;
    this.tick();
  }

  // tick says what is being waited for.
  tick() {
    const waited = performance.now() - (this.detail?.since ?? this.since);
    const long = waited > PATIENCE;
    const hint = waited > 1000 ? t("waited", { seconds: Math.floor(waited / 1000) }) : "";
    switch (this.state) {
      case "asking":
      case "opening":
      case "stalled":
        this.screen.say(t(this.state), { busy: true, hint, why: long });
        break;
      case "failed":
        this.sayFailure(this.detail);
        break;
      case "playing":
        this.screen.say("");
        break;
    }
    const f = this.player.facts();
    const parts = [this.channel?.group, f.width && `${f.width}×${f.height}`, f.videoCodec, f.audioCodec,
      this.state === "playing" && t("buffered", { seconds: f.depth.toFixed(1) }), f.dropped > 0 && t("dropped", { n: f.dropped })];
    setText(this.facts, parts.filter(Boolean).join(" · "));
  }

  sayFailure({ reason, detail, retryIn }) {
    const left = retryIn - Math.floor((performance.now() - this.since) / 1000);
    const hints = [detail, retryIn && t("retryIn", { seconds: Math.max(left, 0) })].filter(Boolean);
    this.screen.say(t(`failed_${reason}`), { hint: hints.join(" — "), why: reason !== "unsupported", again: retryIn > 0 });
  }

  onZap(zap) {
    this.zaps = [zap.total, ...this.zaps].slice(0, KEPT_ZAPS);
    const sorted = [...this.zaps].sort((a, b) => a - b);
    setText(this.zap, t("zap", { total: ms(zap.total), network: ms(zap.network), decode: ms(zap.decode) }));
    this.zap.dataset.total = zap.total;
    this.zap.dataset.network = zap.network;
    setText(this.zapsLine, this.zaps.length > 1 ? t("zaps", { n: this.zaps.length, median: ms(sorted[sorted.length >> 1]) }) : "");
  }
}
