/** A router as operators run it: a process with a configuration file, stopped by a signal. */

import { execFile, execFileSync, spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const OWN_PYTHON = join(ROOT, ".venv/bin/python");
/** The Python interpreter that has trouter; the environment variable PYTHON overrides it. */
export const PYTHON = process.env["PYTHON"] ?? (existsSync(OWN_PYTHON) ? OWN_PYTHON : "python3");
/** Only a hanging process takes this long. */
const DEADLINE_MS = 300_000;
const LISTENING = /SERVER \(notice\) (?:\[W1\] )?Listening (?:for HTTP )?on \S+:(\d+)$/;
const OPERATIONAL = /SERVER \(notice\) (?:\[W1\] )?Operational/;

/** Ends the routers that still run when this process ends. */
const alive = new Set<ChildProcess>();
process.on("exit", () => alive.forEach((child) => child.kill("SIGKILL")));

/** A started router. */
export class RunningRouter {
  /** The ports of the listeners, in the order of the configuration. */
  readonly ports: number[] = [];
  readonly lines: string[] = [];
  private readonly folder = mkdtempSync(join(tmpdir(), "console-e2e-"));
  private readonly child: ChildProcess;
  private readonly ended: Promise<void>;
  private waiting: (() => void)[] = [];
  private hasEnded = false;

  constructor(readonly configuration: string) {
    const file = join(this.folder, "router.conf");
    writeFileSync(file, configuration);
    this.child = spawn(PYTHON, ["-m", "trouter", "run", "-c", file], { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] });
    alive.add(this.child);
    if (this.child.stderr === null) throw new Error("the router has no log");
    const log = createInterface({ input: this.child.stderr });
    log.on("line", (line) => this.read(line));
    this.ended = new Promise((resolve) => {
      this.child.once("close", () => {
        this.hasEnded = true;
        alive.delete(this.child);
        rmSync(this.folder, { recursive: true, force: true });
        this.changed();
        resolve();
      });
    });
  }

  private read(line: string): void {
    this.lines.push(line);
    const port = LISTENING.exec(line)?.[1];
    if (port !== undefined) this.ports.push(Number(port));
    this.changed();
  }

  private changed(): void {
    const waiting = this.waiting;
    this.waiting = [];
    waiting.forEach((resume) => resume());
  }

  /** Return the id of the process. */
  get pid(): number {
    if (this.child.pid === undefined) throw new Error("the router did not start");
    return this.child.pid;
  }

  /** Return the port of the listener with that index in the configuration. */
  port(place = 0): number {
    const port = this.ports[place];
    if (port === undefined) throw new Error(`the router has ${this.ports.length} listeners:\n${this.lines.join("\n")}`);
    return port;
  }

  /** Wait until `count` lines of the log from line `since` on match. */
  async waitForLine(pattern: RegExp, { since = 0, count = 1 } = {}): Promise<void> {
    const late = new AbortController();
    const timer = setTimeout(() => {
      late.abort();
      this.changed();
    }, DEADLINE_MS);
    try {
      while (this.lines.slice(since).filter((line) => pattern.test(line)).length < count) {
        if (this.hasEnded || late.signal.aborted) {
          throw new Error(`fewer than ${count} lines match ${pattern}:\n${this.lines.slice(-20).join("\n")}`);
        }
        await new Promise<void>((resume) => this.waiting.push(resume));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** End the process at once, as a crash would. */
  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  /** Stop the router as an operator does; kill it if it does not end. */
  async stop(): Promise<void> {
    const timer = setTimeout(() => this.child.kill("SIGKILL"), DEADLINE_MS);
    this.child.kill("SIGTERM");
    await this.ended;
    clearTimeout(timer);
  }
}

/** Start a router and return it as soon as all of its listeners listen. */
export async function startRouter(configuration: string): Promise<RunningRouter> {
  const router = new RunningRouter(configuration);
  await router.waitForLine(OPERATIONAL);
  return router;
}

type Setting = string | number | boolean;

/** What a router of the tests waits for a peer, in s: on a busy machine a browser or a router may be silent for long. */
export const PATIENCE_S = 300;

/** Return a section of a configuration: `section("listener", {port: 0})`; booleans become yes and no. */
export function section(name: string, settings: Readonly<Record<string, Setting>>): string {
  const lines = Object.entries(settings).map(
    ([key, value]) => `    ${key}: ${typeof value === "boolean" ? (value ? "yes" : "no") : value}`,
  );
  return `${name} {\n${lines.join("\n")}\n}\n`;
}

/** Return the section of an AMQP listener on a free port of this machine. */
export const amqpListener = (settings: Readonly<Record<string, Setting>> = {}): string =>
  section("listener", { host: "127.0.0.1", port: 0, saslMechanisms: "ANONYMOUS", initialHandshakeTimeoutSeconds: PATIENCE_S, ...settings });

/** Return the section of a listener that serves the console. */
export const consoleListener = (settings: Readonly<Record<string, Setting>> = {}): string =>
  amqpListener({ http: true, ...settings });

/** Write a users file with these passwords and return its path; the file is deleted when this process ends. */
export function usersFile(passwords: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "console-users-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const users = join(folder, "users");
  for (const [user, password] of Object.entries(passwords)) {
    const secret = join(folder, "secret");
    writeFileSync(secret, `${password}\n`, { mode: 0o600 });
    execFileSync(PYTHON, ["-m", "trouter", "passwd", "add", users, user, "--password-file", secret], { cwd: ROOT });
  }
  return users;
}

/** Do an operation of the management node of the router that listens on `port`, as `trouter manage` does, and return the answer. */
export async function manage(port: number, operation: string, ...more: readonly string[]): Promise<unknown> {
  const node = ["--type", "org.amqp.management", "--name", "self"];
  const command = ["-m", "trouter", "manage", "-b", `127.0.0.1:${port}`, "--timeout", String(PATIENCE_S), operation, ...node, ...more];
  const { stdout } = await promisify(execFile)(PYTHON, command, { cwd: ROOT });
  return JSON.parse(stdout) as unknown;
}
