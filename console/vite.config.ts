import { fileURLToPath } from "node:url";
import type { AcceptedPlugin } from "postcss";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** PatternFly's base names its own font files and pictures; the console uses the system's fonts and loads none of them. */
const withoutFontFiles: AcceptedPlugin = {
  postcssPlugin: "without-font-files",
  // `Once` runs before Vite collects the files that a style sheet names.
  Once(root) {
    root.walkAtRules("font-face", (rule) => {
      rule.remove();
    });
    root.walkDecls(/^--pf-t--global--background--image/, (declaration) => {
      if (declaration.value.includes("url(")) declaration.value = "none";
    });
  },
};

/** rhea is written for Node: these files replace the modules of Node that it imports; files and sockets are left empty. */
const nothing = at("src/amqp/node/nothing.ts");
const nodeModules = {
  fs: nothing,
  net: nothing,
  tls: nothing,
  os: nothing,
  path: nothing,
  util: at("src/amqp/node/util.ts"),
  // A trailing slash names the packages of npm instead of Node's own modules.
  buffer: "buffer/",
  events: "events/",
};

export default defineConfig({
  // Relative, so that the console works below any path.
  base: "./",
  plugins: [react()],
  resolve: { alias: nodeModules },
  css: { postcss: { plugins: [withoutFontFiles] } },
  build: {
    outDir: at("../trouter/http/console"),
    emptyOutDir: true,
    target: "es2022",
    // A data: URL would need an exception in the Content-Security-Policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
  },
  server: {
    // `TROUTER=http://127.0.0.1:8080 npm run dev` serves the sources and passes AMQP on to that router.
    proxy: process.env["TROUTER"] ? { "/$management": { target: process.env["TROUTER"], ws: true } } : {},
  },
  // Only a test that hangs takes this long, also on a busy machine.
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"], testTimeout: 300_000 },
});
