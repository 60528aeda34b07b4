/** The modules of the console import in one direction: no module imports itself by way of others, not even a type. */

import { dirname, join } from "node:path/posix";

import { preProcessFile } from "typescript";
import { expect, it } from "vitest";

const SOURCES = import.meta.glob<string>("./**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });

/** Return the path of the module that `from` imports as `name`; undefined for a package or another file. */
function resolve(from: string, name: string): string | undefined {
  const path = join(dirname(from), name);
  const found = ["", ".ts", ".tsx", "/index.ts", "/index.tsx"].map((end) => `./${path}${end}`);
  return name.startsWith(".") ? found.find((each) => each in SOURCES) : undefined;
}

/** Return the modules that a module imports or exports from. */
function importsOf(module: string): string[] {
  const names = preProcessFile(SOURCES[module] ?? "", true, true).importedFiles.map((each) => each.fileName);
  return names.map((name) => resolve(module, name)).filter((path) => path !== undefined);
}

/** Return each circle found, from a module back to itself. */
function circles(imports: (module: string) => readonly string[], modules: readonly string[]): string[][] {
  const found: string[][] = [];
  const done = new Set<string>();
  const visit = (module: string, path: readonly string[]): void => {
    if (path.includes(module)) found.push([...path.slice(path.indexOf(module)), module]);
    if (path.includes(module) || done.has(module)) return;
    for (const next of imports(module)) visit(next, [...path, module]);
    done.add(module);
  };
  for (const module of modules) visit(module, []);
  return found;
}

it("finds a circle", () => {
  const imports: Readonly<Record<string, readonly string[]>> = { a: ["b"], b: ["c", "d"], c: ["a"], d: [] };
  expect(circles((module) => imports[module] ?? [], ["d", "a"])).toEqual([["a", "b", "c", "a"]]);
});

it("has no circle of imports", () => {
  const modules = Object.keys(SOURCES);
  expect(modules.flatMap(importsOf).length).toBeGreaterThan(modules.length);
  expect(circles(importsOf, modules)).toEqual([]);
});
