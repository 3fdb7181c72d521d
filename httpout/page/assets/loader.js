// How the player gets its bytes: one fetch, whose connection ends the moment
// abort is called, also while nothing arrives. (mpegts.js's own loader waits
// for the next bytes before it closes, so a silent channel would keep its
// viewer.) It also tells when the first byte came, and what the server said
// where it refused.

// makeLoader returns the loader class that mpegts.js is to use for one stream,
// which abortion ends. events: opened(), firstByte(), refused(status, text).
export function makeLoader(mpegts, abortion, events) {
  const { LoaderStatus, LoaderErrors } = mpegts;
  return class extends mpegts.BaseLoader {
    constructor() {
      super("zapcast");
      this.received = 0;
    }

    destroy() {
      this.abort();
      super.destroy();
    }

    abort() {
      this._status = LoaderStatus.kIdle;
      abortion.abort();
    }

    async open(source) {
      this._status = LoaderStatus.kConnecting;
      try {
        const response = await fetch(source.url, { signal: abortion.signal, cache: "no-store", referrerPolicy: "no-referrer" });
        if (!response.ok) {
          const text = (await response.text()).trim();
          this._status = LoaderStatus.kError;
          events.refused(response.status, text);
          return;
        }
        events.opened();
        await this.pump(response.body.getReader());
      } catch (error) {
        if (abortion.signal.aborted) return;
        this._status = LoaderStatus.kError;
        this._onError?.(LoaderErrors.EXCEPTION, { code: -1, msg: error.message });
      }
    }

    async pump(reader) {
      for (;;) {
        const { done, value } = await reader.read();
        if (abortion.signal.aborted) return;
        if (done) break;
        if (this.received === 0) events.firstByte();
        this._status = LoaderStatus.kBuffering;
        const at = this.received;
        this.received += value.byteLength;
        const whole = value.byteLength === value.buffer.byteLength;
        this._onDataArrival?.(whole ? value.buffer : value.slice().buffer, at, this.received);
      }
      this._status = LoaderStatus.kComplete;
      this._onComplete?.(0, this.received - 1);
    }
  };
}
