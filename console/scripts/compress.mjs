// Write a compressed copy beside each file of the build that shrinks; the router sends it to browsers that accept gzip.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath, URL } from "node:url";
import { gzipSync } from "node:zlib";

const build = fileURLToPath(new URL("../../trouter/http/console", import.meta.url));
const shrinking = new Set([".css", ".html", ".js", ".json", ".svg"]);

for (const entry of readdirSync(build, { recursive: true })) {
  const path = join(build, entry);
  if (shrinking.has(extname(path))) writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
}
