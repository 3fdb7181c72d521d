// The few helpers that build the page. Text is always set as text: names come
// from playlists that anybody may have written.

// h makes an element: h("a.name", {href, onclick}, child, "text", [more]).
// Properties are set as properties, data-*, aria-* and role as attributes;
// children that are null or false are left out.
export function h(selector, props, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(props ?? {})) {
    if (key.includes("-") || key === "role" || key === "for") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.flat().filter((c) => c != null && c !== false));
  return element;
}

// svg makes an icon of 20 by 20 out of the path's d.
export function icon(d) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 20 20");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", d);
  svg.append(path);
  return svg;
}

// setText changes an element's text where it differs: most of a status page
// stays as it is from one second to the next.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// loadScript runs a classic script once and returns what it leaves in window.
const scripts = new Map();
export function loadScript(path, name) {
  if (!scripts.has(path)) {
    scripts.set(path, new Promise((resolve, reject) => {
      const script = h("script", { src: path, onload: () => resolve(window[name]) });
      script.onerror = () => reject(new Error(`cannot load ${path}`));
      document.head.append(script);
    }));
  }
  return scripts.get(path);
}

// loadStyle adds a style sheet once.
export function loadStyle(path) {
  if (!document.head.querySelector(`link[href="${path}"]`)) document.head.append(h("link", { rel: "stylesheet", href: path }));
}
