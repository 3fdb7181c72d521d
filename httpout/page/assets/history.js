// What the status was over the last minutes: the server tells what is, and the
// counters so far; the page remembers, and makes rates of them.

export const SECONDS = 300;

// The counters of a channel that say what became of its packets, worst first:
// the field in the status, and the colour that stands for it.
export const CAUSES = [
  { field: "lost", color: "--bad" },
  { field: "overflow", color: "--bad" },
  { field: "resyncs", color: "--late" },
  { field: "bad_ts", color: "--late" },
  { field: "reordered", color: "--accent" },
  { field: "duplicates", color: "--faint" },
];

// The bounds of the zap-time histogram, in ms; the last bar is all above.
export const BOUNDS = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
export const STARTS = ["history", "cold", "live"];

class History {
  constructor() {
    this.channels = new Map(); // id → samples, oldest first
    this.zaps = new Map(STARTS.map((start) => [start, new Array(BOUNDS.length + 1).fill(0)]));
    this.counted = new Set(); // viewers whose start is in zaps
  }

  // take adds an update. at is in seconds.
  take(status, at) {
    for (const channel of status.channels) {
      const samples = this.channels.get(channel.id) ?? [];
      this.channels.set(channel.id, samples);
      const last = samples.at(-1);
      const sample = { at, bitRate: channel.bit_rate, viewers: channel.viewers, totals: {}, deltas: {} };
      const again = !last || channel.datagrams < last.totals.datagrams; // the channel was opened anew
      for (const field of ["datagrams", ...CAUSES.map((c) => c.field)]) {
        sample.totals[field] = channel[field] ?? 0;
        sample.deltas[field] = again ? 0 : sample.totals[field] - last.totals[field];
      }
      samples.push(sample);
      while (samples[0].at < at - SECONDS) samples.shift();
    }
    for (const [id, samples] of this.channels) {
      if (samples.at(-1).at < at - SECONDS) this.channels.delete(id);
    }
    for (const viewer of status.viewers) this.count(viewer);
  }

  // count puts a viewer's zap time into its bar, once.
  count({ id, start, first_random_access_ms: access, first_byte_ms: byte }) {
    const took = access ?? (start === "live" ? byte : null);
    if (took === null || this.counted.has(id) || !this.zaps.has(start)) return;
    this.counted.add(id);
    const bar = BOUNDS.findIndex((bound) => took <= bound);
    this.zaps.get(start)[bar < 0 ? BOUNDS.length : bar]++;
  }
}

export const history = new History();
