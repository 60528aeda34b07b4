/** What is at the other end of a connection: a router, an edge router, a broker or a client of some kind. */

import { mapOf, textOf } from "./rows";
import type { Row } from "./types";

export type PeerKind = "router" | "edge" | "uplink" | "broker" | "client";

/** What a client does, by the links that it has. */
export type ClientKind = "producer" | "consumer" | "both" | "idle" | "console";

/** Product names that brokers send in their open. */
const BROKERS: readonly (readonly [RegExp, string])[] = [
  [/artemis/i, "ActiveMQ Artemis"],
  [/activemq/i, "ActiveMQ"],
  [/qpid-cpp/i, "Qpid C++ broker"],
  [/qpid.*java|broker-j/i, "Qpid Broker-J"],
  [/rabbitmq/i, "RabbitMQ"],
  [/solace/i, "Solace"],
  [/service ?bus/i, "Service Bus"],
];

const product = (connection: Row): string => {
  const name = mapOf(connection, "properties")["product"];
  return typeof name === "string" ? name : "";
};

/** Return the name of the broker's product as users know it, what the peer calls itself, or "". */
export function brokerProduct(connection: Row): string {
  const name = product(connection);
  return BROKERS.find(([pattern]) => pattern.test(name))?.[1] ?? name;
}

/** Return what the peer of a connection is; a peer that is no router and that this router dialled counts as a broker. */
export function peerKind(connection: Row): PeerKind {
  const dialled = textOf(connection, "dir") === "out";
  switch (textOf(connection, "role")) {
    case "inter-router":
      return "router";
    case "edge":
      return dialled ? "uplink" : "edge";
    case "route-container":
      return "broker";
    default:
      return dialled || BROKERS.some(([pattern]) => pattern.test(product(connection))) ? "broker" : "client";
  }
}

/** Return whether the client is a console: this one, or one of the older router. */
export function isConsole(connection: Row): boolean {
  return "console_identifier" in mapOf(connection, "properties");
}

/** Return what a client does, by the directions of its links. */
export function clientKind(connection: Row, sends: boolean, receives: boolean): ClientKind {
  if (isConsole(connection)) return "console";
  if (sends && receives) return "both";
  if (sends) return "producer";
  return receives ? "consumer" : "idle";
}
