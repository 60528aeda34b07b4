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

/** Return the level that the router gives to this login: "admin" where a router of the older kind has no levels. */
export async function fetchLevel(): Promise<Level> {
  try {
    const told = await manage("", { operation: "GET-RIGHTS" });
    const level = isMap(told) ? told["level"] : undefined;
    return LEVELS.find((known) => known === level) ?? "admin";
  } catch (error) {
    return error instanceof ManagementError && error.status === 403 ? "none" : "admin";
  }
}

/** Return the least level at which `operation` may be done to entities of that type. */
export function levelFor(operation: string, entity: Entity): Level {
  if (LOOKING.has(operation)) return "read";
  if (OPERATING.has(operation) || OPERATED.has(entity)) return "operate";
  return "admin";
}

/** Whether `level` goes as far as `wanted`. */
export const reaches = (level: Level, wanted: Level): boolean => LEVELS.indexOf(level) >= LEVELS.indexOf(wanted);
