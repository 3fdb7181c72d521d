// What the status was over the last minutes: the server tells what is, and the
// counters so far; the page remembers, and makes rates of them.

export const SECONDS = 300;

// What became of a channel's packets, worst first: its name, the colour that
// stands for it, and how many the status counts.
export const CAUSES = [
  { name: "lost", color: "--bad" },
  { name: "overflow", color: "--bad" },
  { name: "resyncs", color: "--late" },
  { name: "bad_ts", color: "--late" },
  { name: "by_parity", color: "--good", count: ({ losses: l }) => l ? l.reed_solomon + l.row + l.column : 0 },
  { name: "retransmitted", color: "--good", count: ({ losses: l }) => l?.retransmitted ?? 0 },
  { name: "by_burst", color: "--good", count: ({ losses: l }) => l?.fcc_burst ?? 0 },
  { name: "reordered", color: "--accent" },
  { name: "duplicates", color: "--faint" },
].map((cause) => ({ count: (channel) => channel[cause.name] ?? 0, ...cause }));

class History {
  constructor() {
    this.channels = new Map(); // id → samples, oldest first
  }

  // take adds an update. at is in seconds.
  take(status, at) {
    for (const channel of status.channels) {
      const samples = this.channels.get(channel.id) ?? [];
      this.channels.set(channel.id, samples);
      const last = samples.at(-1);
      const sample = { at, bitRate: channel.bit_rate, viewers: channel.viewers, totals: {}, deltas: {} };
      const again = !last || channel.datagrams < last.totals.datagrams; // the channel was opened anew
      for (const { name, count } of [{ name: "datagrams", count: (c) => c.datagrams }, ...CAUSES]) {
        sample.totals[name] = count(channel);
        sample.deltas[name] = again ? 0 : sample.totals[name] - last.totals[name];
      }
      samples.push(sample);
      while (samples[0].at < at - SECONDS) samples.shift();
    }
    for (const [id, samples] of this.channels) {
      if (samples.at(-1).at < at - SECONDS) this.channels.delete(id);
    }
  }
}

export const history = new History();
