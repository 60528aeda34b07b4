/**
 * A management node that answers for a network of any size: a peer of its own over AMQP on WebSocket, which also serves the
 * built console. The rows are made up; the protocol is the real one.
 */

import { createReadStream, existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import rhea, { type Container, type EventContext, type Message, type Sender } from "rhea";
import { WebSocketServer } from "ws";

export interface LargeNetwork {
  readonly url: string;
  /** The number of QUERY requests so far. */
  readonly queries: () => number;
  readonly stop: () => Promise<void>;
}

type Cell = string | number | boolean | null | readonly Cell[] | { readonly [key: string]: Cell };
type Row = Readonly<Record<string, Cell>>;

const CONSOLE = fileURLToPath(new URL("../../../trouter/http/console/", import.meta.url));
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
};
const PREFIX = "org.apache.qpid.dispatch.";
const NAME = /^(?:_topo\/0\/|_edge\/)(.+)\/\$management$/;

/** The name of a broker at the first router: 10 kB with a script, quotes, control characters and a mark that turns the reading direction. */
const HOSTILE = `"'><script>alert(1)</script>\u202egnp.exe\u0000\u001b[31m${"<img src=x onerror=alert(1)>".repeat(400)}`;

const idOf = (index: number): string => `r${String(index).padStart(3, "0")}`;
/** Return the parent of router `index` in a tree of three branches each; the router dials it. */
const above = (index: number): number => Math.floor((index - 1) / 3);

/** Return the tables of a network with `routers` routers and `clients` clients in all, each with one link. */
class Tables {
  private readonly started = Date.now();

  constructor(
    private readonly routers: number,
    private readonly clients: number,
  ) {}

  rows(index: number, entity: string): readonly Row[] {
    switch (entity) {
      case "router":
        return [{ id: idOf(index), mode: "interior", version: "1.19.0", identity: "1" }];
      case "router.node":
        return Array.from({ length: this.routers }, (_, other) => this.node(index, other));
      case "connection":
        return [...this.trunks(index), ...this.own(index).map((client) => this.connection(client))];
      case "router.link":
        return this.own(index).map((client) => this.link(client));
      case "router.address":
        return [{ key: "M0queue.1", distribution: "balanced", remoteHostRouters: [] }];
      default:
        return [];
    }
  }

  private own(index: number): readonly number[] {
    const each = Math.ceil(this.clients / this.routers);
    const all = Array.from({ length: each }, (_, place) => index * each + place);
    return all.filter((client) => client < this.clients);
  }

  private node(index: number, other: number): Row {
    let hop = other;
    // The next hop is on the path up from the other router, or is the parent.
    while (hop !== 0 && hop !== index && above(hop) !== index) hop = above(hop);
    const next = index === other ? "(self)" : above(hop) === index && hop !== 0 ? (hop === other ? null : idOf(hop)) : other === above(index) ? null : idOf(above(index));
    return { id: idOf(other), nextHop: next, cost: index === other ? null : 1, index: other, linkCosts: null };
  }

  private trunks(index: number): readonly Row[] {
    const row = (other: number, dir: string): Row => ({
      identity: `t${String(other)}`,
      container: idOf(other),
      host: `10.0.0.${String(other)}:5671`,
      role: "inter-router",
      dir,
      properties: {},
      user: null,
      active: true,
    });
    const stranger = { ...row(0, "in"), identity: "stranger", container: HOSTILE, role: "route-container" };
    const below = [1, 2, 3].map((branch) => 3 * index + branch).filter((other) => other < this.routers);
    return [...(index === 0 ? [] : [row(above(index), "out")]), ...below.map((other) => row(other, "in")), ...(index === 0 ? [stranger] : [])];
  }

  private connection(client: number): Row {
    return {
      identity: String(client),
      container: `client-${String(client)}`,
      host: "10.1.0.1:40000",
      role: "normal",
      dir: "in",
      properties: {},
      user: "anonymous",
      active: true,
    };
  }

  private link(client: number): Row {
    const isSender = client % 2 === 0;
    const count = Math.floor((Date.now() - this.started) / 100) + client;
    const histogram = Array.from({ length: 128 }, (_, index) => (index < 5 ? count * (index + 1) : 0));
    return {
      identity: String(client),
      connectionId: String(client),
      linkName: `link-${String(client)}`,
      linkType: "endpoint",
      linkDir: isSender ? "in" : "out",
      owningAddr: `M0queue.${String(client % 50)}`,
      peer: null,
      capacity: 250,
      undeliveredCount: client % 97,
      unsettledCount: client % 251,
      deliveryCount: count,
      settleRate: 10,
      ingressHistogram: isSender ? null : histogram,
    };
  }
}

function answerTo(tables: Tables, routers: number, address: string, message: Message): { status: number; body: unknown } {
  const properties = (message.application_properties ?? {}) as Readonly<Record<string, unknown>>;
  const id = NAME.exec(address)?.[1];
  const index = id === undefined ? 0 : Number(id.slice(1));
  switch (properties["operation"]) {
    case "GET-MGMT-NODES":
      return { status: 200, body: Array.from({ length: routers }, (_, other) => `amqp:/_topo/0/${idOf(other)}/$management`) };
    case "GET-SCHEMA":
      return { status: 200, body: { prefix: PREFIX.slice(0, -1), entityTypes: {} } };
    case "QUERY": {
      const { attributeNames: names } = message.body as { attributeNames: readonly string[] };
      const [offset, count] = [Number(properties["offset"] ?? 0), Number(properties["count"] ?? 0)];
      const rows = tables.rows(index, String(properties["entityType"]).replace(PREFIX, ""));
      const columns = names.length > 0 ? names : Object.keys(rows[0] ?? {});
      const page = rows.slice(offset, count > 0 ? offset + count : undefined);
      return { status: 200, body: { attributeNames: columns, results: page.map((row) => columns.map((name) => row[name] ?? null)) } };
    }
    default:
      return { status: 501, body: {} };
  }
}

interface Reply {
  readonly status: number;
  readonly body: unknown;
  readonly description?: string;
}

/** Return the reply to a request to the node at an address, at once or later; undefined for no reply. */
export type Answer = (address: string, message: Message) => Reply | undefined | Promise<Reply | undefined>;

/** Return a container that answers the requests of every console that connects. */
function node(answer: Answer): Container {
  const container = rhea.create_container({ id: idOf(0) });
  (container.sasl_server_mechanisms as { enable_anonymous: () => void }).enable_anonymous();
  const replies = new Map<string, Sender>();
  container.on("sender_open", ({ sender }: EventContext) => {
    if (sender === undefined) return;
    const address = `_topo/0/${idOf(0)}/temp.${String(replies.size)}`;
    sender.set_source({ address });
    replies.set(address, sender);
  });
  container.on("message", ({ message }: EventContext) => {
    const to = message?.reply_to === undefined ? undefined : replies.get(message.reply_to);
    if (message === undefined || to === undefined) return;
    void Promise.resolve(answer(message.to ?? "", message)).then((reply) => {
      if (reply === undefined) return;
      to.send({
        correlation_id: message.correlation_id,
        application_properties: { statusCode: reply.status, statusDescription: reply.description ?? "" },
        body: reply.body,
      });
    });
  });
  container.on("disconnected", () => undefined);
  return container;
}

function serveFiles(): Server {
  return createServer((request, response) => {
    const path = normalize(new URL(request.url ?? "/", "http://node").pathname);
    const file = join(CONSOLE, path === "/" ? "index.html" : path);
    if (!file.startsWith(CONSOLE) || !existsSync(file)) response.writeHead(404).end();
    else createReadStream(file).pipe(response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "text/plain" }));
  });
}

/** Start a node that answers for a network with this number of routers and clients. */
export async function startLargeNetwork(routers: number, clients: number): Promise<LargeNetwork> {
  const tables = new Tables(routers, clients);
  return startNode((address, message) => answerTo(tables, routers, address, message));
}

/** Serve the console, and a management node that replies by `answer`. */
export async function startNode(answer: Answer): Promise<LargeNetwork> {
  let queries = 0;
  const server = serveFiles();
  const sockets = new WebSocketServer({ server, handleProtocols: () => "amqp" });
  const container = node((address, message) => {
    queries += 1;
    return answer(address, message);
  });
  sockets.on("connection", (socket) => container.websocket_accept(socket as never, {}));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`,
    queries: () => queries,
    stop: async () => {
      sockets.clients.forEach((socket) => socket.terminate());
      sockets.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
