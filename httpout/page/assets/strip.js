// The loss map: one column a second, newest at the right. A column says what
// became of that second's packets; the worst is drawn over the rest.

import { CAUSES } from "./history.js";

const COLUMN = 3; // pixels, one of which is space

// color reads a colour of the style sheet, so that the map follows the theme.
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// drawStrip draws samples up to now (seconds) into a canvas that fills its box.
export function drawStrip(canvas, samples, now) {
  const width = canvas.clientWidth, height = canvas.clientHeight, scale = devicePixelRatio || 1;
  if (!width) return;
  if (canvas.width !== Math.round(width * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const g = canvas.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  const colors = new Map(CAUSES.map((c) => [c.name, color(c.color)]));
  const quiet = color("--line"), alive = color("--strip");
  for (const sample of samples) {
    const x = width - COLUMN * (Math.round(now - sample.at) + 1);
    if (x < -COLUMN) continue;
    g.fillStyle = sample.deltas.datagrams > 0 ? alive : quiet;
    g.fillRect(x, height - 3, COLUMN - 1, 3);
    for (const { name } of [...CAUSES].reverse()) {
      const n = sample.deltas[name];
      if (!n) continue;
      const share = n / Math.max(1, sample.deltas.datagrams + n);
      const tall = Math.max(5, Math.min(height, Math.sqrt(share) * height * 2)); // one packet in ten thousand is to be seen
      g.fillStyle = colors.get(name);
      g.fillRect(x, height - tall, COLUMN - 1, tall);
    }
  }
}
