/** Which routers there are, and by which address each is reached. */

import type { AmqpConnection } from "../amqp/connection";
import { ask, query } from "../amqp/management";
import type { RouterRef, Row, Value } from "../model/types";

const NODE = /^(?:amqp:)?\/?_topo\/[^/]+\/(.+)\/\$management$/;
const REPLY = /^(?:amqp:)?\/?_(topo\/[^/]+|edge)\/(.+)\/temp\.[^/]*$/;

/** Return the id in an address that GET-MGMT-NODES returned; ids may contain slashes. */
export function idOfNode(address: Value): string | undefined {
  return typeof address === "string" ? NODE.exec(address)?.[1] : undefined;
}

/** Return the id and kind of the router that made the reply address; undefined for an address of another shape. */
export function idOfReply(replyTo: string): { id: string; isEdge: boolean } | undefined {
  const found = REPLY.exec(replyTo);
  return found?.[2] === undefined ? undefined : { id: found[2], isEdge: found[1] === "edge" };
}

const edgesOf = (connections: readonly Row[]): string[] =>
  connections
    .filter((row) => row["role"] === "edge" && row["dir"] === "in")
    .flatMap((row) => (typeof row["container"] === "string" ? [row["container"]] : []));

async function nodesFrom(amqp: AmqpConnection, router: string): Promise<string[]> {
  const nodes = await ask(amqp, router, { operation: "GET-MGMT-NODES" });
  return Array.isArray(nodes) ? (nodes as readonly Value[]).flatMap((node) => idOfNode(node) ?? []) : [];
}

const CONNECTION = ["role", "dir", "container"];

/**
 * Return every router of the network that the login reaches, the one connected to first; ManagementError if that one fails.
 * `early` is called with the routers that this one knows of, before the others have been asked for their edges.
 */
export async function discover(
  amqp: AmqpConnection,
  early: (routers: readonly RouterRef[]) => void = () => undefined,
): Promise<RouterRef[]> {
  // A tenant may not look at the router's own entity.
  const [own] = await query(amqp, "", "router", ["id", "mode"]).catch(() => []);
  const reply = idOfReply(amqp.replyTo);
  const id = typeof own?.["id"] === "string" ? own["id"] : (reply?.id ?? "router");
  const mode = own?.["mode"];
  const first: RouterRef = { id, address: "", mode: isMode(mode) ? mode : reply?.isEdge === true ? "edge" : "unknown" };
  const connections = await query(amqp, "", "connection", CONNECTION);
  const seen = new Map<string, RouterRef>([[id, first]]);
  const add = (other: string, address: string, kind: RouterRef["mode"]): void => {
    if (!seen.has(other)) seen.set(other, { id: other, address, mode: kind });
  };
  let interior = await nodesFrom(amqp, "");
  if (first.mode === "edge") {
    const uplink = connections.find((row) => row["role"] === "edge")?.["container"];
    if (typeof uplink === "string") {
      interior = await nodesFrom(amqp, `_topo/0/${uplink}/`).catch(() => [uplink]);
    }
  }
  for (const other of interior) add(other, `_topo/0/${other}/`, "interior");
  for (const edge of edgesOf(connections)) add(edge, `_edge/${edge}/`, "edge");
  const others = [...seen.values()].filter((router) => router.mode === "interior" && router.address !== "");
  early([...seen.values()]);
  // An interior router that does not answer hides its edges and nothing else.
  const tables = await Promise.allSettled(others.map((router) => query(amqp, router.address, "connection", CONNECTION)));
  for (const table of tables) {
    if (table.status !== "fulfilled") continue;
    for (const edge of edgesOf(table.value)) add(edge, `_edge/${edge}/`, "edge");
  }
  return [...seen.values()];
}

function isMode(mode: Value | undefined): mode is RouterRef["mode"] {
  return mode === "standalone" || mode === "interior" || mode === "edge";
}
