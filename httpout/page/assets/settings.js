// What this browser remembers: language, theme, volume, the last channel.
// Private windows may refuse storage; then it lasts as long as the page.

const memory = new Map();

export function remember(key, value) {
  memory.set(key, value);
  try {
    localStorage.setItem("zapcast." + key, JSON.stringify(value));
  } catch { /* kept in memory */ }
}

export function recall(key, otherwise) {
  if (memory.has(key)) return memory.get(key);
  try {
    const text = localStorage.getItem("zapcast." + key);
    if (text !== null) return JSON.parse(text);
  } catch { /* as if it had never been set */ }
  return otherwise;
}

// theme is "light", "dark", or "" for what the system says.
export function applyTheme() {
  const theme = recall("theme", "");
  document.documentElement.dataset.theme = theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

export function toggleTheme() {
  remember("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  applyTheme();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
