/** Discovery of the routers of the network, and of the address that reaches each. */

import type { AmqpConnection } from "../amqp/connection";
import { requestBody, query, queryTable } from "../amqp/management";
import type { RouterRef, Row, Value } from "../model/types";
import type { Wanted } from "./interests";

const NODE = /^(?:amqp:)?\/?_topo\/[^/]+\/(.+)\/\$management$/;
const REPLY = /^(?:amqp:)?\/?_(topo\/[^/]+|edge)\/(.+)\/temp\.[^/]*$/;

/** Return the router id in an address of GET-MGMT-NODES; undefined if it has another form. Ids may contain slashes. */
export function idOfNode(address: Value): string | undefined {
  return typeof address === "string" ? NODE.exec(address)?.[1] : undefined;
}

/** Return the id and kind of the router that made the reply address; undefined if the address has another form. */
export function idOfReply(replyTo: string): { id: string; isEdge: boolean } | undefined {
  const found = REPLY.exec(replyTo);
  return found?.[2] === undefined ? undefined : { id: found[2], isEdge: found[1] === "edge" };
}

const edgesOf = (connections: readonly Row[]): string[] =>
  connections
    .filter((row) => row["role"] === "edge" && row["dir"] === "in")
    .flatMap((row) => (typeof row["container"] === "string" ? [row["container"]] : []));

async function fetchNodeIds(amqp: AmqpConnection, router: string): Promise<string[]> {
  const nodes = await requestBody(amqp, router, { operation: "GET-MGMT-NODES" });
  return Array.isArray(nodes) ? (nodes as readonly Value[]).flatMap((node) => idOfNode(node) ?? []) : [];
}

/** The attributes of connections that show a router's edge routers, and the identity by which pages distinguish rows. */
export const EDGE_TABLES = { connection: ["identity", "role", "dir", "container"] } as const satisfies Wanted;

/** Return the connections of the connected router with the attributes of EDGE_TABLES; throw ManagementError. */
export const fetchConnections = (amqp: AmqpConnection): Promise<Row[]> => query(amqp, "", "connection", EDGE_TABLES.connection);

/** Return the router that the console is connected to. */
export async function fetchConnectedRouter(amqp: AmqpConnection): Promise<RouterRef> {
  // A tenant may not read the entity "router".
  const { rows, workers } = await queryTable(amqp, "", "router", ["id", "mode"]).catch(() => ({ rows: [], workers: 0 }));
  const [connected] = rows as readonly Row[];
  const reply = idOfReply(amqp.replyTo);
  const id = typeof connected?.["id"] === "string" ? connected["id"] : (reply?.id ?? "router");
  const mode = connected?.["mode"];
  const found: RouterRef = { id, address: "", mode: isMode(mode) ? mode : reply?.isEdge === true ? "edge" : "unknown" };
  return workers === 0 ? found : { ...found, workers };
}

/** Return the ids of the interior routers that the connected router lists, for an edge router those of its uplink; throw ManagementError. */
export async function fetchInteriorIds(amqp: AmqpConnection, connected: RouterRef, connections: readonly Row[]): Promise<string[]> {
  const uplink = connected.mode === "edge" ? connections.find((row) => row["role"] === "edge")?.["container"] : undefined;
  if (typeof uplink !== "string") return fetchNodeIds(amqp, "");
  return fetchNodeIds(amqp, `_topo/0/${uplink}/`).catch(() => [uplink]);
}

/** Return whether `id` is that of another worker of the connected router, whose tables have what is at all its workers. */
function isWorkerOf({ id: first, workers = 0 }: RouterRef, id: string): boolean {
  const number = id.startsWith(`${first}.`) ? id.slice(first.length + 1) : "";
  return /^[1-9]\d*$/.test(number) && Number(number) >= 2 && Number(number) <= workers;
}

/**
 * Return every router of the network that the login reaches, the connected one first: the interior routers, and the edge
 * routers in their tables of connections. The workers of the connected one are that router.
 */
export function routersOf(connected: RouterRef, interior: readonly string[], connectionsOf: (id: string) => readonly Row[]): RouterRef[] {
  const seen = new Map<string, RouterRef>([[connected.id, connected]]);
  const add = (id: string, address: string, mode: RouterRef["mode"]): void => {
    if (!seen.has(id) && !isWorkerOf(connected, id)) seen.set(id, { id, address, mode });
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
