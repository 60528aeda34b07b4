/** The rights of the login, as the router reports them. */

import { ManagementError } from "../amqp/errors";
import { isMap } from "../model/rows";
import type { Entity } from "../model/types";
import { manage } from "./current";

/** The levels of management rights, the lowest first. */
export const LEVELS = ["none", "read", "operate", "admin"] as const;
/** The level of management rights that the policy gives a login. */
export type Level = (typeof LEVELS)[number];

/** Operations that only read, and those that operate the router without changing its configuration. */
const READING = new Set(["READ", "QUERY", "EXPLAIN", "GET-MEMORY", "GET-SCHEMA", "GET-MGMT-NODES"]);
const OPERATING = new Set(["GET-LOG", "PROFILE", "RELOAD"]);
/** The entity types that a login of the level "operate" may change. */
const OPERABLE_TYPES = new Set([
  "connection",
  "router.link",
  "router.config.address",
  "router.config.linkRoute",
  "router.config.autoLink",
  "router.config.exchange",
  "router.config.binding",
  "router.connection.linkRoute",
]);

/** The rights of the login, as the router reports them. */
export interface Rights {
  readonly level: Level;
  /** The login sees and changes only the entities of its tenant. */
  readonly isTenant: boolean;
  /** The policy allows the login to close connections. */
  readonly mayCloseConnections: boolean;
}

const ALL: Rights = { level: "admin", isTenant: false, mayCloseConnections: true };
/** The rights before a login. */
export const NO_RIGHTS: Rights = { level: "none", isTenant: false, mayCloseConnections: false };

/** Return the rights of this login; all rights if the router does not report them, as Qpid Dispatch. */
export async function fetchRights(): Promise<Rights> {
  try {
    const answer = await manage("", { operation: "GET-RIGHTS" });
    if (!isMap(answer)) return ALL;
    return {
      level: LEVELS.find((known) => known === answer["level"]) ?? "admin",
      isTenant: answer["tenant"] === true,
      mayCloseConnections: answer["allowAdminStatusUpdate"] !== false,
    };
  } catch (error) {
    return error instanceof ManagementError && error.status === 403 ? NO_RIGHTS : ALL;
  }
}

/** Return whether a login with `rights` may do `operation` to entities of that type. The router has the last word. */
export function allows(rights: Rights, operation: string, entity: Entity): boolean {
  if (rights.isTenant && !READING.has(operation) && operation !== "UPDATE") return false;
  if (entity === "connection" && operation === "UPDATE" && !rights.mayCloseConnections) return false;
  return LEVELS.indexOf(rights.level) >= LEVELS.indexOf(levelFor(operation, entity));
}

/** Return the lowest level that may do `operation` to entities of that type. */
function levelFor(operation: string, entity: Entity): Level {
  if (READING.has(operation)) return "read";
  if (OPERATING.has(operation) || OPERABLE_TYPES.has(entity)) return "operate";
  return "admin";
}
