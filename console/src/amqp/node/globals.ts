/** The globals of Node that rhea reads. Modules that import rhea import this one first. */

import { Buffer } from "buffer";

const scope = globalThis as unknown as Record<string, unknown>;

scope["Buffer"] ??= Buffer;
scope["process"] ??= {
  env: {},
  version: "v18",
  nextTick: (run: () => void) => {
    queueMicrotask(run);
  },
};
scope["global"] ??= globalThis;
