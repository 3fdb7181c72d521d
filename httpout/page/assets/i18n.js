// The page's languages. A test sees to it that both have the same sentences.

import { recall, remember } from "./settings.js";
import { en } from "./en.js";
import { zh } from "./zh.js";

const languages = { en, zh };

export function language() {
  const wanted = recall("language", "");
  return wanted || (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");
}

export function setLanguage(name) {
  remember("language", name);
}

// t returns the sentence, with {name} replaced by what it stands for. Where there
// is one of something ({n} is "1"), a sentence of its own may say so: key_1.
export function t(key, values = {}) {
  if (String(values.n) === "1" && `${key}_1` in en) key = `${key}_1`;
  const sentence = languages[language()][key] ?? en[key];
  if (sentence === undefined) console.warn(`no sentence for ${key}`);
  return (sentence ?? key).replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

export const has = (key) => key in languages[language()];

const number = (options) => (n) => new Intl.NumberFormat(language() === "zh" ? "zh-CN" : "en", options).format(n);

export const count = (n) => number({ maximumFractionDigits: 0 })(n);
export const ms = (n) => `${number({ maximumFractionDigits: n < 10 ? 1 : 0 })(n)} ms`;

export function bitRate(bits) {
  if (bits >= 1e6) return `${number({ minimumFractionDigits: 1, maximumFractionDigits: 1 })(bits / 1e6)} Mbit/s`;
  return `${number({ maximumFractionDigits: 0 })(bits / 1e3)} kbit/s`;
}

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${number({ maximumFractionDigits: i && n < 100 ? 1 : 0 })(n)} ${units[i]}`;
}

export function duration(seconds) {
  const s = Math.floor(seconds), two = (n) => String(n).padStart(2, "0");
  const clock = `${two(Math.floor(s / 3600) % 24)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
  return s < 86400 ? clock : t("days", { days: Math.floor(s / 86400), clock });
}
