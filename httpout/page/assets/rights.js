// What this browser's token allows: {stream, view, admin}. Whoever is told that
// something is not allowed is not shown its button; the server decides.

import { ask } from "./channels.js";

let asked = null;

export function myRights() {
  asked ??= ask("api/rights").catch(() => {
    asked = null; // next time, perhaps
    return { stream: false, view: false, admin: false };
  });
  return asked;
}
