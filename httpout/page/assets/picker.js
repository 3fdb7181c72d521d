// The channel list with search and groups.

import { h } from "./dom.js";
import { t } from "./i18n.js";
import { find, groupsOf, typedChannel } from "./channels.js";
import { List } from "./list.js";
import { recall, remember } from "./settings.js";

const ROW = 56; // as in style.css

export class Picker {
  // onPick(channel) is called when somebody chooses one.
  constructor(box, onPick) {
    this.onPick = onPick;
    this.channels = [];
    this.shown = [];
    this.search = h("input", {
      type: "search", placeholder: t("searchOrAddress"), "aria-label": t("searchOrAddress"), autocomplete: "off", spellcheck: false,
      oninput: () => this.filter(),
      onkeydown: (e) => {
        if (e.key === "Enter" && this.shown.length) this.onPick(this.shown[0]);
        if (e.key === "Escape") this.clear();
      },
    });
    this.groups = h("select", { "aria-label": t("group"), onchange: () => this.pickGroup() });
    this.list = h("div.list", { role: "listbox", "aria-label": t("channels"), tabIndex: 0 });
    this.empty = h("p.empty", { hidden: true });
    box.append(h("div.find", null, this.search, this.groups), this.empty, this.list);
    this.rows = new List(this.list, ROW, () => this.makeRow(), fillRow);
  }

  close() {
    this.rows.close();
  }

  setChannels(channels, note = "") {
    this.channels = channels;
    this.note = note;
    const groups = groupsOf(channels);
    const wanted = recall("group", "");
    this.groups.replaceChildren(h("option", { value: "" }, t("allGroups")), ...groups.map((g) => h("option", { value: g }, g)));
    this.groups.value = groups.includes(wanted) ? wanted : "";
    this.groups.hidden = groups.length === 0;
    this.filter();
  }

  pickGroup() {
    remember("group", this.groups.value);
    this.filter();
  }

  clear() {
    this.search.value = "";
    this.search.blur();
    this.filter();
  }

  filter() {
    this.shown = find(this.channels, this.groups.value, this.search.value);
    const typed = typedChannel(this.search.value);
    if (typed) this.shown = [typed, ...this.shown];
    this.rows.show(this.shown);
    const text = this.shown.length ? "" : this.channels.length ? t("nothingFound") : this.note;
    this.empty.textContent = text;
    this.empty.hidden = !text;
  }

  select(channel) {
    this.rows.select(channel);
  }

  // beside returns the channel that many places after one, around the end.
  beside(channel, step) {
    const n = this.shown.length;
    if (n === 0) return null;
    const at = this.shown.findIndex((c) => c.path === channel?.path);
    if (at < 0) return this.shown[step > 0 ? 0 : n - 1];
    return this.shown[(at + step + n) % n];
  }

  makeRow() {
    const row = h("div.row", { role: "option" },
      h("span.number"), h("span.logo"), h("span.names", null, h("span.name"), h("span.group")));
    row.addEventListener("click", () => this.onPick(row.channel));
    return row;
  }
}

function fillRow(row, channel, selected) {
  const [number, logo, names] = row.children;
  row.channel = channel;
  row.setAttribute("aria-selected", selected);
  number.textContent = channel.number || "";
  names.children[0].textContent = channel.name;
  names.children[1].textContent = channel.group;
  const initial = () => logo.replaceChildren([...channel.name.replace(/^\W+(?=\w)/, "")][0] ?? "·");
  if (!channel.logo) return initial();
  logo.replaceChildren(h("img", { src: channel.logo, alt: "", loading: "lazy", decoding: "async", referrerPolicy: "no-referrer", onerror: initial }));
}
