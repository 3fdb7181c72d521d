// What the server tells once a second, over one stream of events for the whole
// page. The stream is open while somebody listens and the page can be seen.

import { api } from "./channels.js";

const listeners = new Map(); // function → what it listens to
let source = null;
let state = "closed"; // "closed", "connecting", "open", "lost"

// listen calls onStatus(status) for each update and onState(state) for each
// change of the connection, until the function that it returns is called.
export function listen(onStatus, onState = () => {}) {
  listeners.set(onStatus, onState);
  onState(state);
  tune();
  return () => {
    listeners.delete(onStatus);
    tune();
  };
}

function tune() {
  const wanted = listeners.size > 0 && !document.hidden;
  if (wanted && !source) open();
  if (!wanted && source) {
    source.close();
    source = null;
    enter("closed");
  }
}

function open() {
  enter("connecting");
  source = new EventSource(api("api/events"));
  source.onopen = () => enter("open");
  source.onerror = () => {
    enter("lost");
    if (source?.readyState !== EventSource.CLOSED) return; // it tries again by itself
    source = null;
    setTimeout(tune, 5000);
  };
  source.addEventListener("status", (event) => {
    const status = JSON.parse(event.data);
    for (const onStatus of listeners.keys()) onStatus(status);
  });
}

function enter(next) {
  if (state === next) return;
  state = next;
  for (const onState of listeners.values()) onState(state);
}

document.addEventListener("visibilitychange", tune);
