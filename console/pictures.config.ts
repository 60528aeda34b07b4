import { defineConfig } from "@playwright/test";

import checks from "./playwright.config";

/** `npm run screenshots` makes the manual's pictures from the network of `trouter run --demo`. */
export default defineConfig(checks, { testDir: "pictures", timeout: 600_000 });
