// The player: one video element, one stream at a time. A zap ends the old
// stream first, then asks for the new one, and measures how long that takes.

import { loadScript } from "./dom.js";
import { makeLoader } from "./loader.js";
import { recall, remember } from "./settings.js";

// How deep the buffer may be, in seconds. The server sends from the last
// random-access point on, so it starts anywhere between nothing and a few
// seconds; the speed is changed a little, which nobody hears, until it fits.
const SHALLOW = 0.4;
const DEEP = 4;

// Pauses before a stream that ended or failed is asked for again, in seconds.
const RETRIES = [1, 2, 4, 8, 15, 30];

// The states that onState hears of:
//   idle       nothing is asked for
//   asking     the request is out: the server waits for the stream
//   opening    the stream comes: waiting for something to show
//   playing    pictures
//   stalled    pictures stopped: waiting for data
//   failed     {reason, detail, retryIn}: the server said no, or the browser cannot
export class Player {
  constructor(video, { onState, onZap }) {
    this.video = video;
    this.onState = onState;
    this.onZap = onZap;
    this.state = "idle";
    this.failures = 0;
    video.muted = recall("muted", true);
    video.volume = recall("volume", 1);
    video.addEventListener("volumechange", () => {
      if (!this.forcedMute) remember("muted", video.muted);
      remember("volume", video.volume);
    });
    video.addEventListener("waiting", () => this.state === "playing" && this.enter("stalled"));
    video.addEventListener("playing", () => this.state === "stalled" && this.enter("playing"));
    video.addEventListener("error", () => this.current && video.error && this.fail("decode", video.error.message));
    loadScript("page/vendor/mpegts.js", "mpegts").then((mpegts) => {
      mpegts.LoggingControl.enableAll = false;
    }, () => {});
  }

  enter(state, detail) {
    this.state = state;
    this.onState(state, detail);
  }

  // play zaps to a channel. It resolves when the request is out.
  async play(channel, { again = false } = {}) {
    this.stop();
    if (!again) this.failures = 0;
    const zap = { channel, asked: performance.now(), server: null, firstByte: null };
    this.current = zap;
    this.enter("asking", { since: zap.asked });
    let mpegts;
    try {
      await this.released;
      mpegts = await loadScript("page/vendor/mpegts.js", "mpegts");
    } catch (error) {
      return this.fail("script", error.message);
    }
    if (this.current !== zap) return; // zapped on meanwhile
    if (!mpegts.isSupported()) return this.fail("unsupported");
    this.abortion = new AbortController();
    const loader = makeLoader(mpegts, this.abortion, {
      opened: () => {
        if (this.current === zap) this.enter("opening", { since: zap.asked });
      },
      firstByte: () => { zap.firstByte = performance.now(); },
      refused: (status, text) => this.current === zap && this.fail("refused", text, status),
    });
    const engine = mpegts.createPlayer({ type: "mpegts", isLive: true, url: channel.url }, {
      customLoader: loader,
      enableStashBuffer: false,
      deferLoadAfterSourceOpen: false, // ask while the browser sets up its side
      autoCleanupSourceBuffer: true,
      autoCleanupMaxBackwardDuration: 30,
      autoCleanupMinBackwardDuration: 10,
    });
    this.engine = engine;
    engine.on(mpegts.Events.ERROR, (type, detail, info) => {
      if (this.engine !== engine) return;
      const network = type === mpegts.ErrorTypes.NETWORK_ERROR;
      this.fail(network ? "network" : "decode", info?.msg ?? detail);
    });
    engine.on(mpegts.Events.LOADING_COMPLETE, () => this.engine === engine && this.fail("ended"));
    engine.on(mpegts.Events.MEDIA_INFO, (info) => { this.info = info; });
    engine.attachMediaElement(this.video);
    this.watchFirstFrame(zap);
    engine.load();
    this.start();
    this.tending = setInterval(() => this.tend(), 500);
  }

  // start plays, without sound where the browser wants a gesture before it.
  start() {
    const { video } = this;
    video.play().catch((error) => {
      if (error.name !== "NotAllowedError" || video.muted) return;
      this.forcedMute = true;
      video.muted = true;
      video.play().catch(() => {});
    });
  }

  watchFirstFrame(zap) {
    const { video } = this;
    const shown = (now) => {
      if (this.current !== zap || zap.total) return;
      zap.total = now - zap.asked;
      zap.network = Math.min((zap.firstByte ?? now) - zap.asked, zap.total);
      zap.decode = zap.total - zap.network;
      this.failures = 0;
      this.enter("playing");
      this.onZap(zap);
    };
    if (video.requestVideoFrameCallback) {
      this.frameCallback = video.requestVideoFrameCallback(() => shown(performance.now()));
    }
    // Radio has no frames, and old browsers do not tell of them.
    this.onPlaying = () => {
      if (!video.requestVideoFrameCallback || video.videoWidth === 0) shown(performance.now());
    };
    video.addEventListener("playing", this.onPlaying);
  }

  // tend keeps the buffer at a sensible depth.
  tend() {
    const { video } = this;
    if (video.paused || video.buffered.length === 0) return;
    const end = video.buffered.end(video.buffered.length - 1);
    const depth = end - video.currentTime;
    if (depth > 3 * DEEP) video.currentTime = end - 1; // the computer slept
    const rate = depth < SHALLOW ? 0.95 : depth > DEEP ? 1.05 : depth > 2 * SHALLOW && depth < DEEP - 1 ? 1 : video.playbackRate;
    if (video.playbackRate !== rate) video.playbackRate = rate;
  }

  fail(reason, detail = "", status = 0) {
    const zap = this.current;
    this.end();
    const hopeless = reason === "unsupported" || reason === "decode" && this.failures >= 2 || status >= 400 && status < 500;
    const retryIn = hopeless ? 0 : RETRIES[Math.min(this.failures, RETRIES.length - 1)];
    this.failures++;
    this.enter("failed", { reason, detail, retryIn });
    if (retryIn) {
      this.retry = setTimeout(() => this.play(zap.channel, { again: true }), retryIn * 1000);
    }
  }

  // end frees the stream: its connection is closed when this returns. What
  // mpegts.js has under way would still call the player that is destroyed, so
  // that comes a moment later.
  end() {
    clearInterval(this.tending);
    if (this.onPlaying) this.video.removeEventListener("playing", this.onPlaying);
    if (this.frameCallback) this.video.cancelVideoFrameCallback(this.frameCallback);
    this.onPlaying = this.frameCallback = this.info = null;
    this.current = null;
    const { engine } = this;
    if (!engine) return;
    this.engine = null;
    this.abortion.abort();
    this.released = new Promise((done) => setTimeout(done)).then(() => {
      engine.destroy();
      this.video.playbackRate = 1;
    });
  }

  stop() {
    clearTimeout(this.retry);
    this.end();
    if (this.state !== "idle") this.enter("idle");
  }

  // facts are what the line under the picture says.
  facts() {
    const { video } = this;
    const quality = video.getVideoPlaybackQuality?.();
    const end = video.buffered.length ? video.buffered.end(video.buffered.length - 1) : 0;
    return {
      width: video.videoWidth,
      height: video.videoHeight,
      videoCodec: this.info?.videoCodec ?? "",
      audioCodec: this.info?.audioCodec ?? "",
      decoded: quality?.totalVideoFrames ?? 0,
      dropped: quality?.droppedVideoFrames ?? 0,
      depth: Math.max(0, end - video.currentTime),
    };
  }
}
