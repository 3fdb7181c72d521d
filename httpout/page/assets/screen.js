// The picture: video, what is said over it, and its few buttons.

import { h, icon, setText } from "./dom.js";
import { t } from "./i18n.js";

const ICONS = {
  sound: "M3 7.5h3l4-3.5v12l-4-3.5H3zM12.5 7a4 4 0 0 1 0 6M14.5 4.5a7.5 7.5 0 0 1 0 11",
  muted: "M3 7.5h3l4-3.5v12l-4-3.5H3zM13 8l4 4m0-4-4 4",
  up: "m5 12 5-5 5 5",
  down: "m5 8 5 5 5-5",
  inset: "M2.5 4.5h15v11h-15zM10 10h5v3.5h-5z",
  full: "M3 7V3h4M13 3h4v4M17 13v4h-4M7 17H3v-4",
};

export class Screen {
  // actions: step(n), diagnose(), retry()
  constructor(box, actions) {
    this.actions = actions;
    this.video = h("video", { playsInline: true, disableRemotePlayback: true, "aria-label": t("picture") });
    this.words = h("p.words");
    this.hint = h("p.hint");
    this.why = h("button", { onclick: () => actions.diagnose() }, t("whyBlack"));
    this.again = h("button", { onclick: () => actions.retry() }, t("tryNow"));
    this.message = h("div.message", { role: "status", hidden: true }, h("span.pulse"), this.words, this.hint, h("div.choices", null, this.again, this.why));
    this.digits = h("div.digits", { hidden: true });
    this.sound = button("muted", t("sound"), () => this.toggleSound());
    this.buttons = h("div.buttons", null,
      this.sound,
      button("down", t("previousChannel"), () => actions.step(-1)),
      button("up", t("nextChannel"), () => actions.step(1)),
      h("span.gap"),
      document.pictureInPictureEnabled && button("inset", t("inset"), () => this.toggleInset()),
      button("full", t("fullScreen"), () => this.toggleFull()));
    this.frame = h("div.screen", { ondblclick: () => this.toggleFull(), onclick: () => this.frame.classList.toggle("touched") },
      this.video, this.message, this.digits, this.buttons);
    this.buttons.addEventListener("click", (e) => e.stopPropagation());
    box.append(this.frame);
    this.video.addEventListener("volumechange", () => this.showSound());
  }

  showSound() {
    const name = this.video.muted ? "muted" : "sound";
    this.sound.replaceChildren(icon(ICONS[name]), ...(this.video.muted ? [t("tapForSound")] : []));
  }

  toggleSound() {
    this.video.muted = !this.video.muted;
  }

  toggleFull() {
    if (document.fullscreenElement) document.exitFullscreen();
    else if (this.frame.requestFullscreen) this.frame.requestFullscreen().catch(() => {});
    else this.video.webkitEnterFullscreen?.(); // iPhone
  }

  toggleInset() {
    if (document.pictureInPictureElement) document.exitPictureInPicture();
    else this.video.requestPictureInPicture().catch(() => {});
  }

  // say shows words over the picture; "" takes them away.
  say(words, { hint = "", busy = false, why = false, again = false } = {}) {
    this.message.hidden = !words;
    this.message.classList.toggle("busy", busy);
    setText(this.words, words);
    setText(this.hint, hint);
    this.why.hidden = !why;
    this.again.hidden = !again;
  }

  sayNumber(text) {
    this.digits.hidden = !text;
    setText(this.digits, text);
  }
}

function button(name, label, onclick) {
  return h("button", { title: label, "aria-label": label, onclick }, icon(ICONS[name]));
}
