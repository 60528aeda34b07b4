import { defineConfig } from "@playwright/test";

/** Debian's Chromium; CHROMIUM names another. */
const chromium = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** Only a step that hangs takes this long: each step waits for the one before, so a busy machine makes a test longer, not fail. */
const STEP_MS = 300_000;
/** Ends a test that hangs in a step without a limit of its own. */
const TEST_MS = 1_800_000;

export default defineConfig({
  testDir: "e2e",
  outputDir: "test-results",
  fullyParallel: false,
  workers: 2,
  forbidOnly: true,
  retries: 0,
  timeout: TEST_MS,
  expect: { timeout: STEP_MS },
  reporter: [["list"]],
  use: {
    browserName: "chromium",
    actionTimeout: STEP_MS,
    navigationTimeout: STEP_MS,
    viewport: { width: 1280, height: 800 },
    launchOptions: { executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] },
    timezoneId: "Europe/Berlin",
    locale: "en-GB",
  },
});
