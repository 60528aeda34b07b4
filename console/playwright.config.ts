import { defineConfig } from "@playwright/test";

/** Debian's Chromium; CHROMIUM names another. */
const chromium = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

export default defineConfig({
  testDir: "e2e",
  outputDir: "test-results",
  fullyParallel: false,
  workers: 2,
  forbidOnly: true,
  retries: 0,
  timeout: 120_000,
  expect: { timeout: 30_000 },
  reporter: [["list"]],
  use: {
    browserName: "chromium",
    viewport: { width: 1280, height: 800 },
    launchOptions: { executablePath: chromium, args: ["--no-sandbox", "--disable-gpu"] },
    timezoneId: "Europe/Berlin",
    locale: "en-GB",
  },
});
