// The channels that can be watched, and how they are found.

// api makes the URL of one of the server's answers; everything is relative to
// the page, which may live under a prefix and behind TLS.
export const api = (path) => new URL(path, document.baseURI).href;

// loadChannels asks the server which channels it has. It throws where there is
// no answer.
export async function loadChannels() {
  const response = await fetch(api("api/status"), { cache: "no-cache" });
  if (!response.ok) throw new Error(`${response.status} ${(await response.text()).trim()}`);
  const { channels } = await response.json();
  return channels.map((c, i) => makeChannel({ name: c.id, path: c.source.replace("://", "/"), number: i + 1 }));
}

function makeChannel({ name, path, group = "", logo = "", number = 0 }) {
  return {
    name, group, number,
    logo: /^(https?:|data:image\/)/i.test(logo) ? logo : "",
    path: path.replace(/^\//, ""),
    url: api(path.replace(/^\//, "")),
    words: fold(`${number} ${name} ${group}`),
  };
}

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
