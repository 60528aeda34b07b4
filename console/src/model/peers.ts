/** The peer of a connection: a router, an edge router, a broker or a client. */

import { mapAt, textAt } from "./rows";
import type { Row } from "./types";

/** The kind of a connection's peer; "uplink" is the interior router that an edge router dialled. */
export type PeerKind = "router" | "edge" | "uplink" | "broker" | "client";

/** The kind of a client by its links: it sends, receives, does both, has no links, or is a console. */
export type ClientKind = "producer" | "consumer" | "both" | "idle" | "console";

/** Product names of brokers in their open, with the name that users know. */
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
  const name = mapAt(connection, "properties")["product"];
  return typeof name === "string" ? name : "";
};

/** Return the product of a broker by the name that users know, else the product name in its open; "" if it has none. */
export function brokerProduct(connection: Row): string {
  const name = product(connection);
  return BROKERS.find(([pattern]) => pattern.test(name))?.[1] ?? name;
}

/** Return the kind of a connection's peer. A peer that is no router and that this router dialled counts as a broker. */
export function peerKind(connection: Row): PeerKind {
  const dialled = textAt(connection, "dir") === "out";
  switch (textAt(connection, "role")) {
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

/** Return whether the client is a console: trouter's or Qpid Dispatch's. */
export function isConsole(connection: Row): boolean {
  return "console_identifier" in mapAt(connection, "properties");
}

/** Return the kind of a client; `sends` and `receives` say which directions its links have. */
export function clientKind(connection: Row, sends: boolean, receives: boolean): ClientKind {
  if (isConsole(connection)) return "console";
  if (sends && receives) return "both";
  if (sends) return "producer";
  return receives ? "consumer" : "idle";
}
