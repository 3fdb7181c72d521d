// The channels that can be watched, and how they are found.

// api makes the URL of one of the server's answers; everything is relative to
// the page, which may live under a prefix and behind TLS.
export const api = (path) => new URL(path, document.baseURI).href;

// ask gets one of the server's answers. It throws, in the server's words, where
// that is a refusal, and where there is none.
export async function ask(path, options) {
  const response = await fetch(api(path), { cache: "no-store", ...options });
  if (!response.ok) throw new Error(`${response.status} ${(await response.text()).trim()}`);
  return response.json();
}

// loadChannels asks which channels have names. They have the numbers that their
// playlists give them, or, where none does, those of their places.
export async function loadChannels() {
  const channels = await ask("api/channels");
  const numbered = channels.some((c) => c.number);
  return channels.map((c, i) => makeChannel({ ...c, number: numbered ? c.number : i + 1 }));
}

function makeChannel({ name, path, group = "", logo = "", number = 0, sources = [] }) {
  return {
    name, group, number, sources,
    logo: logoSchemes.test(logo) ? logo : "",
    path: path.replace(/^\//, ""),
    url: api(path.replace(/^\//, "")),
    words: fold(`${number} ${name} ${group}`),
  };
}

// Behind TLS a browser shows no pictures from servers without.
const logoSchemes = location.protocol === "https:" ? /^(https:|data:image\/)/i : /^(https?:|data:image\/)/i;

// decoded is a path as it is compared: an address bar writes it in its own way.
export function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

// A Names tells which channel with a name a channel of the status is: by its own
// path, or by the address of its only source.
export class Names {
  constructor(channels = []) {
    this.byID = new Map();
    for (const channel of channels) {
      this.byID.set(`/${decoded(channel.path)}`, channel);
      if (channel.sources.length === 1) this.byID.set(bare(channel.sources[0].url), channel);
    }
  }

  of({ id, source = "" }) {
    return this.byID.get(id.replace(/#\d+$/, "")) ?? this.byID.get(bare(source)) ?? null;
  }
}

const bare = (url) => url.replace(/\?.*$/, "");

// typedChannel makes a channel out of an address that somebody typed into the
// search: "239.1.1.1:5000", "rtp://...", "udp/239.1.1.1:5000?fcc=...".
export function typedChannel(text) {
  const typed = text.trim();
  let match = /^(?:(rtp|udp|igmp|rtsp):\/\/|\/?(rtp|udp|rtsp)\/)(\S+)$/i.exec(typed);
  if (!match && /^(\[[0-9a-f:]+\]|\d+\.\d+\.\d+\.\d+):\d+\S*$/i.test(typed)) match = [typed, "rtp", "", typed];
  if (!match) return null;
  const kind = (match[1] || match[2]).toLowerCase();
  return makeChannel({ name: match[3], path: `${kind === "igmp" ? "rtp" : kind}/${match[3]}` });
}

// fold makes words comparable: full-width and half-width, upper and lower case.
export const fold = (text) => text.normalize("NFKC").toLowerCase();

// find returns the channels of a group (or of all, "") that hold every word.
export function find(channels, group, text) {
  const words = fold(text).split(/\s+/).filter(Boolean);
  return channels.filter((c) => (!group || c.group === group) && words.every((w) => c.words.includes(w)));
}

// groupsOf lists the groups in the order of their first channel.
export const groupsOf = (channels) => [...new Set(channels.map((c) => c.group).filter(Boolean))];
