import { defineConfig } from "@playwright/test";

import checks from "./playwright.config";

/** `npm run figures` measures the console; run it on a machine that does nothing else. */
export default defineConfig(checks, { testDir: "figures", timeout: 900_000 });
