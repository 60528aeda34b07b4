/** What the login may do, as far as the router says so. */

import { ManagementError } from "../amqp/errors";
import { isMap } from "../amqp/management";
import type { Entity } from "../model/types";
import { manage } from "./link";

export const LEVELS = ["none", "read", "operate", "admin"] as const;
export type Level = (typeof LEVELS)[number];

const LOOKING = new Set(["READ", "QUERY", "EXPLAIN", "GET-MEMORY", "GET-SCHEMA", "GET-MGMT-NODES"]);
const OPERATING = new Set(["GET-LOG", "PROFILE", "RELOAD"]);
/** What a login of the level "operate" may change. */
const OPERATED = new Set([
  "connection",
  "router.link",
  "router.config.address",
  "router.config.linkRoute",
  "router.config.autoLink",
  "router.config.exchange",
  "router.config.binding",
  "router.connection.linkRoute",
]);

/** What the router says that this login may do. */
export interface Rights {
  readonly level: Level;
  /** The login sees and changes what belongs to its tenant, and nothing else. */
  readonly isTenant: boolean;
  readonly mayCloseConnections: boolean;
}

const ALL: Rights = { level: "admin", isTenant: false, mayCloseConnections: true };
export const NO_RIGHTS: Rights = { level: "none", isTenant: false, mayCloseConnections: false };

/** Return the rights of this login: all where a router of the older kind does not say. */
export async function fetchRights(): Promise<Rights> {
  try {
    const told = await manage("", { operation: "GET-RIGHTS" });
    if (!isMap(told)) return ALL;
    return {
      level: LEVELS.find((known) => known === told["level"]) ?? "admin",
      isTenant: told["tenant"] === true,
      mayCloseConnections: told["allowAdminStatusUpdate"] !== false,
    };
  } catch (error) {
    return error instanceof ManagementError && error.status === 403 ? NO_RIGHTS : ALL;
  }
}

/** Whether a login with `rights` may do `operation` to entities of that type, as far as can be known beforehand. */
export function allows(rights: Rights, operation: string, entity: Entity): boolean {
  if (rights.isTenant && !LOOKING.has(operation) && operation !== "UPDATE") return false;
  if (entity === "connection" && operation === "UPDATE" && !rights.mayCloseConnections) return false;
  return LEVELS.indexOf(rights.level) >= LEVELS.indexOf(levelFor(operation, entity));
}

/** Return the least level at which `operation` may be done to entities of that type. */
function levelFor(operation: string, entity: Entity): Level {
  if (LOOKING.has(operation)) return "read";
  if (OPERATING.has(operation) || OPERATED.has(entity)) return "operate";
  return "admin";
}
