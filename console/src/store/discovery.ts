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

/** What is to be known of each router's connections to find its edges; pages tell rows by their identity. */
export const EDGE_TABLES = { connection: ["identity", "role", "dir", "container"] };

/** Return the connections of the router connected to, as far as they tell of other routers; ManagementError. */
export const ownConnections = (amqp: AmqpConnection): Promise<Row[]> => query(amqp, "", "connection", EDGE_TABLES.connection);

/** Return the router connected to. */
export async function ownRouter(amqp: AmqpConnection): Promise<RouterRef> {
  // A tenant may not look at the router's own entity.
  const [own] = await query(amqp, "", "router", ["id", "mode"]).catch(() => []);
  const reply = idOfReply(amqp.replyTo);
  const id = typeof own?.["id"] === "string" ? own["id"] : (reply?.id ?? "router");
  const mode = own?.["mode"];
  return { id, address: "", mode: isMode(mode) ? mode : reply?.isEdge === true ? "edge" : "unknown" };
}

/** Return the ids of the interior routers that `own` knows of, or that the one above it does; ManagementError. */
export async function interiorOf(amqp: AmqpConnection, own: RouterRef, connections: readonly Row[]): Promise<string[]> {
  const uplink = own.mode === "edge" ? connections.find((row) => row["role"] === "edge")?.["container"] : undefined;
  if (typeof uplink !== "string") return nodesFrom(amqp, "");
  return nodesFrom(amqp, `_topo/0/${uplink}/`).catch(() => [uplink]);
}

/**
 * Return every router of the network that the login reaches, `own` first: the interior ones, and the edges that stand in
 * their tables of connections.
 */
export function routersOf(own: RouterRef, interior: readonly string[], connectionsOf: (id: string) => readonly Row[]): RouterRef[] {
  const seen = new Map<string, RouterRef>([[own.id, own]]);
  const add = (id: string, address: string, mode: RouterRef["mode"]): void => {
    if (!seen.has(id)) seen.set(id, { id, address, mode });
  };
  for (const id of interior) add(id, `_topo/0/${id}/`, "interior");
  for (const id of [...seen.keys()]) {
    for (const edge of edgesOf(connectionsOf(id))) add(edge, `_edge/${edge}/`, "edge");
  }
  return [...seen.values()];
}

function isMode(mode: Value | undefined): mode is RouterRef["mode"] {
  return mode === "standalone" || mode === "interior" || mode === "edge";
}
